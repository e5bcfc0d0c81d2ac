use super::*;

use Revision::{V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25, V2026_07_28};

/// The result as a client of the revision reads it; `None` where nothing is touched.
fn shape(method: &str, revision: Revision, json: &str) -> Option<String> {
    let hinted = ["resultType", "ttlMs", "cacheScope", "structuredContent"].iter().any(|name| json.contains(name));
    let edits = result(method, revision, json.as_bytes(), if hinted { Hints::Some } else { Hints::None });
    applied(edits, json)
}

fn applied(edits: Edits, json: &str) -> Option<String> {
    if edits.is_empty() {
        return None;
    }
    let mut out = Vec::new();
    edits.apply(json.as_bytes(), &mut out);
    let out = String::from_utf8(out).unwrap();
    serde_json::from_str::<serde_json::Value>(&out).unwrap_or_else(|error| panic!("{out}: {error}"));
    Some(out)
}

/// What clients of some revisions read, and those of all others as it was written.
#[track_caller]
fn assert_shaped(method: &str, written: &str, read: &[(&[Revision], &str)]) {
    for revision in Revision::ALL {
        let expected = read.iter().find(|(revisions, _)| revisions.contains(&revision)).map(|(_, text)| *text);
        assert_eq!(shape(method, revision, written).as_deref(), expected, "{method} {revision}: {written}");
    }
}

const LEGACY: &[Revision] = &[V2024_11_05, V2025_03_26, V2025_06_18, V2025_11_25];
const UNSTRUCTURED: &[Revision] = &[V2024_11_05, V2025_03_26];
const OBJECTS: &[Revision] = &[V2025_06_18, V2025_11_25];

