//! JSON as it is written, not as it is meant: keys may stand twice, and a leaf may be no JSON at all.

use super::corpus::KEYS;
use fastrand::Rng;
use serde_json::Value;

/// A piece of a line.
#[derive(Debug, Clone)]
pub(super) enum Node {
    /// Stands as it is.
    Raw(String),
    List(Vec<Node>),
    /// Keys are written with their quotes.
    Fields(Vec<(String, Node)>),
}

impl From<&Value> for Node {
    fn from(value: &Value) -> Self {
        match value {
            Value::Array(items) => Self::List(items.iter().map(Self::from).collect()),
            Value::Object(fields) => {
                let field = |(key, value): (&String, &Value)| (quoted(key), Self::from(value));
                Self::Fields(fields.iter().map(field).collect())
            }
            leaf => Self::Raw(leaf.to_string()),
        }
    }
}

pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

impl Node {
    pub(super) fn write(&self, to: &mut String, rng: &mut Rng) {
        let space = if rng.u8(..40) == 0 { " \t\r" } else { "" };
        to.push_str(space);
        match self {
            Self::Raw(text) => to.push_str(text),
            Self::List(items) => {
                to.push('[');
                for (at, item) in items.iter().enumerate() {
                    to.push_str(if at > 0 { "," } else { "" });
                    item.write(to, rng);
                }
                to.push(']');
            }
            Self::Fields(fields) => {
                to.push('{');
                for (at, (key, value)) in fields.iter().enumerate() {
                    to.push_str(if at > 0 { "," } else { "" });
                    to.push_str(key);
                    to.push(':');
                    value.write(to, rng);
                }
                to.push('}');
            }
        }
        to.push_str(space);
    }

    /// Some piece of it, any one as likely as its depth makes it.
    pub(super) fn any_piece(&mut self, rng: &mut Rng) -> &mut Node {
        let len = match self {
            Self::Raw(_) => 0,
            Self::List(items) => items.len(),
            Self::Fields(fields) => fields.len(),
        };
        if len == 0 || rng.u8(..4) == 0 {
            return self;
        }
        let at = rng.usize(..len);
        match self {
            Self::List(items) => items[at].any_piece(rng),
            Self::Fields(fields) => fields[at].1.any_piece(rng),
            Self::Raw(_) => self,
        }
    }

    /// Changes one piece in one way. `other` is where pieces are taken from that belong elsewhere.
    pub(super) fn mutate(&mut self, other: &mut Node, rng: &mut Rng) {
        let piece = self.any_piece(rng);
        match (rng.u8(..10), &mut *piece) {
            (0 | 1, Self::Fields(fields)) if !fields.is_empty() => {
                drop(fields.remove(rng.usize(..fields.len())));
            }
            (2, Self::Fields(fields)) if !fields.is_empty() => {
                let (key, value) = fields[rng.usize(..fields.len())].clone();
                let value = if rng.bool() { value } else { other.any_piece(rng).clone() };
                fields.push((key, value));
            }
            (3, Self::Fields(fields)) if !fields.is_empty() => {
                let at = rng.usize(..fields.len());
                fields[at].0 = any_key(rng);
            }
            (4, Self::Fields(fields)) => fields.push((any_key(rng), other.any_piece(rng).clone())),
            (0..=2, Self::List(items)) if !items.is_empty() => {
                let item = items[rng.usize(..items.len())].clone();
                items.extend(std::iter::repeat_n(item, rng.usize(1..40)));
            }
            (3, Self::List(items)) => items.clear(),
            (5, _) => *piece = Self::List(vec![piece.clone()]),
            (6, _) => *piece = Self::Fields(vec![(any_key(rng), piece.clone())]),
            (7, _) => *piece = other.any_piece(rng).clone(),
            _ => *piece = Self::Raw(super::corpus::any_leaf(rng)),
        }
    }
}

fn any_key(rng: &mut Rng) -> String {
    match rng.u8(..12) {
        0 => super::corpus::any_text(rng),
        _ => quoted(KEYS[rng.usize(..KEYS.len())]),
    }
}
