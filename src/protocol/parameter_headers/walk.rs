//! Finds the `x-mcp-header` annotations of a schema: the valid ones, and what is wrong with the others.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;

use http::HeaderName;
use serde_json::{Map, Value};

use super::compare::ParameterHeader;
use crate::protocol::names::header;

const KEYWORD: &str = "x-mcp-header";
/// A schema nested deeper than this many levels of JSON is not looked into.
const MAX_DEPTH: usize = 128;

/// Returns the valid annotations of a schema and the faults of the others.
pub(super) fn annotations(schema: &Value) -> (Vec<Annotation<'_>>, Vec<AnnotationFault>) {
    let mut walk = Walk::default();
    walk.schema(schema, Reach::Properties);
    walk.refuse_doubled();
    (walk.annotations, walk.faults)
}

/// A valid annotation.
pub(super) struct Annotation<'a> {
    /// The chain of `properties` keys, which is where `arguments` has the value.
    pub(super) path: Vec<Cow<'a, str>>,
    pub(super) header: ParameterHeader,
    pointer: String,
}

/// What is wrong with an `x-mcp-header` annotation of a tool's `inputSchema`. Its text says where and what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AnnotationFault {
    pointer: String,
    kind: FaultKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum FaultKind {
    Doubled,
    Empty,
    NotPrimitive,
    NotToken,
    TooDeep,
    Unreachable,
    Unreadable,
}

impl AnnotationFault {
    /// Returns the JSON Pointer (RFC 6901) of the annotated schema inside the `inputSchema`; empty for its root.
    pub fn pointer(&self) -> &str {
        &self.pointer
    }

    /// The fault of a schema that is no JSON, or nested too deep to be read.
    pub(super) fn unreadable() -> Self {
        Self { pointer: String::new(), kind: FaultKind::Unreadable }
    }
}

impl fmt::Display for AnnotationFault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let what = match self.kind {
            FaultKind::Doubled => "another property has the same header, in whatever case",
            FaultKind::Empty => "the name is empty",
            FaultKind::NotPrimitive => "the type is not string, integer or boolean",
            FaultKind::NotToken => "the name is not a header name token",
            FaultKind::TooDeep => "nested too deep to be looked for",
            FaultKind::Unreachable => "not on a property that a chain of `properties` alone leads to",
            FaultKind::Unreadable => "the schema cannot be read as JSON of at most 128 levels",
        };
        let place = if self.pointer.is_empty() { "the root" } else { &self.pointer };
        write!(f, "{KEYWORD} at {place}: {what}")
    }
}

impl std::error::Error for AnnotationFault {}

/// How a schema was reached from the root.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Reach {
    /// By `properties` alone, so that each call has its value at one known place.
    Properties,
    /// By any other keyword: annotations here are looked for only to report them.
    Otherwise,
}

#[derive(Default)]
struct Walk<'a> {
    /// Where the walk is, as the reference tokens of a JSON Pointer.
    tokens: Vec<Cow<'a, str>>,
    annotations: Vec<Annotation<'a>>,
    faults: Vec<AnnotationFault>,
}

impl<'a> Walk<'a> {
    fn schema(&mut self, schema: &'a Value, reach: Reach) {
        match schema {
            Value::Object(_) | Value::Array(_) if self.tokens.len() > MAX_DEPTH => {
                self.fault(FaultKind::TooDeep);
            }
            Value::Object(keywords) => self.keywords(keywords, reach),
            // An array of schemas, as under `oneOf`.
            Value::Array(schemas) => {
                for (index, schema) in schemas.iter().enumerate() {
                    self.below(index.to_string(), |walk| {
                        walk.schema(schema, Reach::Otherwise);
                    });
                }
            }
            _ => {}
        }
    }

    fn keywords(&mut self, keywords: &'a Map<String, Value>, reach: Reach) {
        for (keyword, value) in keywords {
            match keyword.as_str() {
                KEYWORD => self.annotation(value, keywords, reach),
                "properties" => self.named_schemas(keyword, value, reach),
                "$defs" | "definitions" | "dependencies" | "dependentSchemas" | "patternProperties" => {
                    self.named_schemas(keyword, value, Reach::Otherwise);
                }
                // Instances, not schemas: nothing in them is an annotation.
                "const" | "default" | "enum" | "examples" => {}
                _ => self.below(keyword.as_str(), |walk| {
                    walk.schema(value, Reach::Otherwise);
                }),
            }
        }
    }

    /// Visits an object whose keys are names that the schema's author chose, not keywords.
    fn named_schemas(&mut self, keyword: &'a str, value: &'a Value, reach: Reach) {
        let Value::Object(schemas) = value else {
            return;
        };
        self.below(keyword, |walk| {
            for (name, schema) in schemas {
                walk.below(name.as_str(), |walk| walk.schema(schema, reach));
            }
        });
    }

    fn annotation(&mut self, value: &Value, schema: &Map<String, Value>, reach: Reach) {
        let on_property = reach == Reach::Properties && !self.tokens.is_empty();
        let Some(name) = value.as_str() else {
            return self.fault(FaultKind::NotToken);
        };
        let header = HeaderName::from_bytes([header::PARAM_PREFIX, name].concat().as_bytes());
        match header {
            _ if name.is_empty() => self.fault(FaultKind::Empty),
            Err(_) => self.fault(FaultKind::NotToken),
            Ok(_) if !on_property => self.fault(FaultKind::Unreachable),
            Ok(_) if !is_primitive(schema.get("type")) => self.fault(FaultKind::NotPrimitive),
            Ok(header) => self.annotations.push(Annotation {
                // Every other token is the keyword `properties`.
                path: self.tokens.iter().skip(1).step_by(2).cloned().collect(),
                header: ParameterHeader { name: header, spelled: format!("Mcp-Param-{name}").into() },
                pointer: self.pointer(),
            }),
        }
    }

    /// Drops the annotations that share a header: no call could say which argument it mirrors.
    fn refuse_doubled(&mut self) {
        let mut uses = HashMap::<HeaderName, usize>::new();
        for annotation in &self.annotations {
            *uses.entry(annotation.header.name.clone()).or_default() += 1;
        }
        let faults = &mut self.faults;
        self.annotations.retain(|annotation| {
            let unique = uses.get(&annotation.header.name) == Some(&1);
            if !unique {
                faults.push(AnnotationFault { pointer: annotation.pointer.clone(), kind: FaultKind::Doubled });
            }
            unique
        });
    }

    fn below(&mut self, token: impl Into<Cow<'a, str>>, visit: impl FnOnce(&mut Self)) {
        self.tokens.push(token.into());
        visit(self);
        self.tokens.pop();
    }

    fn fault(&mut self, kind: FaultKind) {
        let pointer = self.pointer();
        self.faults.push(AnnotationFault { pointer, kind });
    }

    fn pointer(&self) -> String {
        self.tokens.iter().flat_map(|token| ["/".to_owned(), token.replace('~', "~0").replace('/', "~1")]).collect()
    }
}

/// Whether a schema's `type` says string, integer or boolean, or some of these and perhaps null.
fn is_primitive(of: Option<&Value>) -> bool {
    let primitive = |name: &Value| matches!(name.as_str(), Some("string" | "integer" | "boolean"));
    match of {
        Some(Value::Array(names)) => {
            names.iter().any(primitive) && names.iter().all(|name| primitive(name) || name == "null")
        }
        Some(name) => primitive(name),
        None => false,
    }
}
