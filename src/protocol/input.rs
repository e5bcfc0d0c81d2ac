//! What a server may ask of its client, of which client, and what counts as an answer.

use std::ops::Range;

use serde::Deserialize;
use serde_json::Value;

use super::names::method;
use super::revision::Revision;
use super::scan::inside::entries;

/// A question, by what it takes to be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InputKind {
    /// `elicitation/create` for the members of a form. Without a `mode` it is this.
    Form,
    /// `elicitation/create` for a visit to a page.
    Url,
    /// `sampling/createMessage`.
    Sampling,
    /// `sampling/createMessage` with tools.
    SamplingWithTools,
    /// `roots/list`.
    Roots,
    /// A method that the protocol does not know.
    Other,
}

/// Why a client cannot be asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Lack {
    /// It did not declare the capability at this path.
    Capability(&'static [&'static str]),
    /// Its revision has no such question.
    Revision,
}

impl InputKind {
    pub(crate) fn of(method: &str, params: Option<&Value>) -> Self {
        let has = |member| params.is_some_and(|params| !params.get(member).unwrap_or(&Value::Null).is_null());
        match method {
            method::ELICITATION_CREATE if params.is_some_and(|params| params.get("mode") == Some(&"url".into())) => {
                Self::Url
            }
            method::ELICITATION_CREATE => Self::Form,
            method::SAMPLING_CREATE_MESSAGE if has("tools") || has("toolChoice") => Self::SamplingWithTools,
            method::SAMPLING_CREATE_MESSAGE => Self::Sampling,
            method::ROOTS_LIST => Self::Roots,
            _ => Self::Other,
        }
    }

    /// Whether a client that speaks `revision` and declared `capabilities` can be asked. They are JSON, and not read
    /// into values: a client may send megabytes of them with every request, and each question looks at them.
    pub(crate) fn check(self, revision: Revision, capabilities: &[u8]) -> Result<(), Lack> {
        let first = match self {
            Self::Form => Revision::V2025_06_18,
            Self::Url => Revision::V2025_11_25,
            Self::Sampling | Self::SamplingWithTools | Self::Roots => Revision::V2024_11_05,
            // Whether its client knows the method, only the application can know. 2026-07-28 knows the others alone.
            Self::Other if revision < Revision::V2026_07_28 => return Ok(()),
            Self::Other => return Err(Lack::Revision),
        };
        if revision < first {
            return Err(Lack::Revision);
        }
        let path = self.capability();
        // `elicitation` without a mode means forms.
        let is_declared = match self {
            Self::Form => {
                let declares = |path: &[&str]| declares(capabilities, path);
                declares(path) || (declares(&["elicitation"]) && !declares(&["elicitation", "url"]))
            }
            _ => declares(capabilities, path),
        };
        if is_declared { Ok(()) } else { Err(Lack::Capability(path)) }
    }

    /// Where in a client's capabilities it declares that it answers this.
    const fn capability(self) -> &'static [&'static str] {
        match self {
            Self::Form => &["elicitation", "form"],
            Self::Url => &["elicitation", "url"],
            Self::Sampling => &["sampling"],
            Self::SamplingWithTools => &["sampling", "tools"],
            Self::Roots => &["roots"],
            Self::Other => &[],
        }
    }

    /// Whether a client's result has the shape of an answer to this.
    pub(crate) fn is_answered_by(self, result: &str) -> bool {
        match self {
            Self::Form | Self::Url => serde_json::from_str::<Elicited>(result).is_ok(),
            Self::Sampling | Self::SamplingWithTools => serde_json::from_str::<Sampled>(result).is_ok_and(|sampled| {
                matches!(sampled.content, Value::Object(_)) || matches!(sampled.content, Value::Array(_))
            }),
            Self::Roots => serde_json::from_str::<Roots>(result).is_ok(),
            Self::Other => result.trim_start().starts_with('{'),
        }
    }
}

/// Whether a client's capabilities have the member at this path, whatever it holds, `null` and `false` apart.
pub(crate) fn declares(capabilities: &[u8], path: &[&str]) -> bool {
    let found = path.iter().try_fold(0..capabilities.len(), |object, key| member(capabilities, object, key));
    found.is_some_and(|value| !matches!(capabilities.get(value), None | Some(b"null" | b"false")))
}

/// Where the value of a member stands; of several of one name, that of the last.
fn member(json: &[u8], object: Range<usize>, name: &str) -> Option<Range<usize>> {
    let mut found = None;
    entries(json, object, |entry| {
        if entry.name == name.as_bytes() {
            found = Some(entry.value);
        }
    });
    found
}

