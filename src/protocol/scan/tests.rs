use serde::de::IgnoredAny;

use super::*;

const CAPS: Caps = Caps { nesting: 128, elements: 100 };

/// One of everything: each kind of token, white space of each kind, every level that is entered by a call.
const SAMPLE: &str = concat!(
    r#"{"jsonrpc":"2.0","id":-1.5e+3,"method":"a\u0041\n","params":{"_meta":{"k":[true,false,null,{}],"#,
    r#""progressToken":0},"name":"x"}, "z" : [ ],"#,
    "\t\r\n\"\u{e9}\":\"over eight bytes \u{1f600}\\\\\"}",
);

fn scan(text: impl AsRef<[u8]>) -> Result<Scanned, Fault> {
    super::scan(text.as_ref(), CAPS)
}

fn object(text: &str) -> Members {
    match scan(text) {
        Ok(Scanned::Object(members)) => members,
        other => panic!("{text}: {other:?}"),
    }
}

fn array(text: &str, elements: usize) -> Elements {
    match super::scan(text.as_bytes(), Caps { elements, ..CAPS }) {
        Ok(Scanned::Array(elements)) => elements,
        other => panic!("{text}: {other:?}"),
    }
}

#[track_caller]
fn agrees_with_serde_json(text: &[u8]) {
    let theirs = serde_json::from_slice::<IgnoredAny>(text).is_ok();
    let shown = String::from_utf8_lossy(text);
    assert_eq!(scan(text).is_ok(), theirs, "scan: {shown}");
    assert_eq!(members(text, |_, _| ()).is_ok(), theirs, "members: {shown}");
}

#[test]
fn every_mutant_is_judged_as_serde_json_does() {
    assert!(scan(SAMPLE).is_ok());
    for sample in [SAMPLE.to_owned(), format!("[{SAMPLE},1]")] {
        for at in 0..sample.len() {
            for byte in 0..=0x7f {
                let mut mutant = sample.clone().into_bytes();
                mutant[at] = byte;
                agrees_with_serde_json(&mutant);
            }
        }
    }
}

#[test]
fn every_insertion_and_deletion_is_judged_as_serde_json_does() {
    for at in 0..SAMPLE.len() {
        let mut mutant = SAMPLE.as_bytes().to_vec();
        mutant.remove(at);
        agrees_with_serde_json(&mutant);
        for byte in *b"\"\\{}[],: -0e.\n\x00\x7f" {
            let mut mutant = SAMPLE.as_bytes().to_vec();
            mutant.insert(at, byte);
            agrees_with_serde_json(&mutant);
        }
    }
}

#[test]
fn every_truncation_is_a_syntax_error() {
    for sample in [SAMPLE.to_owned(), format!("[1,{SAMPLE}]"), "\"text\"".to_owned(), "true".to_owned()] {
        for end in 0..sample.len() {
            assert_eq!(scan(&sample.as_bytes()[..end]).unwrap_err(), Fault::Syntax, "{sample} cut at {end}");
        }
    }
}

#[test]
fn tokens_are_judged_as_serde_json_does() {
    let words = [
        "0",
        "-0",
        "00",
        "01",
        "-",
        "--1",
        "+1",
        "1.",
        ".5",
        "1.5",
        "-1.50",
        "1e",
        "1e5",
        "1E+05",
        "1e-",
        "1e999",
        "1.e1",
        "0x1",
        "1 2",
        "NaN",
        "Infinity",
        "true",
        "tru",
        "True",
        "nulll",
        "null",
        "false",
        "'a'",
        "\"\\u12g4\"",
        "\"\\u123\"",
        "\"\\ud800\"",
        "\"\\x41\"",
        "\"\\",
        "\"\t\"",
        "\"\u{7f}\"",
        "[1,]",
        "[,1]",
        "[1 2]",
        "{\"a\"}",
        "{\"a\":}",
        "{\"a\":1,}",
        "{,}",
        "{a:1}",
        "{\"a\":1 \"b\":2}",
        "[}",
        "{]",
        "[[]",
        "[]]",
        "",
        " ",
        "/**/1",
        "{\"\\ud800\":1}",
        "\u{a0}1",
        "[\"\\u002b41\"]",
    ];
    for word in words {
        for text in [word.to_owned(), format!("[{word}]"), format!("{{\"k\":{word}}}"), format!(" {word}\r\n")] {
            agrees_with_serde_json(text.as_bytes());
        }
    }
}

