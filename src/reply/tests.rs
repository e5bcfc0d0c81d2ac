use std::collections::BTreeMap;

use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::*;
use crate::protocol::sse::EVENT_HEAD;

mod finishing;
mod stamping;
mod values;
mod writing;

const SERVER_INFO: &str = "io.modelcontextprotocol/serverInfo";
const PLAIN: Stamp<'_> = Stamp { server_info: None, cache: CacheRule::None };

fn raw(text: &str) -> Box<RawValue> {
    RawValue::from_string(text.to_owned()).unwrap()
}

/// Writes a value and checks that nothing but its white space has changed.
fn write<T: Serialize + ?Sized>(value: &T) -> Reply {
    let reply = Reply::write(value).unwrap();
    assert_eq!(parse(reply.json()), serde_json::to_value(value).unwrap());
    reply
}

fn fault<T: Serialize + ?Sized>(value: &T) -> ReplyFault {
    Reply::write(value).unwrap_err()
}

fn stamped<T: Serialize + ?Sized>(value: &T, stamp: Stamp<'_>) -> String {
    let mut reply = write(value);
    reply.stamp(&stamp);
    let once = reply.json().to_vec();
    check_places(&reply);
    reply.stamp(&stamp);
    assert_eq!(reply.json(), once, "stamping twice is stamping once");
    String::from_utf8(once).unwrap()
}

/// `value` with the server's identity.
fn identified<T: Serialize + ?Sized>(value: &T) -> String {
    stamped(value, Stamp { server_info: Some(br#"{"name":"s"}"#), cache: CacheRule::None })
}

fn cached<T: Serialize + ?Sized>(value: &T, cache: CacheRule) -> Value {
    parse(stamped(value, Stamp { server_info: None, cache }).as_bytes())
}

/// What the reply has kept of each member is what a reader of the whole finds.
fn check_places(reply: &Reply) {
    let result = parse(reply.json());
    for member in Member::OF_RESULT {
        assert_eq!(reply.member(*member).map(parse).as_ref(), result.get(member.name()), "{member:?}");
    }
    let server_info = result.get("_meta").and_then(|meta| meta.get(SERVER_INFO));
    assert_eq!(reply.member(Member::ServerInfo).map(parse).as_ref(), server_info);
}

fn parse(json: &[u8]) -> Value {
    serde_json::from_slice(json).unwrap()
}
