//! The `Mcp-Param-*` headers of 2026-07-28, which mirror arguments of a tool call.

mod compare;
mod walk;

use http::HeaderMap;
use serde::Serialize;
use serde_json::Value;

use self::compare::Place;
use super::mirror::MirrorFault;
use super::names::header;

pub use self::walk::AnnotationFault;

/// The `x-mcp-header` annotations of one tool's `inputSchema` (2026-07-28).
///
/// A property annotated with `"x-mcp-header": "Region"` is mirrored in the header `Mcp-Param-Region` of every call, and
/// the transport refuses a call whose header and argument disagree. Reading a schema costs time; keep the result as
/// long as the schema.
///
/// ```
/// use mcp_transport::ParameterHeaders;
/// use serde_json::json;
///
/// let headers = ParameterHeaders::of_schema(&json!({
///     "type": "object",
///     "properties": {
///         "region": { "type": "string", "x-mcp-header": "Region" },
///         "ratio": { "type": "number", "x-mcp-header": "Ratio" },
///     },
/// }));
/// assert!(!headers.is_empty());
/// assert_eq!(
///     headers.faults()[0].to_string(),
///     "x-mcp-header at /properties/ratio: the type is not string, integer or boolean",
/// );
/// ```
#[derive(Clone, Debug, Default)]
pub struct ParameterHeaders {
    arguments: Place,
    faults: Vec<AnnotationFault>,
}

impl ParameterHeaders {
    /// Reads the annotations of a schema: a [`serde_json::Value`] or map, a raw value, any type that serializes to a
    /// schema, or a string that holds its JSON text.
    ///
    /// It never fails: what is wrong with a schema, even that it cannot be read, is in [`faults`](Self::faults).
    pub fn of_schema(schema: &(impl Serialize + ?Sized)) -> Self {
        let schema = match serde_json::to_value(schema) {
            Ok(Value::String(text)) => serde_json::from_str(&text),
            read => read,
        };
        let (annotations, faults) = match &schema {
            Ok(schema) => walk::annotations(schema),
            Err(_) => (Vec::new(), vec![AnnotationFault::unreadable()]),
        };
        let mut arguments = Place::default();
        for annotation in annotations {
            arguments.insert(&annotation.path, annotation.header);
        }
        Self { arguments, faults }
    }

    /// Whether no argument is mirrored, so that calls need no check. Annotations at fault do not count.
    pub fn is_empty(&self) -> bool {
        self.arguments.is_empty()
    }

    /// What is wrong with the annotations.
    ///
    /// Clients leave a tool with such a fault out of their list. Where there is any, the transport demands none of the
    /// tool's headers; it still compares the valid ones that a call carries.
    pub fn faults(&self) -> &[AnnotationFault] {
        &self.faults
    }

    /// Checks the headers of a call against its `arguments`, a valid JSON text.
    pub(crate) fn check(&self, headers: &HeaderMap, arguments: Option<&[u8]>) -> Result<(), ParameterFault> {
        if self.is_empty() {
            return Ok(());
        }
        let demanded = self.faults.is_empty();
        for (header, argument) in self.arguments.read(arguments)? {
            header.check(headers, argument, demanded)?;
        }
        Ok(())
    }
}

/// Whether a request carries any `Mcp-Param-*` header, annotated or not.
pub(crate) fn any_parameter_header(headers: &HeaderMap) -> bool {
    headers.keys().any(|name| name.as_str().starts_with(header::PARAM_PREFIX))
}

/// Why a call is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ParameterFault {
    /// A member of `arguments` on the way to a mirrored one is there twice: the message is malformed, `-32600`.
    DuplicateArgument,
    /// A header does not mirror its argument, `-32020`.
    Header(MirrorFault),
}

#[cfg(test)]
mod tests;
