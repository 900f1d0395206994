//! JSON that somebody else wrote, edited where it stands.
//!
//! Promise: what is not edited keeps its bytes: order, blanks, line ends, comments, a byte order mark. What is put in looks
//! like what is there, and taking it out again leaves what was before. The places come from a parser; the edits are splices
//! of the text, so that nothing is ever written anew.

use super::between::{blanks_before, comment_on_the_line, without_comma};
use jsonc_parser::ast::{self, ObjectPropName};
use jsonc_parser::common::{Range, Ranged};
use jsonc_parser::{CollectOptions, ParseOptions, parse_to_ast};
use serde::Serialize;
use serde_json::Value;
use serde_json::ser::{PrettyFormatter, Serializer};

/// What the program whose file it is understands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Dialect {
    /// JSON and nothing else.
    Strict,
    /// Comments too.
    Comments,
}

/// One step on the way to a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::cli) enum Step<'a> {
    Key(&'a str),
    At(usize),
}

/// Why a text cannot be edited, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::cli) struct Fault {
    /// From one, and so is the column.
    pub(in crate::cli) line: usize,
    pub(in crate::cli) column: usize,
    pub(in crate::cli) why: String,
}

/// A text, its root an object.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Doc {
    marked: bool,
    text: String,
}

const MARK: &str = "\u{feff}";

impl Doc {
    /// Reads it; what is blank is an empty object that is yet to be written.
    pub(in crate::cli) fn parse(text: &str, dialect: Dialect) -> Result<Self, Fault> {
        let marked = text.starts_with(MARK);
        let text = text.strip_prefix(MARK).unwrap_or(text);
        if text.trim().is_empty() {
            return Ok(Self { marked, text: "{}\n".to_owned() });
        }
        if dialect == Dialect::Strict {
            let strict: Result<serde::de::IgnoredAny, _> = serde_json::from_str(text);
            strict.map_err(|error| strict_fault(&error))?;
        }
        let parsed = parse_to_ast(text, &CollectOptions::default(), &options());
        let parsed = parsed.map_err(|error| Fault {
            line: error.line_display(),
            column: error.column_display(),
            why: error.kind().to_string(),
        })?;
        let doc = Self { marked, text: text.to_owned() };
        match parsed.value {
            Some(ast::Value::Object(_)) => Ok(doc),
            Some(other) => Err(doc.fault(other.start(), "the settings are no object")),
            None => Err(doc.fault(0, "there are comments and no settings")),
        }
    }

    pub(in crate::cli) fn into_text(self) -> String {
        if self.marked { format!("{MARK}{}", self.text) } else { self.text }
    }

    /// All that it says, without how it says it.
    pub(in crate::cli) fn value(&self) -> Value {
        value_of(&self.root())
    }

    /// All of it but the blanks, where there are comments.
    pub(in crate::cli) fn commented(&self) -> Option<String> {
        let strict: Result<serde::de::IgnoredAny, _> = serde_json::from_str(&self.text);
        strict.is_err().then(|| self.text.split_whitespace().collect())
    }