#[test]
fn a_string_ends_right_wherever_its_bytes_fall() {
    for before in 0..20 {
        for byte in 0..=0x7f_u8 {
            for after in [0, 1, 7, 8, 15] {
                let mut text = format!("\"{}", "a".repeat(before)).into_bytes();
                text.push(byte);
                text.extend(std::iter::repeat_n(b'b', after));
                text.push(b'"');
                agrees_with_serde_json(&text);
            }
        }
    }
}

/// `depth` arrays, or objects, in one another.
fn nested(open: &str, close: &str, depth: usize) -> String {
    format!("{}{}", open.repeat(depth).trim_end_matches("\"a\":"), close.repeat(depth))
}

#[test]
fn nesting_counts_every_container_from_the_outermost() {
    // what stands around the nested value, and how many containers that is
    let places = [
        ("", "", 0),
        ("[1,", "]", 1),
        ("[{\"id\":", "}]", 2),
        ("{\"id\":", "}", 1),
        ("{\"result\":", "}", 1),
        ("{\"unknown\":[1,", "]}", 2),
        ("{\"params\":{\"x\":", "}}", 2),
        ("{\"params\":{\"arguments\":", "}}", 2),
        ("{\"params\":{\"_meta\":{\"x\":", "}}}", 3),
        ("[{\"params\":{\"_meta\":{\"progressToken\":", "}}}]", 4),
    ];
    for (before, after, outside) in places {
        for (open, close) in [("[", "]"), ("{\"a\":", "}")] {
            for limit in [outside.max(1), 5, 127, 128, 1_000] {
                let caps = Caps { nesting: u32::try_from(limit).unwrap(), ..CAPS };
                let most = limit.min(128) - outside;
                for (depth, fits) in [(most, true), (most + 1, false), (50_000, false)] {
                    if depth == 0 {
                        continue;
                    }
                    let text = format!("{before}{}{after}", nested(open, close, depth));
                    let scanned = super::scan(text.as_bytes(), caps).map(drop);
                    let expected = if fits { Ok(()) } else { Err(Fault::Nesting) };
                    assert_eq!(scanned, expected, "{depth} of {open} in {before}…{after}, limit {limit}");
                }
            }
        }
    }
}

#[test]
fn nesting_is_about_open_containers_not_about_their_number() {
    let caps = Caps { nesting: 2, ..CAPS };
    assert!(super::scan(format!("[{}1]", "{},[],".repeat(1_000)).as_bytes(), caps).is_ok());
    assert_eq!(super::scan(b"{}", Caps { nesting: 0, ..CAPS }).unwrap_err(), Fault::Nesting);
    assert!(super::scan(b"1", Caps { nesting: 0, ..CAPS }).is_ok());
    // brackets that never close are the same fault, and cost no stack
    assert_eq!(scan("[".repeat(1_000_000)).unwrap_err(), Fault::Nesting);
    assert_eq!(scan("{\"params\":".repeat(1_000_000)).unwrap_err(), Fault::Nesting);
    assert_eq!(members("[".repeat(1_000_000).as_bytes(), |_, _| ()), Err(Fault::Nesting));
}

