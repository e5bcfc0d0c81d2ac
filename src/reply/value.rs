//! Writes a value as serde_json does, and its strings in blocks: serde_json looks at them byte by byte.
//!
//! What a value consists of passes through to serde_json, but for long strings. Those go to it as raw text, with a note
//! for the formatter, which alone holds the writer, that this one is still to be escaped.

use std::cell::Cell;
use std::io::{self, Write};

use serde::ser::{
    Serialize, SerializeMap, SerializeSeq, SerializeStruct, SerializeStructVariant, SerializeTuple,
    SerializeTupleStruct, SerializeTupleVariant, Serializer,
};
use serde_json::ser::Formatter;

use super::raw::{self, Raw};
use crate::protocol::scan;

/// Shorter strings are written sooner byte by byte.
const LONG: usize = 24;

/// Whether text was copied that the application brought ready-made, which may be more than one line.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Written {
    /// None: serde_json writes one line.
    #[default]
    OneLine,
    Copied,
}

/// Writes a value at the end of `buf`.
pub(super) fn write<T: Serialize + ?Sized>(buf: &mut Vec<u8>, value: &T) -> Result<Written, serde_json::Error> {
    let notes = Notes::default();
    let mut serializer = serde_json::Serializer::with_formatter(buf, Blocks(&notes));
    value.serialize(Values { to: &mut serializer, notes: &notes })?;
    Ok(notes.written.get())
}

/// Writes a string with its quotes.
pub(super) fn write_string(writer: &mut (impl Write + ?Sized), text: &str) -> io::Result<()> {
    writer.write_all(b"\"")?;
    let mut rest = text.as_bytes();
    loop {
        let (plain, special) = rest.split_at_checked(scan::plain_len(rest)).unwrap_or_default();
        writer.write_all(plain)?;
        let Some((&byte, after)) = special.split_first() else {
            return writer.write_all(b"\"");
        };
        match byte {
            b'"' => writer.write_all(b"\\\"")?,
            b'\\' => writer.write_all(b"\\\\")?,
            b'\n' => writer.write_all(b"\\n")?,
            b'\r' => writer.write_all(b"\\r")?,
            b'\t' => writer.write_all(b"\\t")?,
            0x08 => writer.write_all(b"\\b")?,
            0x0c => writer.write_all(b"\\f")?,
            other => write!(writer, "\\u{other:04x}")?,
        }
        rest = after;
    }
}

/// What the serializer and the formatter tell each other.
#[derive(Default)]
struct Notes {
    /// The next raw text is a string yet to be escaped.
    is_string: Cell<bool>,
    written: Cell<Written>,
}

/// serde_json's compact format.
struct Blocks<'n>(&'n Notes);

impl Formatter for Blocks<'_> {
    fn write_raw_fragment<W: Write + ?Sized>(&mut self, writer: &mut W, fragment: &str) -> io::Result<()> {
        if self.0.is_string.take() {
            return write_string(writer, fragment);
        }
        self.0.written.set(Written::Copied);
        writer.write_all(fragment.as_bytes())
    }
}

/// A serializer of serde_json's, or a part of one, whose long strings take the other way.
struct Values<'n, S> {
    to: S,
    notes: &'n Notes,
}

/// A value that goes on through [`Values`].
struct Value<'n, T: ?Sized> {
    value: &'n T,
    notes: &'n Notes,
}

impl<T: Serialize + ?Sized> Serialize for Value<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.value.serialize(Values { to: serializer, notes: self.notes })
    }
}

macro_rules! pass {
    ($($method:ident($($name:ident: $type:ty),*))*) => {
        $(fn $method(self $(, $name: $type)*) -> Result<S::Ok, S::Error> {
            self.to.$method($($name),*)
        })*
    };
}

macro_rules! open {
    ($($method:ident -> $opened:ident($($name:ident: $type:ty),*))*) => {
        $(fn $method(self $(, $name: $type)*) -> Result<Self::$opened, S::Error> {
            Ok(Values { to: self.to.$method($($name),*)?, notes: self.notes })
        })*
    };
}

impl<'n, S: Serializer> Serializer for Values<'n, S> {
    type Ok = S::Ok;
    type Error = S::Error;
    type SerializeSeq = Values<'n, S::SerializeSeq>;
    type SerializeTuple = Values<'n, S::SerializeTuple>;
    type SerializeTupleStruct = Values<'n, S::SerializeTupleStruct>;
    type SerializeTupleVariant = Values<'n, S::SerializeTupleVariant>;
    type SerializeMap = Values<'n, S::SerializeMap>;
    type SerializeStruct = Fields<'n, S::SerializeStruct>;
    type SerializeStructVariant = Values<'n, S::SerializeStructVariant>;

