//! A strict reading of JSON: a key that an object has twice is told, not resolved.
//!
//! Parsers disagree about which of two equal keys counts, so a report with two transitions would be one thing to
//! the gate and another to its reader. The reading goes on, so that every such key is named.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::fault::{Fault, Faults};

/// One JSON text, whole: trailing garbage is an error. The faults are its doubled keys.
pub(super) fn read(text: &str) -> Result<(Value, Vec<Fault>), serde_json::Error> {
    let mut reader = serde_json::Deserializer::from_str(text);
    let (mut path, mut faults) = ("$".to_owned(), Faults::default());
    let value = Node { path: &mut path, faults: &mut faults }.deserialize(&mut reader)?;
    reader.end()?;
    Ok((value, faults.into_vec()))
}

/// The value to be read next, and the path that leads to it.
struct Node<'a> {
    path: &'a mut String,
    faults: &'a mut Faults,
}

impl Node<'_> {
    /// The node below, for as long as it takes to read it.
    fn below<T>(&mut self, step: &str, read: impl FnOnce(Node<'_>) -> T) -> T {
        let len = self.path.len();
        self.path.push_str(step);
        let result = read(Node { path: self.path, faults: self.faults });
        self.path.truncate(len);
        result
    }
}

impl<'de> DeserializeSeed<'de> for Node<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Node<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E: Error>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E: Error>(self, flag: bool) -> Result<Value, E> {
        Ok(Value::Bool(flag))
    }

    fn visit_i64<E: Error>(self, number: i64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_u64<E: Error>(self, number: u64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_f64<E: Error>(self, number: f64) -> Result<Value, E> {
        Ok(number.into())
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_string<E: Error>(self, text: String) -> Result<Value, E> {
        Ok(text.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(mut self, mut items: A) -> Result<Value, A::Error> {
        let mut list = Vec::new();
        loop {
            let step = format!("[{}]", list.len());
            let Some(item) = self.below(&step, |node| items.next_element_seed(node))? else { break };
            list.push(item);
        }
        Ok(Value::Array(list))
    }

    fn visit_map<A: MapAccess<'de>>(mut self, mut fields: A) -> Result<Value, A::Error> {
        let mut object = Map::new();
        while let Some(key) = fields.next_key::<String>()? {
            let step = step(&key);
            if object.contains_key(&key) {
                self.faults
                    .add(format!("{}{step}", self.path), format!("The key `{key}` stands here twice."));
            }
            let value = self.below(&step, |node| fields.next_value_seed(node))?;
            object.insert(key, value);
        }
        Ok(Value::Object(object))
    }
}

/// `.name` for plain names, `["any text"]` for the others.
fn step(key: &str) -> String {
    let plain = !key.is_empty() && key.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if plain { format!(".{key}") } else { format!("[{}]", Value::from(key)) }
}
