//! A serde serializer that writes one JSON object and learns where the members stand that the transport stamps.
//!
//! It writes the braces and keys of the result, and of its `_meta`, and gives every other value to serde_json.

use serde::ser::{Impossible, Serialize, SerializeMap, SerializeStruct, SerializeStructVariant, Serializer};

use super::ReplyFault;
use super::members::{Member, Place, Places};
use super::raw::{self, Raw};
use super::value::{self, Written};

type Never = Impossible<(), ReplyFault>;

/// An object to be written at the end of `buf`.
pub(super) struct Object<'a> {
    buf: &'a mut Vec<u8>,
    places: &'a mut Places,
    /// The members to look out for.
    known: &'static [Member],
}

impl<'a> Object<'a> {
    /// The result itself.
    pub(super) fn result(buf: &'a mut Vec<u8>, places: &'a mut Places) -> Self {
        Self { buf, places, known: Member::OF_RESULT }
    }

    fn open(self) -> Members<'a> {
        Members { object: self, lead: b'{', pending: None }
    }

    /// Copies JSON text to the buffer and looks for the members in it.
    fn copy<T: Serialize + ?Sized>(&mut self, text: &T) -> Result<(), ReplyFault> {
        let start = self.buf.len();
        serde_json::to_writer(&mut *self.buf, &Raw(text))?;
        self.places.note(Written::Copied);
        self.places.scan(self.buf, Place { start, end: self.buf.len() }, self.known)
    }

    /// Notes that the value of `member` goes from `start` to the end of the buffer.
    fn record(&mut self, member: Option<Member>, start: usize) -> Result<(), ReplyFault> {
        match member {
            Some(member) => self.places.record(member, Place { start, end: self.buf.len() }),
            None => Ok(()),
        }
    }
}

/// An object that is being written.
pub(super) struct Members<'a> {
    object: Object<'a>,
    /// What the next member begins with: the opening brace, or a comma.
    lead: u8,
    /// The member whose key is written and whose value is not.
    pending: Option<Member>,
}

impl<'a> Members<'a> {
    /// Writes a key by serde_json's rules, which take numbers, booleans and unit variants for keys as well.
    fn key<K: Serialize + ?Sized>(&mut self, key: &K) -> Result<(), ReplyFault> {
        const AFTER_COLON: usize = b"null}".len();
        let buf = &mut *self.object.buf;
        let start = buf.len();
        serde_json::to_writer(&mut *buf, &Lone(key))?;
        buf.truncate(buf.len() - AFTER_COLON);
        if let Some(brace) = buf.get_mut(start) {
            *brace = std::mem::replace(&mut self.lead, b',');
        }
        // Of `{"key":` or `,"key":`. serde_json escapes only what it must, so no known name stands there escaped.
        let key = buf.get(start + 2..buf.len() - 2).unwrap_or_default();
        self.pending = Member::among(self.object.known, key);
        Ok(())
    }

    /// The same for a key that is known to be a string.
    fn name(&mut self, name: &str) -> Result<(), ReplyFault> {
        let buf = &mut *self.object.buf;
        buf.push(std::mem::replace(&mut self.lead, b','));
        value::write_string(buf, name).map_err(serde_json::Error::io)?;
        buf.push(b':');
        self.pending = Member::among(self.object.known, name.as_bytes());
        Ok(())
    }

    fn value<V: Serialize + ?Sized>(&mut self, value: &V) -> Result<(), ReplyFault> {
        let object = &mut self.object;
        let start = object.buf.len();
        let member = self.pending.take();
        if member == Some(Member::Meta) {
            let meta = Object { buf: object.buf, places: object.places, known: Member::OF_META };
            value.serialize(meta).map_err(ReplyFault::in_meta)?;
        } else {
            object.places.note(value::write(object.buf, value)?);
        }
        object.record(member, start)
    }

    fn close(self) -> Object<'a> {
        let Self { object, lead, .. } = self;
        if lead == b'{' {
            object.buf.push(lead);
        }
        object.buf.push(b'}');
        object
    }
}

impl SerializeMap for Members<'_> {
    type Ok = ();
    type Error = ReplyFault;

    fn serialize_key<K: Serialize + ?Sized>(&mut self, key: &K) -> Result<(), ReplyFault> {
        self.key(key)
    }

    fn serialize_value<V: Serialize + ?Sized>(&mut self, value: &V) -> Result<(), ReplyFault> {
        self.value(value)
    }

    fn end(self) -> Result<(), ReplyFault> {
        self.close();
        Ok(())
    }
}

/// A map of one member and no value, which serde_json writes as `{"key":null}`.
struct Lone<'a, K: ?Sized>(&'a K);

impl<K: Serialize + ?Sized> Serialize for Lone<'_, K> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(1))?;
        map.serialize_entry(self.0, &())?;
        map.end()
    }
}

