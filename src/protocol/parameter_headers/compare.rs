//! Finds the mirrored arguments of a call and compares them with its headers.

use std::borrow::Cow;
use std::fmt;

use http::{HeaderMap, HeaderName};
use serde::de::{DeserializeSeed, Deserializer, Error, IgnoredAny, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::ParameterFault;
use crate::protocol::integer::Number;
use crate::protocol::mirror::{self, MirrorFault, MirrorFaultKind};

/// A place in `arguments` that is mirrored or on the way to one that is; the root has an empty key.
#[derive(Clone, Debug, Default)]
pub(super) struct Place {
    key: Box<str>,
    header: Option<ParameterHeader>,
    members: Vec<Self>,
}

impl Place {
    pub(super) fn is_empty(&self) -> bool {
        self.members.is_empty()
    }

    /// Notes that the value at the end of this chain of keys is mirrored.
    pub(super) fn insert(&mut self, path: &[Cow<'_, str>], header: ParameterHeader) {
        let Some((key, rest)) = path.split_first() else {
            self.header = Some(header);
            return;
        };
        let known = self.members.iter().position(|member| *member.key == **key);
        let index = known.unwrap_or_else(|| {
            self.members.push(Self { key: key.as_ref().into(), ..Self::default() });
            self.members.len() - 1
        });
        if let Some(member) = self.members.get_mut(index) {
            member.insert(rest, header);
        }
    }

    /// Returns every mirrored place with what `arguments` has there.
    pub(super) fn read<'a>(
        &self,
        arguments: Option<&'a [u8]>,
    ) -> Result<Vec<(&ParameterHeader, Argument<'a>)>, ParameterFault> {
        let mut values = Vec::new();
        self.read_members(arguments, &mut values)?;
        Ok(values)
    }

    fn read_members<'s, 'a>(
        &'s self,
        object: Option<&'a [u8]>,
        values: &mut Vec<(&'s ParameterHeader, Argument<'a>)>,
    ) -> Result<(), ParameterFault> {
        if self.members.is_empty() {
            return Ok(());
        }
        let mut found = vec![None; self.members.len()];
        let is_object = |text: &&[u8]| text.trim_ascii_start().starts_with(b"{");
        if let Some(text) = object.filter(is_object) {
            // A doubled member is all that reading can fail on: the text is valid JSON, and none of it is interpreted.
            serde_json::Deserializer::from_slice(text)
                .deserialize_map(Members { places: &self.members, found: &mut found })
                .map_err(|_| ParameterFault::DuplicateArgument)?;
        }
        for (member, value) in self.members.iter().zip(found) {
            let value = value.map(RawValue::get);
            if let Some(header) = &member.header {
                values.push((header, Argument::of(value)));
            }
            member.read_members(value.map(str::as_bytes), values)?;
        }
        Ok(())
    }
}

/// A header that mirrors an argument.
#[derive(Clone, Debug)]
pub(super) struct ParameterHeader {
    pub(super) name: HeaderName,
    /// The name as the schema spells it, `Mcp-Param-Region`.
    pub(super) spelled: Box<str>,
}

impl ParameterHeader {
    /// Checks the header against its argument; unless it is demanded, it may be missing.
    pub(super) fn check(
        &self,
        headers: &HeaderMap,
        argument: Argument<'_>,
        demanded: bool,
    ) -> Result<(), ParameterFault> {
        let judged = match (mirror::decoded(headers, &self.name), argument) {
            (Err(what), _) => Err(what),
            (Ok(None), Argument::None) => Ok(()),
            (Ok(None), _) if !demanded => Ok(()),
            (Ok(_), Argument::OutOfRange) => Err(MirrorFaultKind::OutOfRange),
            (Ok(None), _) => Err(MirrorFaultKind::Missing),
            (Ok(Some(_)), Argument::None) => Err(MirrorFaultKind::Unexpected),
            (Ok(Some(text)), argument) if argument.is(&text) => Ok(()),
            (Ok(Some(_)), _) => Err(MirrorFaultKind::Different),
        };
        judged.map_err(|what| ParameterFault::Header(MirrorFault::new(self.spelled.to_string(), what)))
    }
}

/// An argument as far as a header can mirror it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Argument<'a> {
    /// Absent, null, an object, an array or a fraction.
    None,
    Boolean(bool),
    Integer(i64),
    OutOfRange,
    /// A string, still with its quotes and escapes.
    String(&'a str),
}

impl<'a> Argument<'a> {
    fn of(json: Option<&'a str>) -> Self {
        let Some(json) = json else {
            return Self::None;
        };
        match json {
            "true" => Self::Boolean(true),
            "false" => Self::Boolean(false),
            _ if json.starts_with('"') => Self::String(json),
            _ => match Number::parse(json) {
                Some(Number::Integer(value)) => Self::Integer(value),
                Some(Number::OutOfRange) => Self::OutOfRange,
                Some(Number::Fraction) | None => Self::None,
            },
        }
    }

    /// Whether a decoded header value says the same.
    fn is(self, text: &str) -> bool {
        match self {
            Self::None | Self::OutOfRange => false,
            Self::Boolean(value) => text == if value { "true" } else { "false" },
            Self::Integer(value) => Number::parse(text) == Some(Number::Integer(value)),
            Self::String(json) => serde_json::Deserializer::from_str(json)
                .deserialize_bytes(Unescaped(|value: &[u8]| value == text.as_bytes()))
                .unwrap_or(false),
        }
    }
}

/// Reads one level of an object and keeps the members that are places.
struct Members<'r, 'de> {
    places: &'r [Place],
    found: &'r mut [Option<&'de RawValue>],
}

impl<'de> Visitor<'de> for Members<'_, 'de> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let place = |key: &[u8]| self.places.iter().position(|place| place.key.as_bytes() == key);
        while let Some(index) = map.next_key_seed(Unescaped(place))? {
            match index.and_then(|index| self.found.get_mut(index)) {
                Some(slot) if slot.is_some() => return Err(A::Error::custom("doubled")),
                Some(slot) => *slot = Some(map.next_value()?),
                None => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(())
    }
}

/// Hands the bytes of a JSON string, less quotes and escapes, to a function.
///
/// Bytes rather than `str`: a lone surrogate is legal JSON but no text. As bytes it equals no header and no key, where
/// serde_json would refuse to read it as text.
struct Unescaped<F>(F);

impl<'de, T, F: FnOnce(&[u8]) -> T> DeserializeSeed<'de> for Unescaped<F> {
    type Value = T;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<T, D::Error> {
        deserializer.deserialize_bytes(self)
    }
}

impl<T, F: FnOnce(&[u8]) -> T> Visitor<'_> for Unescaped<F> {
    type Value = T;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string")
    }

    fn visit_bytes<E>(self, bytes: &[u8]) -> Result<T, E> {
        Ok((self.0)(bytes))
    }
}
