use super::*;

#[test]
fn members_are_visited_with_their_spans() {
    let text = b" {\"a\" : [1,{\"x\":2}],\"\\u005fmeta\":{} , \"b\\n\":\"}\"} ";
    let mut seen = Vec::new();
    let walk = members(text, |key, span| {
        let value = span.get(text).unwrap();
        seen.push((
            String::from_utf8(key.to_vec()).unwrap(),
            String::from_utf8(value.to_vec()).unwrap(),
        ));
    });
    assert_eq!(
        walk,
        Ok(Walk {
            is_object: true,
            has_line_break: false
        })
    );
    let seen: Vec<_> = seen
        .iter()
        .map(|(key, value)| (key.as_str(), value.as_str()))
        .collect();
    assert_eq!(
        seen,
        [("a", "[1,{\"x\":2}]"), ("_meta", "{}"), ("b\\n", "\"}\"")]
    );
}
