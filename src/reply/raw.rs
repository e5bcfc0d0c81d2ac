//! JSON text that the application brings ready-made, as a `RawValue`.

use serde::ser::{Serialize, SerializeStruct, Serializer};

/// The name of the struct, and of its one field, as which a `RawValue` shows itself to a serializer.
pub(super) const RAW_VALUE: &str = "$serde_json::private::RawValue";

/// The same for a number with serde_json's feature `arbitrary_precision`.
pub(super) const NUMBER: &str = "$serde_json::private::Number";

/// Gives the text taken out of a `RawValue` back to serde_json as one, which writes it as it stands.
pub(super) struct Raw<'a, T: ?Sized>(pub(super) &'a T);

impl<T: Serialize + ?Sized> Serialize for Raw<'_, T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut raw = serializer.serialize_struct(RAW_VALUE, 1)?;
        raw.serialize_field(RAW_VALUE, self.0)?;
        raw.end()
    }
}
