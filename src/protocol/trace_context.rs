//! The grammars of W3C Trace Context and W3C Baggage, which `_meta` may carry.

use super::token::is_tchar;

/// Bytes of a `tracestate` or a `baggage` at most: what W3C Baggage has every platform pass on.
const MOST_BYTES: usize = 8192;

/// Members of a `tracestate` at most.
const MOST_MEMBERS: usize = 32;

/// White space that may stand around an item: HTTP's, and no other.
const BLANKS: [char; 2] = [' ', '\t'];

/// Whether it is a `traceparent`: of version 00, or of a later one that begins like it.
pub(crate) fn is_traceparent(text: &str) -> bool {
    let mut parts = text.splitn(5, '-');
    let mut next = |length| parts.next().filter(|part| part.len() == length && part.bytes().all(is_hex));
    let (Some(version), Some(trace), Some(parent), Some(_flags)) = (next(2), next(32), next(16), next(2)) else {
        return false;
    };
    let is_set = |id: &str| id.bytes().any(|byte| byte != b'0');
    version != "ff" && is_set(trace) && is_set(parent) && (version != "00" || parts.next().is_none())
}

/// Whether it is a `tracestate`: a list of `key=value`, of which some may be empty.
pub(crate) fn is_tracestate(text: &str) -> bool {
    let mut members = text.split(',').map(|member| member.trim_matches(BLANKS)).filter(|member| !member.is_empty());
    let are_members = text.len() <= MOST_BYTES && members.clone().all(is_state);
    are_members && members.next().is_some() && members.count() < MOST_MEMBERS
}

/// Whether it is a `baggage`: a list of `key=value`, each with properties.
pub(crate) fn is_baggage(text: &str) -> bool {
    text.len() <= MOST_BYTES && text.split(',').all(is_item)
}

fn is_state(member: &str) -> bool {
    let Some((key, value)) = member.split_once('=') else {
        return false;
    };
    let (tenant, system) = key.split_once('@').map_or((key, None), |(tenant, system)| (tenant, Some(system)));
    let is_key = match system {
        None => is_state_key(tenant, 256),
        Some(system) => is_state_key(tenant, 241) && is_state_key(system, 14),
    };
    let is_value = |byte| matches!(byte, b' '..=b'~') && byte != b'=' && byte != b',';
    is_key && (1..=256).contains(&value.len()) && value.bytes().all(is_value)
}

fn is_state_key(key: &str, most: usize) -> bool {
    let is_simple = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let begins = key.bytes().next().is_some_and(is_simple);
    begins && key.len() <= most && key.bytes().all(|byte| is_simple(byte) || b"_-*/".contains(&byte))
}

fn is_item(member: &str) -> bool {
    // Around an item there may be blanks; line breaks, which `trim` would take away as well, are part of none.
    let mut parts = member.split(';').map(|part| part.trim_matches(BLANKS));
    let is_pair = |part: &str| {
        part.split_once('=').is_some_and(|(key, value)| {
            is_token(key.trim_end_matches(BLANKS)) && is_baggage_value(value.trim_start_matches(BLANKS))
        })
    };
    parts.next().is_some_and(is_pair) && parts.all(|property| is_token(property) || is_pair(property))
}

fn is_token(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(is_tchar)
}

fn is_baggage_value(value: &str) -> bool {
    value.bytes().all(|byte| matches!(byte, b'!'..=b'~') && !b"\",;\\".contains(&byte))
}

const fn is_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

#[cfg(test)]
mod tests {
    use super::*;

    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";

    #[test]
    fn a_traceparent_has_four_parts_in_small_hex() {
        assert!(is_traceparent(PARENT));
        assert!(is_traceparent(&PARENT.replace("00-0", "cc-0")), "a later version");
        assert!(is_traceparent(&format!("{}-what-follows", PARENT.replace("00-0", "cc-0"))), "and what it adds");
        for wrong in [
            "",
            "00",
            &format!("{PARENT}-x"),
            &format!("{PARENT} "),
            &PARENT.to_uppercase(),
            &PARENT.replace("00-0", "ff-0"),
            &PARENT.replace("0af7651916cd43dd8448eb211c80319c", "00000000000000000000000000000000"),
            &PARENT.replace("00f067aa0ba902b7", "0000000000000000"),
            &PARENT.replace("-01", "-1"),
            &PARENT.replace("-01", "-0g"),
            "00-0af7651916cd43dd8448eb211c80319c00f067aa0ba902b7-01",
        ] {
            assert!(!is_traceparent(wrong), "{wrong}");
        }
    }

    #[test]
    fn a_tracestate_is_a_list_of_keys_and_values() {
        for right in ["rojo=00f067aa0ba902b7,congo=t61rcWkgMzE", "a=1, ,\tb=2", "tenant@system=x y", "1a/b*c-d_e=~"] {
            assert!(is_tracestate(right), "{right}");
        }
        let many = |count| vec!["a=1"; count].join(",");
        assert!(is_tracestate(&many(32)) && !is_tracestate(&many(33)));
        for wrong in ["", ",", "a", "a=", "A=1", "=1", "@a=1", "a@=1", "a=1=2", "a=\u{e4}", "a=\n", "*a=1"] {
            assert!(!is_tracestate(wrong), "{wrong:?}");
        }
    }

    #[test]
    fn a_baggage_is_a_list_of_keys_values_and_properties() {
        for right in ["userId=alice,serverNode=DF%2028,isProduction=false", "a = 1 ; p ;q=2,b=", "k=x=y"] {
            assert!(is_baggage(right), "{right}");
        }
        let long = format!("a={}", "x".repeat(8190));
        assert!(is_baggage(&long) && !is_baggage(&format!("{long}x")));
        for wrong in [
            "",
            "a",
            "a=1,",
            "a=\"x\"",
            "a=x y",
            "a b=1",
            "a=1;",
            "a=\\",
            "a=\u{e4}",
            "\r\n=x",
            "a\n=1",
            "a=\r\nb",
            "a=\u{a0}1",
        ] {
            assert!(!is_baggage(wrong), "{wrong:?}");
        }
    }
}
