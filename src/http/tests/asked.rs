//! What questions leave among the waiters of a session, however they end: nothing.

use std::sync::Arc;

use http::HeaderValue;

use super::left::{inside, settled};
use super::*;
use crate::session::SessionState;
use crate::{Ask, AskError, Question};

/// Asks in the way that the method says.
struct Asks;

impl McpHandler for Asks {
    fn server_info(&self) -> ServerInfo {
        ServerInfo::new("asks", "1")
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities::new()
    }

    async fn request(&self, request: crate::Request, cx: RequestContext) -> Result<Reply, McpError> {
        let question = Question::new("x/q", json!({}))?.timeout(Duration::from_secs(5));
        match request.method() {
            "waits" => Reply::of(json!({"was": cx.ask("q", question).await.err().map(|error| error.to_string())})),
            "drops" => {
                let mut ask = cx.ask("q", question);
                waits(&mut ask).await;
                drop(ask);
                Reply::empty()
            }
            "unpolled" => {
                drop(cx.ask("q", question));
                Reply::empty()
            }
            "leaves" => {
                // It waits when the answer comes.
                let mut ask = cx.ask("q", question.clone());
                waits(&mut ask).await;
                tokio::spawn(async move {
                    assert_eq!(ask.await.unwrap_err(), AskError::Unreachable);
                    // And it asks once more after that.
                    assert_eq!(cx.ask("q", question).await.unwrap_err(), AskError::Unreachable);
                });
                Reply::empty()
            }
            "panics" => {
                let mut ask = cx.ask("q", question);
                waits(&mut ask).await;
                std::panic::resume_unwind(Box::new("on purpose"))
            }
            _ => Err(McpError::method_not_found()),
        }
    }
}

/// Polls a question, which must not be answered.
async fn waits(ask: &mut Ask) {
    std::future::poll_fn(|cx| {
        assert!(ask.poll_unpin(cx).is_pending());
        Poll::Ready(())
    })
    .await;
}

/// The whole body of an answer.
async fn read(answer: Response<ResponseBody>) -> String {
    String::from_utf8(answer.into_body().collect().await.unwrap().to_bytes().to_vec()).unwrap()
}

struct Bench {
    service: StreamableHttpService,
    session: HeaderValue,
    state: Arc<SessionState>,
}

impl Bench {
    async fn open() -> Self {
        let service = StreamableHttpService::new(Asks);
        let session = left::initialize(&service).await;
        let state = service.shared.sessions.find(session.to_str().unwrap(), None).unwrap();
        let bench = Self { service, session, state };
        bench.post(json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
        bench
    }

    async fn post(&self, message: Value) -> Response<ResponseBody> {
        self.service.handle(inside(&self.session, legacy(&message))).await
    }

    async fn call(&self, method: &str) -> Response<ResponseBody> {
        self.post(json!({"jsonrpc": "2.0", "id": 1, "method": method})).await
    }

    fn waiting(&self) -> usize {
        self.state.waiters().len()
    }
}

#[tokio::test(start_paused = true)]
async fn no_question_leaves_a_waiter() {
    let bench = Bench::open().await;
    for method in ["drops", "unpolled", "leaves", "panics"] {
        let answer = bench.call(method).await;
        read(answer).await;
        settled().await;
        assert_eq!(bench.waiting(), 0, "{method}");
    }

    let mut stream = bench.call("waits").await.into_body();
    assert_eq!(bench.waiting(), 1);
    let asked = stream.frame().await.unwrap().unwrap().into_data().unwrap();
    let asked = String::from_utf8(asked.to_vec()).unwrap();
    let id = asked.split("\"id\":").nth(1).and_then(|rest| rest.split(',').next()).unwrap().to_owned();
    let response = json!({"jsonrpc": "2.0", "id": id.parse::<u64>().unwrap(), "result": {}});
    assert_eq!(bench.post(response).await.status(), 202);
    assert_eq!(bench.waiting(), 0);
    stream.collect().await.unwrap();

    let late = bench.call("waits").await;
    assert_eq!(bench.waiting(), 1);
    assert!(read(late).await.contains("in time"));
    assert_eq!(bench.waiting(), 0);

    let cancelled = bench.call("waits").await;
    assert_eq!(bench.waiting(), 1);
    bench.post(json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}})).await;
    settled().await;
    assert_eq!(bench.waiting(), 0);
    drop(cancelled);

    let json_only = json!({"jsonrpc": "2.0", "id": 1, "method": "waits"});
    let mut request = inside(&bench.session, legacy(&json_only));
    request.headers_mut().insert(http::header::ACCEPT, HeaderValue::from_static("application/json"));
    assert!(read(bench.service.handle(request).await).await.contains("no way"));
    assert_eq!(bench.waiting(), 0);

    let open = bench.call("waits").await;
    assert_eq!(bench.waiting(), 1);
    let delete = Request::builder().method("DELETE").uri("/mcp").body(Full::default()).unwrap();
    assert_eq!(bench.service.handle(inside(&bench.session, delete)).await.status(), 204);
    assert_eq!(bench.waiting(), 0);
    drop(open);
}