#[test]
fn containers_close_with_their_own_bracket_at_any_depth() {
    let kinds: Vec<bool> = (0..128).map(|n| n % 3 == 0 || n % 7 == 2).collect();
    let open: String = kinds.iter().map(|object| if *object { "{\"a\":" } else { "[" }).collect();
    let close: String = kinds.iter().rev().map(|object| if *object { "}" } else { "]" }).collect();
    assert!(scan(format!("{open}1{close}")).is_ok());
    for at in 0..close.len() {
        let mut close = close.clone().into_bytes();
        close[at] = if close[at] == b'}' { b']' } else { b'}' };
        let text = format!("{open}1{}", String::from_utf8(close).unwrap());
        assert_eq!(scan(text).unwrap_err(), Fault::Syntax, "{at}");
    }
}

#[test]
fn each_member_is_found() {
    let text = r#" { "jsonrpc":1, "id" : 2 ,"method":"3","result":4,"error":[5],"level":0,"_meta":0,
        "params":{"name":"a","uri":"b","taskId":"c","arguments":{"name":0},"inputResponses":{},"requestState":"d",
        "level":"e","cursor":"f","requestId":7,"jsonrpc":0,"io.modelcontextprotocol/protocolVersion":0,
        "_meta" : {"io.modelcontextprotocol/protocolVersion":"v","io.modelcontextprotocol/clientCapabilities":{"x":1},
        "io.modelcontextprotocol/clientInfo":{"y":2},"io.modelcontextprotocol/logLevel":"info","progressToken":8,
        "id":0, "other":[] } } } "#;
    let m = object(text);
    let params_at = text.find("{\"name\":\"a\"").unwrap();
    let params = text[params_at..].trim_end().strip_suffix('}').unwrap().trim_end();
    let meta_at = text.find("{\"io.model").unwrap();
    let meta = params[meta_at - params_at..].strip_suffix('}').unwrap().trim_end();
    let found = [
        (m.jsonrpc, "1"),
        (m.id, "2"),
        (m.method, "\"3\""),
        (m.result, "4"),
        (m.error, "[5]"),
        (m.params, params),
        (m.name, "\"a\""),
        (m.uri, "\"b\""),
        (m.task_id, "\"c\""),
        (m.arguments, "{\"name\":0}"),
        (m.input_responses, "{}"),
        (m.request_state, "\"d\""),
        (m.level, "\"e\""),
        (m.cursor, "\"f\""),
        (m.request_id, "7"),
        (m.meta, meta),
        (m.version, "\"v\""),
        (m.client_capabilities, "{\"x\":1}"),
        (m.client_info, "{\"y\":2}"),
        (m.log_level, "\"info\""),
        (m.progress_token, "8"),
    ];
    for (span, expected) in found {
        assert_eq!(span.get(text.as_bytes()), Some(expected.as_bytes()));
        assert_eq!(&text[span.range()], expected);
    }
    assert_eq!(m.duplicate, None);
}

#[test]
fn a_member_that_is_absent_or_elsewhere_is_not_found() {
    for text in ["{}", r#"{"params":[{"name":1}]}"#, r#"{"params":{"_meta":[{"progressToken":1}]}}"#] {
        let m = object(text);
        assert!(!m.name.is_some() && !m.progress_token.is_some() && !m.id.is_some(), "{text}");
        assert_eq!(m.name.get(text.as_bytes()), None);
        assert!(m.name.range().is_empty());
    }
}

#[test]
fn a_byte_order_mark_is_skipped_and_counted() {
    let text = "\u{feff} {\"id\":7}";
    assert_eq!(object(text).id.get(text.as_bytes()), Some(&b"7"[..]));
    let text = "\u{feff}[{\"id\":7}]";
    let kept = array(text, 1).kept[0];
    assert_eq!(&text[kept.span.range()], "{\"id\":7}");
    for broken in ["\u{feff}", "\u{feff}\u{feff}{}", " \u{feff}{}", "{}\u{feff}", "[\u{feff}1]"] {
        assert_eq!(scan(broken).unwrap_err(), Fault::Syntax, "{broken:?}");
    }
    assert_eq!(scan(b"\xef\xbb{}").unwrap_err(), Fault::Syntax);
}

