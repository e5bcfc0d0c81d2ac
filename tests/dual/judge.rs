//! What the answer to the first request says of a server.

use serde_json::Value;

/// An answer to a request, whatever it turned out to be.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    pub status: u16,
    /// The message, or null where the body is none.
    pub message: Value,
    pub session: Option<String>,
}

/// What a client makes of the answer to `server/discover`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Judgement {
    /// Modern, and these are its versions.
    Discovered(Vec<String>),
    /// Modern, though it said no more than that.
    Undiscovered,
    /// Not at this version, but at one of these.
    Otherwise(Vec<String>),
    Legacy,
    /// It says nothing about the server's era.
    Nothing,
}

const HEADER_MISMATCH: i64 = -32020;
const MISSING_CAPABILITY: i64 = -32021;
const UNSUPPORTED_VERSION: i64 = -32022;
const METHOD_NOT_FOUND: i64 = -32601;

/// Judges the answer to `server/discover`.
pub fn judge(response: &Response) -> Judgement {
    match response.status {
        200..300 => match discovered(&response.message) {
            Some(versions) => Judgement::Discovered(versions),
            None => Judgement::Legacy,
        },
        400 => match response.code() {
            Some(UNSUPPORTED_VERSION) => response.supported().map_or(Judgement::Legacy, Judgement::Otherwise),
            Some(HEADER_MISMATCH | MISSING_CAPABILITY) => Judgement::Undiscovered,
            _ => Judgement::Legacy,
        },
        404 if response.code() == Some(METHOD_NOT_FOUND) => Judgement::Undiscovered,
        402 | 404..500 => Judgement::Legacy,
        _ => Judgement::Nothing,
    }
}

impl Response {
    /// The code of the error that it carries.
    pub fn code(&self) -> Option<i64> {
        self.message["error"]["code"].as_i64()
    }

    /// The versions that the error of an unsupported version names.
    pub fn supported(&self) -> Option<Vec<String>> {
        if self.code() == Some(UNSUPPORTED_VERSION) {
            strings(&self.message["error"]["data"]["supported"])
        } else {
            None
        }
    }
}

fn discovered(message: &Value) -> Option<Vec<String>> {
    let result = &message["result"];
    if result["capabilities"].is_object() { strings(&result["supportedVersions"]) } else { None }
}

fn strings(value: &Value) -> Option<Vec<String>> {
    value.as_array()?.iter().map(|member| member.as_str().map(str::to_owned)).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn judged(status: u16, message: Value) -> Judgement {
        judge(&Response { status, message, session: None })
    }

    fn error(code: i64) -> Value {
        json!({"jsonrpc": "2.0", "id": 1, "error": {"code": code, "message": "no"}})
    }

    #[test]
    fn a_discover_result_is_modern() {
        let result = json!({"supportedVersions": ["2026-07-28"], "capabilities": {}});
        let message = json!({"jsonrpc": "2.0", "id": 1, "result": result});
        assert_eq!(judged(200, message), Judgement::Discovered(vec!["2026-07-28".to_owned()]));
    }

    #[test]
    fn any_other_success_is_legacy() {
        for message in
            [json!({"result": {}}), json!({"result": {"supportedVersions": [1]}}), error(-32022), Value::Null]
        {
            assert_eq!(judged(200, message), Judgement::Legacy);
        }
        assert_eq!(judged(202, Value::Null), Judgement::Legacy);
    }

    #[test]
    fn a_modern_error_is_modern_beside_400_alone() {
        for code in [-32020, -32021] {
            assert_eq!(judged(400, error(code)), Judgement::Undiscovered);
            for status in [404, 405, 406, 422] {
                assert_eq!(judged(status, error(code)), Judgement::Legacy);
            }
        }
        for code in [-32600, -32601, -32602, -32700, -32000] {
            assert_eq!(judged(400, error(code)), Judgement::Legacy);
        }
        assert_eq!(judged(400, Value::Null), Judgement::Legacy);
    }

    #[test]
    fn an_unknown_method_is_modern_beside_404_alone() {
        assert_eq!(judged(404, error(-32601)), Judgement::Undiscovered);
        assert_eq!(judged(404, error(-32600)), Judgement::Legacy);
        assert_eq!(judged(404, Value::Null), Judgement::Legacy);
        assert_eq!(judged(405, error(-32601)), Judgement::Legacy);
    }

    #[test]
    fn an_unsupported_version_counts_with_those_that_are_supported() {
        let mut message = error(-32022);
        assert_eq!(judged(400, message.clone()), Judgement::Legacy);
        message["error"]["data"] = json!({"requested": "2026-07-28"});
        assert_eq!(judged(400, message.clone()), Judgement::Legacy);
        message["error"]["data"] = json!({"supported": ["2027-01-01"]});
        assert_eq!(judged(400, message), Judgement::Otherwise(vec!["2027-01-01".to_owned()]));
    }

    #[test]
    fn what_is_in_the_way_says_nothing() {
        for status in [301, 401, 403, 500, 502, 503, 504] {
            for message in [Value::Null, error(-32022), error(-32601)] {
                assert_eq!(judged(status, message), Judgement::Nothing);
            }
        }
    }
}