    /// What stands at a place.
    pub(in crate::cli) fn get(&self, path: &[Step<'_>]) -> Option<Value> {
        node(&self.root(), path).map(value_of)
    }

    /// A fault of the value that stands at a place.
    pub(in crate::cli) fn fault_at(&self, path: &[Step<'_>], why: impl Into<String>) -> Fault {
        let start = node(&self.root(), path).map_or(0, Ranged::start);
        self.fault(start, why)
    }

    /// Which of these keys stands twice in the object at a place: the second one counts for whoever reads it, so neither can
    /// be edited.
    pub(in crate::cli) fn twice(&self, path: &[Step<'_>]) -> Option<Fault> {
        let root = self.root();
        let ast::Value::Object(object) = node(&root, path)? else { return None };
        let repeated = object.properties.iter().enumerate().find(|(at, property)| {
            let name = name(&property.name);
            object.properties[..*at].iter().any(|earlier| self::name(&earlier.name) == name)
        });
        let (_, property) = repeated?;
        Some(self.fault(property.start(), format!("{:?} stands here a second time", name(&property.name))))
    }

    /// Adds a property behind the others of the object at a place.
    pub(in crate::cli) fn put(&mut self, path: &[Step<'_>], key: &str, value: &Value) {
        self.append(path, Some(key), value);
    }

    /// Adds an element behind the others of the list at a place.
    pub(in crate::cli) fn push(&mut self, path: &[Step<'_>], value: &Value) {
        self.append(path, None, value);
    }

    /// Puts another value at a place.
    pub(in crate::cli) fn replace(&mut self, path: &[Step<'_>], value: &Value) {
        let Some(range) = node(&self.root(), path).map(Ranged::range) else { return };
        let text = self.style().render(value, self.indent_at(range.start));
        self.text.replace_range(range.start..range.end, &text);
    }

    /// Takes what stands at a place out, with the comma that goes with it.
    pub(in crate::cli) fn remove(&mut self, path: &[Step<'_>]) {
        let Some((at, within)) = path.split_last() else { return };
        let Some((outer, children)) = self.container(within) else { return };
        let index = match at {
            Step::At(index) => Some(*index),
            Step::Key(key) => node(&self.root(), within).and_then(|object| position(object, key)),
        };
        let Some((index, own)) = index.and_then(|index| Some((index, *children.get(index)?))) else { return };
        if index > 0 {
            let before = children[index - 1].end;
            let kept = without_comma(&self.text[before..own.start]);
            self.text.replace_range(before..own.end, self.behind(&kept, own.end));
        } else if let Some(next) = children.get(1) {
            let kept = without_comma(&self.text[own.end..next.start]);
            self.text.replace_range(own.start..next.start, kept.trim_start());
        } else {
            let kept = self.text[outer.start + 1..own.start].to_owned();
            let kept = self.behind(&kept, own.end);
            let empty = kept.is_empty() && self.text[own.end..outer.end - 1].trim().is_empty();
            let end = if empty { outer.end - 1 } else { own.end };
            self.text.replace_range(outer.start + 1..end, kept);
        }
    }

    /// What stands between the brackets of an empty object or list; `None` for anything else.
    pub(in crate::cli) fn blank(&self, path: &[Step<'_>]) -> Option<&str> {
        let (outer, children) = self.container(path)?;
        children.is_empty().then(|| &self.text[outer.start + 1..outer.end - 1])
    }

    /// Sets what stands between the brackets of an empty object or list.
    pub(in crate::cli) fn set_blank(&mut self, path: &[Step<'_>], blank: &str) {
        if let Some((outer, children)) = self.container(path)
            && children.is_empty()
        {
            self.text.replace_range(outer.start + 1..outer.end - 1, blank);
        }
    }

    fn append(&mut self, path: &[Step<'_>], key: Option<&str>, value: &Value) {
        let Some((outer, children)) = self.container(path) else { return };
        let style = self.style();
        let item = |indent: &str| {
            let key = key.map(|key| format!("{}:{}", Value::from(key), if style.inline { "" } else { " " }));
            format!("{}{}", key.unwrap_or_default(), style.render(value, indent))
        };
        let (Some(first), Some(last)) = (children.first(), children.last()) else {
            return self.fill(outer, &style, item);
        };
        let indent = self.indent_at(last.start).to_owned();
        let head = &self.text[outer.start + 1..first.start];
        let tail = &self.text[last.end..outer.end - 1];
        let comment = comment_on_the_line(tail);
        let gap = if head.contains('\n') || comment > 0 {
            format!("{}{indent}", style.newline)
        } else if children.len() > 1 {
            let before = children[children.len() - 2].end;
            blanks_before(&without_comma(&self.text[before..last.start])).to_owned()
        } else if style.inline {
            blanks_before(head).to_owned()
        } else {
            " ".to_owned()
        };
        let item = item(&indent);
        self.text.insert_str(last.end + comment, &format!("{gap}{item}"));
        self.text.insert(last.end, ',');
    }

    /// What stays of the blanks and comments before something that goes; what comes behind it must not become part of a
    /// comment.
    fn behind<'kept>(&self, kept: &'kept str, end: usize) -> &'kept str {
        let shorter = kept.trim_end();
        let ends_line = self.text[end..].trim_start_matches([' ', '\t']).starts_with(['\r', '\n']);
        if shorter.is_empty() || ends_line { shorter } else { kept }
    }

    /// The first thing in an empty object or list.
    fn fill(&mut self, outer: Range, style: &Style, item: impl Fn(&str) -> String) {
        let inner = self.text[outer.start + 1..outer.end - 1].trim_end().to_owned();
        let filled = if style.inline && inner.is_empty() {
            item("")
        } else {
            let (indent, newline) = (self.indent_at(outer.start), style.newline);
            let deeper = format!("{indent}{}", style.unit);
            format!("{inner}{newline}{deeper}{}{newline}{indent}", item(&deeper))
        };
        self.text.replace_range(outer.start + 1..outer.end - 1, &filled);
    }

    fn root(&self) -> ast::Value<'_> {
        let parsed = parse_to_ast(&self.text, &CollectOptions::default(), &options());
        parsed.ok().and_then(|parsed| parsed.value).expect("it was parsed, and every edit leaves an object")
    }

    /// An object or a list: from bracket to bracket, and each thing in it.
    fn container(&self, path: &[Step<'_>]) -> Option<(Range, Vec<Range>)> {
        match node(&self.root(), path)? {
            ast::Value::Object(object) => {
                Some((object.range, object.properties.iter().map(Ranged::range).collect()))
            }
            ast::Value::Array(list) => Some((list.range, list.elements.iter().map(Ranged::range).collect())),
            _ => None,
        }
    }

    fn style(&self) -> Style {
        let newline = if self.text.contains("\r\n") { "\r\n" } else { "\n" };
        let (outer, children) = self.container(&[]).expect("the root is an object");
        let own_line = |child: &&Range| self.text[outer.start..child.start].contains('\n');
        let unit = children.first().filter(own_line).map_or("  ", |first| self.indent_at(first.start));
        let inline = !children.is_empty() && !self.text[outer.start..outer.end].contains('\n');
        Style { newline, inline, unit: if unit.is_empty() { "  ".to_owned() } else { unit.to_owned() } }
    }

    /// What the line of this place begins with.
    fn indent_at(&self, place: usize) -> &str {
        let line = self.text[..place].rfind('\n').map_or(0, |end| end + 1);
        let rest = &self.text[line..place];
        &rest[..rest.len() - rest.trim_start_matches([' ', '\t']).len()]
    }

    fn fault(&self, place: usize, why: impl Into<String>) -> Fault {
        let before = &self.text[..place];
        let line = before.matches('\n').count() + 1;
        let column = before.chars().rev().take_while(|symbol| *symbol != '\n').count() + 1;
        Fault { line, column, why: why.into() }
    }
}

/// How the text is laid out.
struct Style {
    newline: &'static str,
    /// All on one line.
    inline: bool,
    unit: String,
}

impl Style {
    fn render(&self, value: &Value, indent: &str) -> String {
        if self.inline {
            return value.to_string();
        }
        let mut text = Vec::new();
        let formatter = PrettyFormatter::with_indent(self.unit.as_bytes());
        let written = value.serialize(&mut Serializer::with_formatter(&mut text, formatter));
        written.expect("a value can be written to memory");
        let text = String::from_utf8(text).expect("JSON is text");
        // No string of JSON holds a line end as it is.
        text.replace('\n', &format!("{}{indent}", self.newline))
    }
}

/// What both dialects share: comments, which the strict one has been held to be without.
fn options() -> ParseOptions {
    ParseOptions {
        allow_comments: true,
        allow_loose_object_property_names: false,
        allow_trailing_commas: false,
        allow_missing_commas: false,
        allow_single_quoted_strings: false,
        allow_hexadecimal_numbers: false,
        allow_unary_plus_numbers: false,
        allow_bare_decimal_point_numbers: false,
        allow_non_finite_numbers: false,
        allow_extended_string_escapes: false,
    }
}

fn strict_fault(error: &serde_json::Error) -> Fault {
    let place = format!(" at line {} column {}", error.line(), error.column());
    let why = error.to_string().replace(&place, "");
    Fault { line: error.line(), column: error.column(), why }
}

fn node<'a, 't>(root: &'a ast::Value<'t>, path: &[Step<'_>]) -> Option<&'a ast::Value<'t>> {
    path.iter().try_fold(root, |value, step| match (value, step) {
        (ast::Value::Object(object), Step::Key(key)) => {
            object.properties.iter().find(|property| name(&property.name) == *key).map(|found| &found.value)
        }
        (ast::Value::Array(list), Step::At(index)) => list.elements.get(*index),
        _ => None,
    })
}

fn position(object: &ast::Value<'_>, key: &str) -> Option<usize> {
    let ast::Value::Object(object) = object else { return None };
    object.properties.iter().position(|property| name(&property.name) == key)
}

fn name<'a>(name: &'a ObjectPropName<'_>) -> &'a str {
    name.as_str()
}

fn value_of(node: &ast::Value<'_>) -> Value {
    match node {
        ast::Value::StringLit(text) => Value::from(text.value.as_ref()),
        ast::Value::NumberLit(number) => serde_json::from_str(number.value).unwrap_or_default(),
        ast::Value::BooleanLit(flag) => Value::from(flag.value),
        ast::Value::NullKeyword(_) => Value::Null,
        ast::Value::Array(list) => list.elements.iter().map(value_of).collect(),
        ast::Value::Object(object) => object
            .properties
            .iter()
            .map(|property| (name(&property.name).to_owned(), value_of(&property.value)))
            .collect(),
    }
}