/// What a user did with an elicitation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
#[non_exhaustive]
pub enum ElicitationAction {
    /// Answered it; of a URL: agreed to open it.
    Accept,
    /// Said no.
    Decline,
    /// Closed it without a choice.
    Cancel,
}

#[derive(Deserialize)]
#[allow(dead_code)] // read for their shape
struct Elicited {
    action: ElicitationAction,
    content: Option<serde_json::Map<String, Value>>,
}

#[derive(Deserialize)]
#[allow(dead_code)] // the same
struct Sampled {
    role: String,
    content: Value,
}

#[derive(Deserialize)]
#[allow(dead_code)] // the same
struct Roots {
    roots: Vec<serde_json::Map<String, Value>>,
}

/// A number for a question: the same for the same name, method and params, in whatever order their members stand.
///
/// FNV-1a with 128 bits. It stands in states that other nodes read, so it must not change.
pub(crate) fn digest(name: &str, method: &str, params: Option<&Value>) -> u128 {
    let mut digest = Digest(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
    digest.text(name);
    digest.text(method);
    if let Some(params) = params {
        digest.value(params);
    }
    digest.0
}

struct Digest(u128);

impl Digest {
    fn bytes(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u128::from(*byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b);
        }
    }

    /// A text and an end that none contains.
    fn text(&mut self, text: &str) {
        self.bytes(text.as_bytes());
        self.bytes(&[0xff]);
    }

    fn value(&mut self, value: &Value) {
        match value {
            Value::Object(members) => {
                self.bytes(b"{");
                let mut members: Vec<_> = members.iter().collect();
                members.sort_by_key(|(key, _)| *key);
                for (key, value) in members {
                    self.text(key);
                    self.value(value);
                }
                self.bytes(b"}");
            }
            Value::Array(elements) => {
                self.bytes(b"[");
                elements.iter().for_each(|element| self.value(element));
                self.bytes(b"]");
            }
            Value::String(text) => {
                self.bytes(b"\"");
                self.text(text);
            }
            other => self.text(&other.to_string()),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const ALL: [Revision; 5] = [
        Revision::V2024_11_05,
        Revision::V2025_03_26,
        Revision::V2025_06_18,
        Revision::V2025_11_25,
        Revision::V2026_07_28,
    ];

    #[test]
    fn a_question_is_known_by_its_method_and_what_it_needs() {
        let of = |method, params: Value| InputKind::of(method, Some(&params));
        assert_eq!(of("elicitation/create", json!({"message": "?"})), InputKind::Form);
        assert_eq!(of("elicitation/create", json!({"mode": "form"})), InputKind::Form);
        assert_eq!(of("elicitation/create", json!({"mode": "url"})), InputKind::Url);
        assert_eq!(of("sampling/createMessage", json!({"tools": null})), InputKind::Sampling);
        assert_eq!(of("sampling/createMessage", json!({"tools": []})), InputKind::SamplingWithTools);
        assert_eq!(of("sampling/createMessage", json!({"toolChoice": {}})), InputKind::SamplingWithTools);
        assert_eq!(InputKind::of("roots/list", None), InputKind::Roots);
        assert_eq!(InputKind::of("x/y", None), InputKind::Other);
    }

    #[test]
    fn a_revision_has_the_questions_it_has() {
        let all = br#"{"elicitation": {"form": {}, "url": {}}, "sampling": {"tools": {}}, "roots": {}}"#;
        let first = |kind: InputKind| ALL.into_iter().find(|revision| kind.check(*revision, all).is_ok());
        assert_eq!(first(InputKind::Form), Some(Revision::V2025_06_18));
        assert_eq!(first(InputKind::Url), Some(Revision::V2025_11_25));
        for kind in [InputKind::Sampling, InputKind::SamplingWithTools, InputKind::Roots, InputKind::Other] {
            assert_eq!(first(kind), Some(Revision::V2024_11_05));
        }
        assert_eq!(InputKind::Form.check(Revision::V2025_03_26, all), Err(Lack::Revision));
        assert_eq!(InputKind::Other.check(Revision::V2026_07_28, all), Err(Lack::Revision));
    }

    #[test]
    fn only_what_was_declared_is_asked() {
        let check = |kind: InputKind, capabilities: Value| {
            kind.check(Revision::V2026_07_28, capabilities.to_string().as_bytes())
        };
        assert_eq!(check(InputKind::Form, json!({"elicitation": {}})), Ok(()));
        assert_eq!(check(InputKind::Form, json!({"elicitation": {"form": {}, "url": {}}})), Ok(()));
        let lacks_form = Err(Lack::Capability(&["elicitation", "form"]));
        assert_eq!(check(InputKind::Form, json!({"elicitation": {"url": {}}})), lacks_form);
        assert_eq!(check(InputKind::Form, json!({})), lacks_form);
        assert_eq!(check(InputKind::Form, json!({"elicitation": null})), lacks_form);
        assert_eq!(check(InputKind::Url, json!({"elicitation": {}})), Err(Lack::Capability(&["elicitation", "url"])));
        assert_eq!(check(InputKind::Sampling, json!({"sampling": {}})), Ok(()));
        let lacks_tools = Err(Lack::Capability(&["sampling", "tools"]));
        assert_eq!(check(InputKind::SamplingWithTools, json!({"sampling": {}})), lacks_tools);
        assert_eq!(check(InputKind::Roots, json!({"roots": false})), Err(Lack::Capability(&["roots"])));
        assert_eq!(check(InputKind::Roots, Value::Null), Err(Lack::Capability(&["roots"])));
        let written = |json: &str| InputKind::Url.check(Revision::V2026_07_28, json.as_bytes()).is_ok();
        assert!(written(r#" { "elicitation" : { "\u0075rl" : true } , "x" : [] } "#));
        // The last one counts.
        assert!(written(r#"{"elicitation":7,"elicitation":{"url":null,"url":{}}}"#));
        assert!(!written(r#"{"elicitation":{"url":{}},"elicitation":{"url": false}}"#));
        assert!(!written(r#"{"x":{"elicitation":{"url":{}}}}"#));
        assert!(!written(""));
    }

    #[test]
    fn an_answer_has_the_shape_of_its_question() {
        for (kind, good, bad) in [
            (
                InputKind::Form,
                vec![
                    r#"{"action":"accept","content":{"a":1},"x":2}"#,
                    r#"{"action":"decline"}"#,
                    r#"{"action":"cancel"}"#,
                ],
                vec![
                    r#"{"action":"maybe"}"#,
                    r#"{"content":{}}"#,
                    "12345",
                    "null",
                    r#"{"action":"accept","content":7}"#,
                ],
            ),
            (
                InputKind::Sampling,
                vec![
                    r#"{"role":"assistant","content":{"type":"text","text":"x"},"model":"m"}"#,
                    r#"{"role":"a","content":[]}"#,
                ],
                vec![r#"{"role":"assistant"}"#, r#"{"role":"assistant","content":"x"}"#, r#"{"content":{}}"#, "[]"],
            ),
            (
                InputKind::Roots,
                vec![r#"{"roots":[]}"#, r#"{"roots":[{"uri":"file:///"}]}"#],
                vec![r#"{}"#, r#"{"roots":{}}"#, r#"{"roots":["file:///"]}"#],
            ),
            (InputKind::Other, vec![" {}"], vec!["null", "7", "[]"]),
        ] {
            good.iter().for_each(|result| assert!(kind.is_answered_by(result), "{kind:?} {result}"));
            bad.iter().for_each(|result| assert!(!kind.is_answered_by(result), "{kind:?} {result}"));
        }
    }

    #[test]
    fn a_digest_knows_values_and_not_their_order() {
        let of = |name, params: &str| digest(name, "m", Some(&serde_json::from_str(params).unwrap()));
        assert_eq!(of("n", r#"{"a":1,"b":{"c":[1,2],"d":"x"}}"#), of("n", r#"{ "b":{"d":"x","c":[1,2]}, "a":1}"#));
        let all = [
            of("n", r#"{"a":1}"#),
            of("m", r#"{"a":1}"#),
            of("n", r#"{"a":"1"}"#),
            of("n", r#"{"a":[1]}"#),
            of("n", r#"{"a":{"b":1}}"#),
            of("n", r#"{"a":{},"b":1}"#),
            of("n", r#"{"ab":1}"#),
            of("n", r#"["a",1]"#),
            of("n", r#"[["a"],1]"#),
            digest("n", "m", None),
            digest("nm", "", None),
        ];
        let distinct: std::collections::HashSet<_> = all.iter().collect();
        assert_eq!(distinct.len(), all.len());
        // Written into states that other versions read.
        assert_eq!(digest("n", "m", None), 0x692f_be9e_e075_7277_b806_e963_00db_39a6);
    }
}