    fn serialize_str(self, text: &str) -> Result<S::Ok, S::Error> {
        if text.len() < LONG {
            return self.to.serialize_str(text);
        }
        self.notes.is_string.set(true);
        Raw(text).serialize(self.to)
    }

    fn serialize_struct(self, name: &'static str, len: usize) -> Result<Self::SerializeStruct, S::Error> {
        let is_own = matches!(name, raw::RAW_VALUE | raw::NUMBER);
        let fields = Values { to: self.to.serialize_struct(name, len)?, notes: self.notes };
        Ok(if is_own { Fields::Own(fields.to) } else { Fields::Values(fields) })
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.to.serialize_some(&Value { value, notes: self.notes })
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, name: &'static str, value: &T) -> Result<S::Ok, S::Error> {
        self.to.serialize_newtype_struct(name, &Value { value, notes: self.notes })
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        name: &'static str,
        index: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<S::Ok, S::Error> {
        self.to.serialize_newtype_variant(name, index, variant, &Value { value, notes: self.notes })
    }

    fn collect_str<T: std::fmt::Display + ?Sized>(self, value: &T) -> Result<S::Ok, S::Error> {
        self.to.collect_str(value)
    }

    fn is_human_readable(&self) -> bool {
        self.to.is_human_readable()
    }

    pass! {
        serialize_bool(value: bool)
        serialize_i8(value: i8)
        serialize_i16(value: i16)
        serialize_i32(value: i32)
        serialize_i64(value: i64)
        serialize_i128(value: i128)
        serialize_u8(value: u8)
        serialize_u16(value: u16)
        serialize_u32(value: u32)
        serialize_u64(value: u64)
        serialize_u128(value: u128)
        serialize_f32(value: f32)
        serialize_f64(value: f64)
        serialize_char(value: char)
        serialize_bytes(value: &[u8])
        serialize_none()
        serialize_unit()
        serialize_unit_struct(name: &'static str)
        serialize_unit_variant(name: &'static str, index: u32, variant: &'static str)
    }

    open! {
        serialize_seq -> SerializeSeq(len: Option<usize>)
        serialize_tuple -> SerializeTuple(len: usize)
        serialize_tuple_struct -> SerializeTupleStruct(name: &'static str, len: usize)
        serialize_tuple_variant -> SerializeTupleVariant(name: &'static str, index: u32, variant: &'static str, len: usize)
        serialize_map -> SerializeMap(len: Option<usize>)
        serialize_struct_variant -> SerializeStructVariant(name: &'static str, index: u32, variant: &'static str, len: usize)
    }
}

macro_rules! parts {
    ($($trait:ident::$method:ident($($key:ident: $type:ty)?))*) => {
        $(impl<S: $trait> $trait for Values<'_, S> {
            type Ok = S::Ok;
            type Error = S::Error;

            fn $method<T: Serialize + ?Sized>(&mut self $(, $key: $type)?, value: &T) -> Result<(), S::Error> {
                self.to.$method($($key,)? &Value { value, notes: self.notes })
            }

            fn end(self) -> Result<S::Ok, S::Error> {
                self.to.end()
            }
        })*
    };
}

parts! {
    SerializeSeq::serialize_element()
    SerializeTuple::serialize_element()
    SerializeTupleStruct::serialize_field()
    SerializeTupleVariant::serialize_field()
    SerializeStruct::serialize_field(key: &'static str)
    SerializeStructVariant::serialize_field(key: &'static str)
}

impl<S: SerializeMap> SerializeMap for Values<'_, S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_key<T: Serialize + ?Sized>(&mut self, key: &T) -> Result<(), S::Error> {
        self.to.serialize_key(key)
    }

    fn serialize_value<T: Serialize + ?Sized>(&mut self, value: &T) -> Result<(), S::Error> {
        self.to.serialize_value(&Value { value, notes: self.notes })
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        self.to.end()
    }
}

/// What serde calls a struct: one with fields, or one of serde_json's own, whose text is not to be touched.
enum Fields<'n, S> {
    Values(Values<'n, S>),
    Own(S),
}

impl<S: SerializeStruct> SerializeStruct for Fields<'_, S> {
    type Ok = S::Ok;
    type Error = S::Error;

    fn serialize_field<T: Serialize + ?Sized>(&mut self, key: &'static str, value: &T) -> Result<(), S::Error> {
        match self {
            Self::Values(fields) => fields.serialize_field(key, value),
            Self::Own(fields) => fields.serialize_field(key, value),
        }
    }

    fn end(self) -> Result<S::Ok, S::Error> {
        match self {
            Self::Values(fields) => fields.to.end(),
            Self::Own(fields) => fields.end(),
        }
    }
}