#[test]
fn hints_are_left_out() {
    for method in ["tools/list", "prompts/list", "resources/list", "resources/templates/list", "resources/read"] {
        for (written, read) in [
            (r#"{"ttlMs":1,"cacheScope":"public","resultType":"complete"}"#, "{}"),
            (r#"{"ttlMs":1,"tools":[1.50],"cacheScope":"public"}"#, r#"{"tools":[1.50]}"#),
            (r#"{"ttlMs":1,"cacheScope":"public","a":"\u0061", "b" : 2}"#, r#"{"a":"\u0061", "b" : 2}"#),
            (r#"{"a":1, "ttlMs":1 ,"b":2,"cacheScope":null,"resultType":"complete","c":3}"#, r#"{"a":1 ,"b":2,"c":3}"#),
            (r#"{ "\u0074tlMs" : 1 , "a" : {"ttlMs":2} }"#, r#"{ "a" : {"ttlMs":2} }"#),
        ] {
            assert_shaped(method, written, &[(LEGACY, read)]);
        }
    }
    // These may well be members of the application's own.
    assert_shaped("tools/call", r#"{"ttlMs":1,"cacheScope":"public","content":[]}"#, &[]);
    assert_shaped("x/y", r#"{"ttlMs":1}"#, &[]);
}

#[test]
fn only_complete_goes_without_saying() {
    for method in ["tools/call", "prompts/get", "completion/complete", "x/y"] {
        assert_shaped(method, r#"{"resultType":"complete","a":1}"#, &[(LEGACY, r#"{"a":1}"#)]);
        assert_shaped(method, r#"{"resultType":"com\u0070lete"}"#, &[(LEGACY, "{}")]);
        assert_shaped(method, r#"{"resultType":"task","a":1}"#, &[]);
        assert_shaped(method, r#"{"a":{"resultType":"complete"}}"#, &[]);
    }
}

#[test]
fn audio_becomes_text_before_2025_03_26() {
    for (block, text) in [
        (r#"{"type":"audio","data":"AAAA","mimeType":"audio/wav"}"#, r#"{"type":"text","text":"[Audio: audio/wav]"}"#),
        (r#"{"data":"AAAA","type":"\u0061udio"}"#, r#"{"type":"text","text":"[Audio]"}"#),
        (
            r#"{"annotations":{"priority":0.50},"type":"audio","data":"AA","mimeType":"a\"b","_meta":{"x":1e2},"x":1}"#,
            r#"{"type":"text","text":"[Audio: a\"b]","annotations":{"priority":0.50},"_meta":{"x":1e2}}"#,
        ),
    ] {
        let call = |block| format!(r#"{{"content":[{{"type":"text","text":"a"}}, {block}],"isError":true}}"#);
        assert_shaped("tools/call", &call(block), &[(&[V2024_11_05], &call(text))]);
        let prompt = |block| format!(r#"{{"messages":[{{"role":"user","content":{block}}},{{"role":"user"}}]}}"#);
        assert_shaped("prompts/get", &prompt(block), &[(&[V2024_11_05], &prompt(text))]);
        assert_shaped("resources/read", &call(block), &[]);
        assert_shaped("x/y", &call(block), &[]);
    }
}

#[test]
fn links_become_text_before_2025_06_18() {
    for (block, text) in [
        (
            r#"{"type":"resource_link","uri":"file:///a","name":"a\u00e9","title":"A","size":1}"#,
            r#"{"type":"text","text":"a\u00e9: file:///a"}"#,
        ),
        (
            r#"{"name":"a","uri":"b:c","type":"resource_link","annotations":{"audience":["user"]}}"#,
            r#"{"type":"text","text":"a: b:c","annotations":{"audience":["user"]}}"#,
        ),
        (r#"{"uri":"b:c","type":"resource_link"}"#, r#"{"type":"text","text":"b:c"}"#),
    ] {
        let call = |block| format!(r#"{{"content":[{block},{block}]}}"#);
        assert_shaped("tools/call", &call(block), &[(UNSTRUCTURED, &call(text))]);
        let prompt = |block| format!(r#"{{"description":"d","messages":[{{"content":{block},"role":"user"}}]}}"#);
        assert_shaped("prompts/get", &prompt(block), &[(UNSTRUCTURED, &prompt(text))]);
    }
}

#[test]
fn what_every_revision_knows_is_not_touched() {
    for block in [
        r#"{"type":"text","text":"audio resource_link"}"#,
        r#"{"type":"image","data":"AA","mimeType":"image/png"}"#,
        r#"{"type":"resource","resource":{"uri":"a:b","text":"\"type\":\"audio\""}}"#,
        r#"{"type":"com.example/new","type2":"audio"}"#,
        r#""audio""#,
        r#"{"data":"AA"}"#,
        "7",
    ] {
        assert_shaped("tools/call", &format!(r#"{{"content":[{block}],"x":[1.0]}}"#), &[]);
        assert_shaped("prompts/get", &format!(r#"{{"messages":[{{"content":{block}}},{block}]}}"#), &[]);
    }
    for whole in ["{}", r#"{"content":{}}"#, r#"{"content":null}"#, r#"{"messages":{}}"#, r#"{"content":[]}"#] {
        assert_shaped("tools/call", whole, &[]);
        assert_shaped("prompts/get", whole, &[]);
        assert_shaped("tools/list", whole, &[]);
    }
}

#[test]
fn structured_content_becomes_text_where_there_is_no_other() {
    let text = r#"[{"type":"text","text":"{\"a\":[1.0,\"\\u00e9\"]}"}]"#;
    let structured = r#"{"a":[1.0,"\u00e9"]}"#;
    assert_shaped(
        "tools/call",
        &format!(r#"{{"structuredContent":{structured},"content":[],"isError":false}}"#),
        &[(UNSTRUCTURED, &format!(r#"{{"content":{text},"isError":false}}"#))],
    );
    assert_shaped(
        "tools/call",
        &format!(r#"{{"content":[ ],"structuredContent":{structured}}}"#),
        &[(UNSTRUCTURED, &format!(r#"{{"content":{text}}}"#))],
    );
    assert_shaped(
        "tools/call",
        &format!(r#"{{"resultType":"complete","structuredContent":{structured},"x":1}}"#),
        &[
            (UNSTRUCTURED, &format!(r#"{{"content":{text},"x":1}}"#)),
            (OBJECTS, &format!(r#"{{"structuredContent":{structured},"x":1}}"#)),
        ],
    );
    let both = format!(r#"{{"content":[{{"type":"text","text":"t"}}],"structuredContent":{structured}}}"#);
    assert_shaped("tools/call", &both, &[]);
    assert_shaped("prompts/get", &format!(r#"{{"structuredContent":{structured}}}"#), &[]);
}

/// 2026-07-28 allows any JSON there; 2025-06-18 and 2025-11-25 an object.
#[test]
fn structured_content_that_is_no_object() {
    for (value, quoted) in [("[1, 2]", "[1, 2]"), ("1.0", "1.0"), (r#""a""#, r#"\"a\""#), ("false", "false")] {
        let read = format!(r#"{{"content":[{{"type":"text","text":"{quoted}"}}]}}"#);
        let written = format!(r#"{{"content":[],"structuredContent":{value}}}"#);
        assert_shaped("tools/call", &written, &[(LEGACY, &read)]);
        assert_shaped("tools/call", &format!(r#"{{"structuredContent":{value}}}"#), &[(LEGACY, &read)]);
        let text = r#"{"content":[{"type":"text","text":"t"}]"#;
        let written = format!(r#"{text},"structuredContent":{value}}}"#);
        assert_shaped("tools/call", &written, &[(OBJECTS, &format!("{text}}}"))]);
    }
    assert_shaped("tools/call", r#"{"structuredContent":null}"#, &[(OBJECTS, "{}")]);
}

#[test]
fn an_output_schema_is_an_objects() {
    let tools = |schemas: [&str; 3]| {
        let tool =
            |(at, schema): (usize, &&str)| format!(r#"{{"name":"{at}"{schema},"inputSchema":{{"type":"object"}}}}"#);
        format!(
            r#"{{"tools":[{}],"nextCursor":"n"}}"#,
            schemas.iter().enumerate().map(tool).collect::<Vec<_>>().join(", ")
        )
    };
    let object = r#","outputSchema":{"properties":{},"type":"object"}"#;
    for other in [r#","outputSchema":{"type":"array"}"#, r#","outputSchema":{}"#, r#", "outputSchema" : true"#] {
        assert_shaped("tools/list", &tools([object, other, ""]), &[(OBJECTS, &tools([object, "", ""]))]);
    }
    assert_shaped("tools/list", &tools([object, "", object]), &[]);
    let nested = r#","outputSchema":{"properties":{"type":{"const":"object"}}}"#;
    assert_shaped("tools/list", &tools([nested, nested, ""]), &[(OBJECTS, &tools(["", "", ""]))]);
}

/// A text with one more change than another reads the same but for that change.
#[test]
fn changes_do_not_disturb_each_other() {
    let written = concat!(
        r#"{"resultType":"complete", "content" : [{"type":"audio","data":"A"},{"type":"resource_link","name":"n","uri":"u:v"}],"#,
        r#""structuredContent":[1],"big":12345678901234567890.10,"ttlMs":3}"#
    );
    let link = r#"{"type":"resource_link","name":"n","uri":"u:v"}"#;
    let rest = r#""big":12345678901234567890.10,"ttlMs":3}"#;
    let (audio, text) = (r#"{"type":"audio","data":"A"}"#, r#"{"type":"text","text":"n: u:v"}"#);
    let first = format!(r#"{{"content" : [{{"type":"text","text":"[Audio]"}},{text}],"structuredContent":[1],{rest}"#);
    let second = format!(r#"{{"content" : [{audio},{text}],"structuredContent":[1],{rest}"#);
    let later = format!(r#"{{"content" : [{audio},{link}],{rest}"#);
    let read: &[(&[_], &str)] = &[(&[V2024_11_05], &first), (&[V2025_03_26], &second), (OBJECTS, &later)];
    assert_shaped("tools/call", written, read);
}

/// The params of a question as a client of the revision reads them; `None` where nothing is touched.
fn ask(method: &str, revision: Revision, json: &str) -> Option<String> {
    let mut edits = Edits::default();
    question::edit(method, revision, json.as_bytes(), 0..json.len(), || "i\"d".to_owned(), &mut edits);
    applied(edits, json)
}

#[test]
fn an_elicitation_by_url_has_an_id_where_it_has_to() {
    let elicit = |revision, json| ask("elicitation/create", revision, json);
    let url = r#"{"mode" : "url" ,"message":"m","url":"u:v"}"#;
    let with_id = r#"{"mode" : "url","elicitationId":"i\"d" ,"message":"m","url":"u:v"}"#;
    assert_eq!(elicit(V2025_11_25, url).as_deref(), Some(with_id));
    let own = r#"{"message":"m","elicitationId":"own","mode":"url"}"#;
    assert_eq!(elicit(V2025_11_25, own), None);
    assert_eq!(elicit(V2026_07_28, own).as_deref(), Some(r#"{"message":"m","mode":"url"}"#));
    assert_eq!(elicit(V2026_07_28, url), None);
    for form in [r#"{"mode":"form","elicitationId":"own"}"#, r#"{"elicitationId":"own"}"#, r#"{"message":"url"}"#] {
        for revision in Revision::ALL {
            assert_eq!(elicit(revision, form), None);
            assert_eq!(ask("x/y", revision, url), None);
        }
    }
}

#[test]
fn a_message_for_sampling_has_one_block_before_2025_11_25() {
    let sample = |revision, json: &str| ask("sampling/createMessage", revision, json);
    let (audio, text) = (r#"{"type":"audio","data":"AA","mimeType":"a/b"}"#, r#"{"type":"text","text":"t"}"#);
    let became = r#"{"type":"text","text":"[Audio: a/b]"}"#;
    let of = |messages: &str| format!(r#"{{"maxTokens":1e1,"messages":[{messages}],"x":[]}}"#);
    let message = |content: &str| format!(r#"{{"role":"user","content":{content}, "_meta":{{}}}}"#);

    let many = of(&[message(text), message(&format!("[{text}, {audio}]"))].join(","));
    let split = |audio: &str| of(&[message(text), message(text), message(audio)].join(","));
    assert_eq!(sample(V2024_11_05, &many), Some(split(became)));
    for revision in [V2025_03_26, V2025_06_18] {
        assert_eq!(sample(revision, &many), Some(split(audio)));
    }
    for revision in [V2025_11_25, V2026_07_28] {
        assert_eq!(sample(revision, &many), None);
    }
    let single = of(&message(audio));
    assert_eq!(sample(V2024_11_05, &single), Some(of(&message(became))));
    for revision in Revision::ALL {
        assert_eq!(sample(revision, &single).is_some(), revision == V2024_11_05);
        for same in [of(&message(text)), of(&message("[]")), of("7"), of(""), "{}".to_owned()] {
            assert_eq!(sample(revision, &same), None, "{same}");
        }
    }
}

#[test]
fn what_a_round_asks_is_shaped_where_it_stands() {
    let required = |params: &str| {
        format!(
            r#"{{"resultType":"input_required","inputRequests":{{"a":{{"params":{params},"method":"elicitation/create"}},"b":{{"method":"roots/list"}}}}}}"#
        )
    };
    let written = required(r#"{"mode":"url","elicitationId":"own","message":"m"}"#);
    let read = required(r#"{"mode":"url","message":"m"}"#);
    assert_eq!(applied(input_required(V2026_07_28, written.as_bytes()), &written), Some(read));
    let other = written.replace("elicitation/create", "x/create");
    assert_eq!(applied(input_required(V2026_07_28, other.as_bytes()), &other), None);
}
