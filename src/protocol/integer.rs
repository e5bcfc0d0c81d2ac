//! Integers as JSON writes them, read by their digits and never through a float.

/// The largest integer that an IEEE 754 double holds exactly with all below it, 2^53 − 1.
const SAFE_MAX: u64 = 9_007_199_254_740_991;
/// How many digits `SAFE_MAX` has: a longer integer is out of range whatever its digits are.
const SAFE_DIGITS: i64 = 16;

/// What a JSON number is, judged by its value: `42`, `42.0` and `4.2e1` are one integer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Number {
    /// An integer within ±(2^53 − 1).
    Integer(i64),
    /// An integer beyond that.
    OutOfRange,
    /// Not an integer.
    Fraction,
}

impl Number {
    /// Reads a number in JSON's grammar; `None` if the text is none.
    ///
    /// The time taken is linear in the text, whatever its exponent says.
    pub(crate) fn parse(text: &str) -> Option<Self> {
        let unsigned = text.strip_prefix('-').unwrap_or(text);
        let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
            Some((mantissa, exponent)) => (mantissa, parse_exponent(exponent)?),
            None => (unsigned, 0),
        };
        let (whole, fraction) = match mantissa.split_once('.') {
            Some((whole, fraction)) => (whole, Some(fraction)),
            None => (mantissa, None),
        };
        let leading_zero = whole.len() > 1 && whole.starts_with('0');
        if !is_digits(whole) || leading_zero || !fraction.is_none_or(is_digits) {
            return None;
        }
        let magnitude = Self::magnitude(whole, fraction.unwrap_or_default(), exponent);
        Some(match magnitude {
            Self::Integer(value) if text.starts_with('-') => Self::Integer(-value),
            other => other,
        })
    }

    /// The value of `whole.fraction × 10^exponent`, all three checked.
    fn magnitude(whole: &str, fraction: &str, exponent: i64) -> Self {
        // Without trailing zeros the last digit counts, so a negative scale means a fraction.
        let fraction = fraction.trim_end_matches('0');
        let significant = if fraction.is_empty() { whole.trim_end_matches('0') } else { whole };
        let scale = exponent.saturating_sub(length(fraction)).saturating_add(length(whole) - length(significant));
        let digits = || significant.bytes().chain(fraction.bytes()).skip_while(|digit| *digit == b'0');
        let count = i64::try_from(digits().count()).unwrap_or(i64::MAX);

        if count == 0 {
            return Self::Integer(0);
        }
        if scale < 0 {
            return Self::Fraction;
        }
        if count.saturating_add(scale) > SAFE_DIGITS {
            return Self::OutOfRange;
        }
        // At most 16 digits from here on, which no step can overflow.
        let zeros = (0..scale).map(|_| b'0');
        let value = digits().chain(zeros).fold(0, |value: u64, digit| value * 10 + u64::from(digit - b'0'));
        match i64::try_from(value) {
            Ok(integer) if value <= SAFE_MAX => Self::Integer(integer),
            _ => Self::OutOfRange,
        }
    }
}

/// Reads the part behind `e`; an absurd one stops at the ends of `i64`, which is far past any text's length.
fn parse_exponent(text: &str) -> Option<i64> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    if !is_digits(unsigned) {
        return None;
    }
    let magnitude =
        unsigned.bytes().fold(0_i64, |value, digit| value.saturating_mul(10).saturating_add(i64::from(digit - b'0')));
    Some(if text.starts_with('-') { -magnitude } else { magnitude })
}

fn is_digits(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn length(text: &str) -> i64 {
    i64::try_from(text.len()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::Number::{self, Fraction, Integer, OutOfRange};

    fn parse(text: &str) -> Number {
        Number::parse(text).unwrap_or_else(|| panic!("{text} is a number"))
    }

    #[test]
    fn spellings_of_an_integer_are_one_value() {
        for text in ["42", "42.0", "42.000", "4.2e1", "4.2E+1", "420e-1", "0.42e2", "4200.00e-2", "0.00042e5"] {
            assert_eq!(parse(text), Integer(42), "{text}");
        }
        assert_eq!(parse("-7"), Integer(-7));
        assert_eq!(parse("-7.0"), Integer(-7));
        assert_eq!(parse("1e3"), Integer(1000));
        assert_eq!(parse("100"), Integer(100));
    }

    #[test]
    fn zero_is_zero_in_every_spelling() {
        for text in
            ["0", "-0", "0.0", "-0.000", "0e5", "0e-5", "0e999999999999999999999999", "-0.0e-99999999999999999999"]
        {
            assert_eq!(parse(text), Integer(0), "{text}");
        }
    }

    #[test]
    fn range_ends_at_the_safe_integers() {
        assert_eq!(parse("9007199254740991"), Integer(9_007_199_254_740_991));
        assert_eq!(parse("-9007199254740991"), Integer(-9_007_199_254_740_991));
        assert_eq!(parse("9.007199254740991e15"), Integer(9_007_199_254_740_991));
        for text in [
            "9007199254740992",
            "-9007199254740992",
            "9007199254740993",
            "9999999999999999",
            "1e16",
            "1e17",
            "18446744073709551617",
            "1e400",
        ] {
            assert_eq!(parse(text), OutOfRange, "{text}");
        }
    }

    #[test]
    fn fractions_are_told_from_integers() {
        for text in ["1.5", "-0.1", "42.0000000000000000000001", "5e-1", "1e-400", "9007199254740991.5", "1e-1"] {
            assert_eq!(parse(text), Fraction, "{text}");
        }
    }

    #[test]
    fn hostile_exponents_and_digits_end_at_once() {
        assert_eq!(parse("1e999999999"), OutOfRange);
        assert_eq!(parse("-1e999999999999999999999999999999"), OutOfRange);
        // 2^64 + 1, which wraps to 1.
        assert_eq!(parse("1e18446744073709551617"), OutOfRange);
        assert_eq!(parse("1e-999999999"), Fraction);
        assert_eq!(parse("1e-999999999999999999999999999999"), Fraction);
        let zeros = "0".repeat(1_000_000);
        assert_eq!(parse(&format!("42{zeros}e-1000000")), Integer(42));
        assert_eq!(parse(&format!("0.{zeros}42e1000002")), Integer(42));
        assert_eq!(parse(&format!("0.{zeros}42e1000001")), Fraction);
        assert_eq!(parse(&"9".repeat(1_000_000)), OutOfRange);
    }

    #[test]
    fn other_texts_are_no_numbers() {
        for text in [
            "", "-", "+1", "01", "-01", ".5", "1.", "1.e1", "1e", "1e+", "1e1.0", "1 ", " 1", "0x10", "1_000", "NaN",
            "Infinity", "--1", "1e--1", "1,0", "true", "٤٢",
        ] {
            assert_eq!(Number::parse(text), None, "{text:?}");
        }
    }
}
