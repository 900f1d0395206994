//! Markup that is right by construction: whatever text goes in comes out as text.
//!
//! There is one type and one way in for text from elsewhere, which escapes it and spells out what could turn the line
//! around. Names of elements and attributes are words of the program, so nothing from a log can become one.

use super::words::harmless;

/// An attribute: a name of ours and any value.
pub(super) type Attribute<'text> = (&'static str, &'text str);

/// A piece of a page.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub(super) struct Markup(String);

impl Markup {
    /// A whole page in English: what stands in its head, and what in its body.
    pub(super) fn page(head: impl FnOnce(&mut Self), body: impl FnOnce(&mut Self)) -> Self {
        let mut page = Self("<!doctype html>\n".to_owned());
        page.with("html", &[("lang", "en")], |html| {
            html.element("head", head);
            html.element("body", body);
        });
        page.0.push('\n');
        page
    }

    /// Text of any origin.
    pub(super) fn text(&mut self, text: &str) {
        escape(&harmless(text), &mut self.0);
    }

    /// Text of any origin that a person wrote: its line breaks are seen as such.
    pub(super) fn prose(&mut self, text: &str) {
        for (number, line) in text.lines().enumerate() {
            if number > 0 {
                self.0.push_str("<br>");
            }
            self.text(line);
        }
    }

    /// An element.
    pub(super) fn element(&mut self, name: &'static str, inside: impl FnOnce(&mut Self)) {
        self.with(name, &[], inside);
    }

    /// An element with attributes.
    pub(super) fn with(
        &mut self,
        name: &'static str,
        attributes: &[Attribute<'_>],
        inside: impl FnOnce(&mut Self),
    ) {
        self.open(name, attributes);
        inside(self);
        self.0.push_str("</");
        self.0.push_str(name);
        self.0.push('>');
    }

    /// An element that holds nothing and has no end.
    pub(super) fn void(&mut self, name: &'static str, attributes: &[Attribute<'_>]) {
        self.open(name, attributes);
    }

    /// An element that holds text, of this class.
    pub(super) fn say(&mut self, name: &'static str, class: &'static str, text: &str) {
        self.with(name, &[("class", class)], |inside| inside.text(text));
    }

    /// The style of the page. It is ours, and in it nothing is escaped.
    pub(super) fn style(&mut self, rules: &'static str) {
        self.0.push_str("<style>\n");
        self.0.push_str(rules);
        self.0.push_str("</style>\n");
    }

    /// As bytes of a file.
    pub(super) fn as_bytes(&self) -> &[u8] {
        self.0.as_bytes()
    }

    fn open(&mut self, name: &'static str, attributes: &[Attribute<'_>]) {
        self.0.push('<');
        self.0.push_str(name);
        for (name, value) in attributes {
            self.0.push(' ');
            self.0.push_str(name);
            self.0.push_str("=\"");
            escape(&harmless(value), &mut self.0);
            self.0.push('"');
        }
        self.0.push('>');
    }
}

fn escape(text: &str, into: &mut String) {
    for symbol in text.chars() {
        match symbol {
            '<' => into.push_str("&lt;"),
            '>' => into.push_str("&gt;"),
            '&' => into.push_str("&amp;"),
            '"' => into.push_str("&quot;"),
            '\'' => into.push_str("&#39;"),
            symbol => into.push(symbol),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Markup;

    fn made(make: impl FnOnce(&mut Markup)) -> String {
        let mut markup = Markup::default();
        make(&mut markup);
        markup.0
    }

    #[test]
    fn text_stays_text_wherever_it_stands() {
        let hostile = "<script>'&\"\u{202e}\u{0}";
        let escaped = "&lt;script&gt;&#39;&amp;&quot;\\u{202e}\\u{0}";
        assert_eq!(made(|markup| markup.text(hostile)), escaped);
        assert_eq!(
            made(|markup| markup.with("p", &[("title", hostile)], |inside| inside.prose("a\n<b>"))),
            format!("<p title=\"{escaped}\">a<br>&lt;b&gt;</p>")
        );
    }

    #[test]
    fn a_page_begins_with_its_kind_and_its_language() {
        let page = Markup::page(|head| head.say("title", "", "a"), |body| body.void("hr", &[]));
        let whole = "<!doctype html>\n<html lang=\"en\"><head><title class=\"\">a</title></head><body><hr></body></html>\n";
        assert_eq!(String::from_utf8(page.as_bytes().to_vec()).unwrap(), whole);
    }
}
