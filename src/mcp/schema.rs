//! What a tool takes, described once: the JSON schema that clients see and the check of what they send come from it.
//!
//! Only names are checked here. Whether a value fits is the daemon's to say, in its own words.

use serde_json::{Map, Value, json};

/// A JSON object.
pub type Object = Map<String, Value>;

/// One named parameter.
#[derive(Debug)]
pub struct Field {
    /// Its name, as the daemon spells it.
    pub name: &'static str,
    /// What it may be.
    pub kind: Kind,
    /// What it means when it is left out.
    pub without: Without,
    /// What it is, for a model to read.
    pub about: &'static str,
}

/// What a parameter means that is left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Without {
    /// It must not be.
    Refused,
    /// Whatever the daemon makes of it.
    Left,
    /// This word.
    Word(&'static str),
    /// The login name of whoever runs the server.
    Login,
}

/// What a value may be.
#[derive(Debug)]
pub enum Kind {
    /// Any text.
    Text,
    /// One of these words.
    Word(&'static [&'static str]),
    /// True or false.
    Flag,
    /// A whole number, from the first to the last.
    Number(i64, i64),
    /// Any number of these.
    List(&'static Kind),
    /// An object of these fields and no others.
    Object(&'static [Field]),
    /// Any of these.
    Any(&'static [Kind]),
}

/// A field that must be there.
#[must_use]
pub const fn must(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, without: Without::Refused, about }
}

/// A field that may be left out.
#[must_use]
pub const fn may(name: &'static str, kind: Kind, about: &'static str) -> Field {
    Field { name, kind, without: Without::Left, about }
}

/// The schema of an object of these fields.
#[must_use]
pub fn object(fields: &[Field]) -> Object {
    let properties: Object =
        fields.iter().map(|field| (field.name.to_owned(), property(field).into())).collect();
    let required: Vec<&str> =
        fields.iter().filter(|field| field.without == Without::Refused).map(|field| field.name).collect();
    let mut schema = Object::new();
    schema.insert("type".to_owned(), "object".into());
    schema.insert("properties".to_owned(), properties.into());
    if !required.is_empty() {
        schema.insert("required".to_owned(), required.into());
    }
    schema.insert("additionalProperties".to_owned(), false.into());
    schema
}

fn property(field: &Field) -> Object {
    let mut schema = kind(&field.kind);
    schema.insert("description".to_owned(), field.about.into());
    if let Without::Word(word) = field.without {
        schema.insert("default".to_owned(), word.into());
    }
    schema
}

fn kind(kind: &Kind) -> Object {
    let schema = match kind {
        Kind::Text => json!({ "type": "string" }),
        Kind::Word(words) => json!({ "type": "string", "enum": words }),
        Kind::Flag => json!({ "type": "boolean" }),
        Kind::Number(first, last) => {
            let mut schema = json!({ "type": "integer", "minimum": first });
            if *last < i64::MAX {
                schema["maximum"] = json!(last);
            }
            schema
        }
        Kind::List(of) => json!({ "type": "array", "items": self::kind(of) }),
        Kind::Object(fields) => return object(fields),
        Kind::Any(kinds) => json!({ "anyOf": kinds.iter().map(self::kind).collect::<Vec<_>>() }),
    };
    match schema {
        Value::Object(schema) => schema,
        _ => unreachable!("because each of them is an object"),
    }
}

/// The arguments with what was left out put in, or the sentence that says what is wrong with their names.
pub fn complete(fields: &[Field], mut told: Object, login: impl Fn() -> String) -> Result<Object, String> {
    if let Some(unknown) = told.keys().find(|name| fields.iter().all(|field| field.name != name.as_str())) {
        let known: Vec<&str> = fields.iter().map(|field| field.name).collect();
        let unknown: String = unknown.chars().take(100).collect();
        return Err(format!("there is no argument {unknown:?}; there are: {}", known.join(", ")));
    }
    // A model that has nothing to say for a field often says null.
    told.retain(|_, value| !value.is_null());
    for field in fields.iter().filter(|field| !told.contains_key(field.name)).collect::<Vec<_>>() {
        let value = match field.without {
            Without::Refused => return Err(format!("the argument {} is missing", field.name)),
            Without::Left => continue,
            Without::Word(word) => word.to_owned(),
            Without::Login => login(),
        };
        told.insert(field.name.to_owned(), value.into());
    }
    Ok(told)
}
