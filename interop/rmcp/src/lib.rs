//! What the walk and the tour of rmcp's client have in common.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use rmcp::model::ProtocolVersion;
use rmcp::service::RunningService;
use rmcp::transport::{StreamableHttpClientTransport, TokioChildProcess};
use rmcp::{ClientHandler, ClientLifecycleMode, ClientServiceExt, RoleClient};

pub type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;

/// Time enough for a call to reach its handler.
pub const UNDER_WAY: Duration = Duration::from_millis(500);

/// Connects in one of rmcp's modes. The URL may be `stdio:` and the command of a server to start.
pub async fn connect<H: ClientHandler>(handler: H, url: &str, mode: &str) -> Result<RunningService<RoleClient, H>> {
    let preferred_versions = vec![ProtocolVersion::V_2026_07_28];
    let lifecycle = match mode {
        "discover" => ClientLifecycleMode::Discover { preferred_versions },
        "auto" => ClientLifecycleMode::Auto { preferred_versions, legacy_version: None },
        "initialize" => ClientLifecycleMode::Initialize,
        _ => return Err(format!("no such mode: {mode}").into()),
    };
    if let Some(command) = command(url) {
        return Ok(handler.serve_with_lifecycle(TokioChildProcess::new(command)?, lifecycle).await?);
    }
    let transport = StreamableHttpClientTransport::from_uri(url);
    Ok(handler.serve_with_lifecycle(transport, lifecycle).await?)
}

/// The command of a server that is to be started.
pub fn command(url: &str) -> Option<tokio::process::Command> {
    let mut words = url.strip_prefix("stdio:")?.split(' ');
    let mut command = tokio::process::Command::new(words.next()?);
    command.args(words);
    Some(command)
}

pub fn version<H: ClientHandler>(client: &RunningService<RoleClient, H>) -> Result<ProtocolVersion> {
    Ok(client.peer_info().ok_or("no version")?.protocol_version.clone())
}

pub fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Result<String> {
    if found == expected { Ok(String::new()) } else { Err(format!("{what}: {found:?}").into()) }
}

/// Prints how a step went.
pub async fn step(name: &str, work: impl Future<Output = Result<String>>) -> bool {
    let result = work.await;
    match &result {
        Ok(note) => println!("{name} ok {note}"),
        Err(error) => println!("{name} failed {error}"),
    }
    result.is_ok()
}

/// What rmcp itself has to say, from warnings up, goes to standard error.
pub fn log_to_stderr() {
    tracing_subscriber::fmt()
        .with_max_level(tracing_subscriber::filter::LevelFilter::WARN)
        .with_ansi(false)
        .without_time()
        .with_writer(std::io::stderr)
        .init();
}