/// What serde calls a struct: one with fields, or a `RawValue`.
pub(super) enum Fields<'a> {
    Members(Members<'a>),
    Raw(Object<'a>),
}

impl SerializeStruct for Fields<'_> {
    type Ok = ();
    type Error = ReplyFault;

    fn serialize_field<V: Serialize + ?Sized>(&mut self, key: &'static str, value: &V) -> Result<(), ReplyFault> {
        match self {
            Self::Members(members) => {
                members.name(key)?;
                members.value(value)
            }
            Self::Raw(object) => object.copy(value),
        }
    }

    fn end(self) -> Result<(), ReplyFault> {
        if let Self::Members(members) = self {
            members.close();
        }
        Ok(())
    }
}

/// A struct variant: an object whose one member, named for the variant, is the object of the fields.
pub(super) struct Variant<'a> {
    fields: Members<'a>,
    /// What the variant's name means to the transport.
    member: Option<Member>,
    /// Where the object of the fields begins.
    start: usize,
}

impl SerializeStructVariant for Variant<'_> {
    type Ok = ();
    type Error = ReplyFault;

    fn serialize_field<V: Serialize + ?Sized>(&mut self, key: &'static str, value: &V) -> Result<(), ReplyFault> {
        self.fields.name(key)?;
        self.fields.value(value)
    }

    fn end(self) -> Result<(), ReplyFault> {
        let mut object = self.fields.close();
        object.record(self.member, self.start)?;
        object.buf.push(b'}');
        Ok(())
    }
}

macro_rules! refuse {
    ($($method:ident($type:ty))*) => {
        $(fn $method(self, _: $type) -> Result<(), ReplyFault> {
            Err(ReplyFault::NotAnObject)
        })*
    };
}

impl<'a> Serializer for Object<'a> {
    type Ok = ();
    type Error = ReplyFault;
    type SerializeMap = Members<'a>;
    type SerializeStruct = Fields<'a>;
    type SerializeStructVariant = Variant<'a>;
    type SerializeSeq = Never;
    type SerializeTuple = Never;
    type SerializeTupleStruct = Never;
    type SerializeTupleVariant = Never;

    fn serialize_map(self, _: Option<usize>) -> Result<Members<'a>, ReplyFault> {
        Ok(self.open())
    }

    fn serialize_struct(self, name: &'static str, _: usize) -> Result<Fields<'a>, ReplyFault> {
        match name {
            raw::RAW_VALUE => Ok(Fields::Raw(self)),
            raw::NUMBER => Err(ReplyFault::NotAnObject),
            _ => Ok(Fields::Members(self.open())),
        }
    }

    fn serialize_struct_variant(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        _: usize,
    ) -> Result<Variant<'a>, ReplyFault> {
        let mut outer = self.open();
        outer.name(variant)?;
        let member = outer.pending;
        let known = if member == Some(Member::Meta) { Member::OF_META } else { &[] };
        let start = outer.object.buf.len();
        let fields = Object { known, ..outer.object }.open();
        Ok(Variant { fields, member, start })
    }

    fn serialize_newtype_variant<T: Serialize + ?Sized>(
        self,
        _: &'static str,
        _: u32,
        variant: &'static str,
        value: &T,
    ) -> Result<(), ReplyFault> {
        let mut members = self.open();
        members.name(variant)?;
        members.value(value)?;
        members.end()
    }

    fn serialize_newtype_struct<T: Serialize + ?Sized>(self, _: &'static str, value: &T) -> Result<(), ReplyFault> {
        value.serialize(self)
    }

    fn serialize_some<T: Serialize + ?Sized>(self, value: &T) -> Result<(), ReplyFault> {
        value.serialize(self)
    }

    refuse! {
        serialize_bool(bool)
        serialize_i8(i8)
        serialize_i16(i16)
        serialize_i32(i32)
        serialize_i64(i64)
        serialize_i128(i128)
        serialize_u8(u8)
        serialize_u16(u16)
        serialize_u32(u32)
        serialize_u64(u64)
        serialize_u128(u128)
        serialize_f32(f32)
        serialize_f64(f64)
        serialize_char(char)
        serialize_str(&str)
        serialize_bytes(&[u8])
        serialize_unit_struct(&'static str)
    }

    fn serialize_unit(self) -> Result<(), ReplyFault> {
        Err(ReplyFault::NotAnObject)
    }

    fn serialize_none(self) -> Result<(), ReplyFault> {
        Err(ReplyFault::NotAnObject)
    }

    fn serialize_unit_variant(self, _: &'static str, _: u32, _: &'static str) -> Result<(), ReplyFault> {
        Err(ReplyFault::NotAnObject)
    }

    fn serialize_seq(self, _: Option<usize>) -> Result<Never, ReplyFault> {
        Err(ReplyFault::NotAnObject)
    }

    fn serialize_tuple(self, _: usize) -> Result<Never, ReplyFault> {
        Err(ReplyFault::NotAnObject)
    }

    fn serialize_tuple_struct(self, _: &'static str, _: usize) -> Result<Never, ReplyFault> {
        Err(ReplyFault::NotAnObject)
    }

    fn serialize_tuple_variant(self, _: &'static str, _: u32, _: &'static str, _: usize) -> Result<Never, ReplyFault> {
        Err(ReplyFault::NotAnObject)
    }
}

impl serde::ser::Error for ReplyFault {
    fn custom<T: std::fmt::Display>(message: T) -> Self {
        Self::Serialize(serde_json::Error::custom(message))
    }
}