#[test]
fn doubled_names_are_seen_after_unescaping() {
    let version = "io.modelcontextprotocol/protocolVersion";
    let places = [
        ("{", "}", &["jsonrpc", "method", "params"][..], Some(Duplicate::Member)),
        ("{", "}", &["id"], Some(Duplicate::Id)),
        ("{", "}", &["result", "error", "other", "name", "_meta"], None),
        (
            "{\"params\":{",
            "}}",
            &["_meta", "name", "uri", "taskId", "arguments", "inputResponses", "requestState"],
            Some(Duplicate::Member),
        ),
        ("{\"params\":{", "}}", &["id", "method", "level", "cursor", "requestId", "other", version], None),
        ("{\"params\":{\"_meta\":{", "}}}", &[version], Some(Duplicate::Member)),
        ("{\"params\":{\"_meta\":{", "}}}", &["progressToken", "name", "_meta"], None),
        ("{\"params\":{\"arguments\":{", "}}}", &["name", "_meta", version], None),
    ];
    for (before, after, names, expected) in places {
        for name in names {
            let first = name.chars().next().unwrap();
            let last = name.chars().last().unwrap();
            let slash = name.replace('/', "\\/");
            let lower = format!("\\u{:04x}{}", u32::from(first), &name[1..]);
            let upper = format!("{}\\u{:04X}", &name[..name.len() - 1], u32::from(last));
            for again in [*name, &slash, &lower, &upper] {
                for (one, two) in [(*name, again), (again, *name)] {
                    let text = format!("{before}\"{one}\":{{}},\"{two}\":[]{after}");
                    assert_eq!(object(&text).duplicate, expected, "{text}");
                }
            }
            let text = format!("{before}\"{name}\":1{after}");
            assert_eq!(object(&text).duplicate, None, "{text}");
        }
    }
}

#[test]
fn a_doubled_id_outweighs_other_doubles() {
    for text in [r#"{"id":1,"id":2,"method":1,"method":2}"#, r#"{"method":1,"method":2,"id":1,"id":2}"#] {
        assert_eq!(object(text).duplicate, Some(Duplicate::Id), "{text}");
    }
}

#[test]
fn names_that_only_look_alike_are_other_names() {
    let long = format!("{{\"id\":1,\"\\u0069d{}\":2,\"ID\":3,\"id \":4,\"\":5}}", "d".repeat(200));
    for text in [
        long.as_str(),
        r#"{"id":1,"\\u0069d":2,"i\\d":3,"\u0169d":4,"i\u0064\u0000":5,"\ud800":6,"i\u0064\n":7,"\uff49d":8}"#,
        r#"{"id":1,"\u0069":2,"id\"":3,"\u00e9d":4,"\u0069\ud83d\ude00":5}"#,
    ] {
        let m = object(text);
        assert_eq!((m.duplicate, m.id.get(text.as_bytes())), (None, Some(&b"1"[..])), "{text}");
    }
}

