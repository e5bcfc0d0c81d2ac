use super::*;

#[test]
fn a_result_is_complete_unless_it_says_otherwise() {
    assert_eq!(stamped(&json!({}), PLAIN), r#"{"resultType":"complete"}"#);
    assert_eq!(stamped(&raw("{ }"), PLAIN), r#"{ "resultType":"complete"}"#);
    assert_eq!(stamped(&json!({"a": "{"}), PLAIN), r#"{"a":"{","resultType":"complete"}"#);
    assert_eq!(stamped(&json!({"resultType": "x"}), PLAIN), r#"{"resultType":"x"}"#);
    assert_eq!(stamped(&raw(r#"{"result\u0054ype":"x"}"#), PLAIN), r#"{"result\u0054ype":"x"}"#);
}

#[test]
fn the_server_is_named_in_meta() {
    let done = json!({"resultType": "complete"});
    assert_eq!(
        identified(&done),
        r#"{"resultType":"complete","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}}}"#
    );
    assert_eq!(
        identified(&raw(r#"{"_meta":{},"resultType":"x"}"#)),
        r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s"}},"resultType":"x"}"#
    );
    assert_eq!(
        identified(&raw(r#"{"_meta": { "k": "{" } , "resultType":"x"}"#)),
        r#"{"_meta": { "k": "{" ,"io.modelcontextprotocol/serverInfo":{"name":"s"}} , "resultType":"x"}"#
    );
    assert_eq!(stamped(&done, PLAIN), r#"{"resultType":"complete"}"#);
}

#[test]
fn a_name_the_handler_gave_stays() {
    for text in [
        r#"{"_meta":{"io.modelcontextprotocol/serverInfo":{"name":"mine"}},"resultType":"complete"}"#,
        r#"{"_meta":{"io.modelcontextprotocol\/serverInfo":null},"resultType":"complete"}"#,
    ] {
        assert_eq!(identified(&raw(text)), text);
        let typed: BTreeMap<&str, &RawValue> = serde_json::from_str(text).unwrap();
        assert_eq!(identified(&typed), text);
    }
    // the key elsewhere is no name
    let elsewhere = json!({SERVER_INFO: 1, "_meta": {"a": {SERVER_INFO: 1}}});
    assert!(identified(&elsewhere).contains(r#"{"name":"s"}"#));
}

#[test]
fn a_method_that_is_not_cacheable_gets_nothing() {
    let own = json!({"resultType": "complete", "ttlMs": -1, "cacheScope": 3});
    assert_eq!(cached(&own, CacheRule::None), own);
    assert_eq!(cached(&json!({}), CacheRule::None), json!({"resultType": "complete"}));
}

#[test]
fn cache_hints_are_added_where_missing() {
    let default = json!({"resultType": "complete", "ttlMs": 0, "cacheScope": "private"});
    assert_eq!(cached(&json!({}), CacheRule::Default), default);
    assert_eq!(cached(&json!({"resultType": "complete"}), CacheRule::Default), default);
    assert_eq!(cached(&json!({"ttlMs": 5}), CacheRule::Default)["cacheScope"], "private");
    assert_eq!(cached(&json!({"cacheScope": "public"}), CacheRule::Default)["ttlMs"], 0);
}

#[test]
fn valid_cache_hints_stay() {
    for (ttl, scope) in [("0", r#""public""#), ("60000", r#""private""#), ("18446744073709551615", r#""pu\u0062lic""#)]
    {
        let text = format!(r#"{{"ttlMs":{ttl},"cacheScope":{scope},"resultType":"complete"}}"#);
        assert_eq!(stamped(&raw(&text), Stamp { cache: CacheRule::Default, ..PLAIN }), text);
    }
}

#[test]
fn invalid_cache_hints_are_replaced_in_their_place() {
    for ttl in ["-1", "-0", "1.5", "1.0", "1e3", "99999999999999999999", "\"5\"", "null", "[1,2]", "{}"] {
        let text = format!(r#"{{"ttlMs":{ttl},"a":1,"cacheScope":"public","resultType":"complete"}}"#);
        let want = r#"{"ttlMs":0,"a":1,"cacheScope":"public","resultType":"complete"}"#;
        assert_eq!(stamped(&raw(&text), Stamp { cache: CacheRule::Default, ..PLAIN }), want, "{ttl}");
    }
    for scope in ["\"Public\"", "\"\"", "\"shared\"", "null", "true", "{\"public\":[]}", "\"\\ud800\""] {
        let text = format!(r#"{{"cacheScope": {scope} ,"ttlMs": 7}}"#);
        let want = r#"{"cacheScope": "private" ,"ttlMs": 7,"resultType":"complete"}"#;
        assert_eq!(parse(stamped_unparsed(&text).as_bytes()), parse(want.as_bytes()), "{scope}");
    }

    // a lone surrogate is JSON that serde_json cannot put in a `Value`
    fn stamped_unparsed(text: &str) -> String {
        let mut reply = Reply::write(&raw(text)).unwrap();
        reply.stamp(&Stamp { cache: CacheRule::Default, ..PLAIN });
        String::from_utf8(reply.json().to_vec()).unwrap()
    }
}

#[test]
fn what_must_not_be_cached_never_is() {
    let own = json!({"ttlMs": 60000, "cacheScope": "public", "z": 1});
    let want = json!({"ttlMs": 0, "cacheScope": "private", "z": 1, "resultType": "complete"});
    assert_eq!(cached(&own, CacheRule::Never), want);
    assert_eq!(cached(&json!({"z": 1}), CacheRule::Never), want);
}

#[test]
fn a_result_that_is_not_complete_keeps_what_it_has() {
    for rule in [CacheRule::Default, CacheRule::Never] {
        for own in [json!({"resultType": "input_required"}), json!({"resultType": "x", "ttlMs": -5, "cacheScope": 1})] {
            assert_eq!(cached(&own, rule), own);
        }
    }
}

#[test]
fn all_edits_together_find_their_places() {
    let text = r#"{"ttlMs":"a long one","_meta":{"k":[1]},"cacheScope":9,"last":{}}"#;
    let all = Stamp { server_info: Some(br#"{"name":"s"}"#), cache: CacheRule::Default };
    let want = r#"{"ttlMs":0,"_meta":{"k":[1],"io.modelcontextprotocol/serverInfo":{"name":"s"}},"cacheScope":"private","last":{},"resultType":"complete"}"#;
    assert_eq!(stamped(&raw(text), all), want);
    let typed: BTreeMap<&str, Value> = serde_json::from_str(text).unwrap();
    assert_eq!(parse(stamped(&typed, all).as_bytes()), parse(want.as_bytes()));
}