#[test]
fn elements_past_the_cap_are_checked_and_counted() {
    let text = r#"[ {"id":1,"params":{"name":"a"}} , 2, [{"id":3}], {"id":4} ]"#;
    for cap in [0, 1, 3, 4, 100] {
        let elements = array(text, cap);
        assert_eq!((elements.len(), elements.kept.len()), (4, cap.min(4)));
    }
    let texts: Vec<&str> = array(text, 4).kept.iter().map(|element| &text[element.span.range()]).collect();
    assert_eq!(texts, [r#"{"id":1,"params":{"name":"a"}}"#, "2", r#"[{"id":3}]"#, r#"{"id":4}"#]);
    let ids: Vec<Option<&[u8]>> = array(text, 4)
        .kept
        .iter()
        .map(|element| element.members.and_then(|members| members.id.get(element.span.get(text.as_bytes()).unwrap())))
        .collect();
    assert_eq!(ids, [Some(&b"1"[..]), None, None, Some(b"4")]);

    assert_eq!(array("[ ]", 4).len(), 0);
    for broken in ["[1,2,3,]", "[1,2,3,{\"a\"}]", "[1,2,3", "[1 2]"] {
        let scanned = super::scan(broken.as_bytes(), Caps { elements: 1, ..CAPS });
        assert_eq!(scanned.unwrap_err(), Fault::Syntax, "{broken}");
    }
    let deep = format!("[1,2,{}{}]", "[".repeat(128), "]".repeat(128));
    assert_eq!(super::scan(deep.as_bytes(), Caps { elements: 1, ..CAPS }).unwrap_err(), Fault::Nesting);
}

#[test]
fn members_are_visited_in_order_with_their_spans() {
    let text = b" {\"a\" : [1,{\"x\":2}],\"\\u005fmeta\":{} , \"b\\n\":\"}\",\"a\":null} ";
    let mut seen = Vec::new();
    let walk = members(text, |key, span| {
        let value = span.get(text).unwrap();
        seen.push((String::from_utf8(key.to_vec()).unwrap(), String::from_utf8(value.to_vec()).unwrap()));
    });
    assert_eq!(walk, Ok(Walk { is_object: true, has_line_break: false }));
    let seen: Vec<_> = seen.iter().map(|(key, value)| (key.as_str(), value.as_str())).collect();
    assert_eq!(seen, [("a", "[1,{\"x\":2}]"), ("_meta", "{}"), ("b\\n", "\"}\""), ("a", "null")]);
}

#[test]
fn a_walk_tells_objects_and_line_breaks() {
    let cases = [
        ("{}", true, false),
        ("[{\"a\":1}]", false, false),
        ("\"{}\"", false, false),
        ("{\"a\":\"\\n\\r\", \t\"b\":1}", true, false),
        ("\n{}", true, true),
        ("{}\r", true, true),
        ("{\n}", true, true),
        ("{\"a\"\n:1}", true, true),
        ("{\"a\":\r1}", true, true),
        ("{\"a\":1\n}", true, true),
        ("{\"a\":[[{\"b\":1,\n\"c\":2}]]}", true, true),
        ("{\"a\":[\n]}", true, true),
        ("[1,\n2]", false, true),
        ("\n1", false, true),
    ];
    for (text, is_object, has_line_break) in cases {
        let walk = members(text.as_bytes(), |_, _| assert!(is_object));
        assert_eq!(walk, Ok(Walk { is_object, has_line_break }), "{text:?}");
    }
    for broken in ["", "{", "{}}", "{} {}", "\u{feff}{}", "{\"a\":1,}", "[1", "nul"] {
        assert_eq!(members(broken.as_bytes(), |_, _| ()), Err(Fault::Syntax), "{broken:?}");
    }
}

#[test]
fn a_span_moves_with_its_text() {
    let span = object("{\"id\":12}").id;
    assert_eq!(span.offset(3).get(b"xyz{\"id\":12}"), Some(&b"12"[..]));
    assert_eq!(span.get(b"short"), None);
    assert_eq!(Span::default().offset(3), Span::default());
}

#[test]
fn bytes_that_are_no_text_do_no_harm() {
    // xorshift: the same bytes in every run
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut random = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        usize::try_from(state >> 33).unwrap()
    };
    for _ in 0..20_000 {
        let mut text = SAMPLE.as_bytes().to_vec();
        for _ in 0..1 + random() % 4 {
            let at = random() % text.len();
            match random() % 3 {
                0 => text[at] = u8::try_from(random() % 256).unwrap(),
                1 => text.truncate(at.max(1)),
                _ => {
                    let from = random() % text.len();
                    text.copy_within(from.min(at)..from.max(at), 0);
                }
            }
        }
        // serde_json looks at UTF-8 only where it makes a string
        if std::str::from_utf8(&text).is_ok() {
            agrees_with_serde_json(&text);
        } else {
            let _ = scan(&text);
        }
    }
}
