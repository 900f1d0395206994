//! OpenMetrics text, version 1.0.0: families of samples, one after the other, `# EOF` behind the last.
//!
//! What is written here is valid by construction: the suffix of a counter, the unit in the name, buckets that grow and end
//! at +Inf, escaped labels. The caller keeps names unique, and tells all samples of one family together.

use std::fmt::{Display, Write};

/// A label of a sample: name and value.
pub type Label<'text> = (&'static str, &'text str);

/// A text that grows family by family.
#[derive(Debug, Default)]
pub struct Exposition {
    text: String,
}

/// What a histogram has counted.
#[derive(Debug, Clone, PartialEq)]
pub struct Buckets<'counts> {
    /// Upper bounds in seconds, growing, without the last one, which is +Inf.
    pub bounds: &'counts [f64],
    /// How many fell between a bound and the one before it; one more than there are bounds.
    pub counts: &'counts [u64],
    /// The sum of everything that was observed, in seconds.
    pub sum: f64,
}

impl Exposition {
    /// A number that only grows while the daemon lives. Its samples end in `_total`.
    pub fn counter<'text>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Vec<Label<'text>>, u64)>,
    ) {
        self.head(name, "counter", help);
        for (labels, value) in samples {
            self.sample(name, "_total", &labels, value);
        }
    }

    /// A counter without labels.
    pub fn count(&mut self, name: &str, help: &str, value: u64) {
        self.counter(name, help, [(Vec::new(), value)]);
    }

    /// A number that goes up and down.
    pub fn gauges<'text>(
        &mut self,
        name: &str,
        help: &str,
        samples: impl IntoIterator<Item = (Vec<Label<'text>>, u64)>,
    ) {
        self.head(name, "gauge", help);
        for (labels, value) in samples {
            self.sample(name, "", &labels, value);
        }
    }

    /// A gauge without labels.
    pub fn gauge(&mut self, name: &str, help: &str, value: impl Display) {
        self.head(name, "gauge", help);
        self.sample(name, "", &[], value);
    }

    /// How long something took.
    pub fn histogram(&mut self, name: &str, help: &str, buckets: &Buckets<'_>) {
        self.head(name, "histogram", help);
        let mut below = 0;
        let ends = buckets.bounds.iter().map(ToString::to_string).chain(["+Inf".to_owned()]);
        for (end, count) in ends.zip(buckets.counts) {
            below += count;
            self.sample(name, "_bucket", &[("le", &canonical(end))], below);
        }
        self.sample(name, "_count", &[], below);
        self.sample(name, "_sum", &[], buckets.sum);
    }

    /// The whole text.
    #[must_use]
    pub fn end(mut self) -> String {
        self.text.push_str("# EOF\n");
        self.text
    }

    fn head(&mut self, name: &str, kind: &str, help: &str) {
        let text = &mut self.text;
        say(text, format_args!("# TYPE {name} {kind}\n"));
        let unit = name.rsplit('_').next().filter(|unit| ["bytes", "seconds"].contains(unit));
        if let Some(unit) = unit {
            say(text, format_args!("# UNIT {name} {unit}\n"));
        }
        say(text, format_args!("# HELP {name} {}\n", escaped(help)));
    }

    fn sample(&mut self, name: &str, suffix: &str, labels: &[Label<'_>], value: impl Display) {
        let text = &mut self.text;
        say(text, format_args!("{name}{suffix}"));
        for (at, (label, value)) in labels.iter().enumerate() {
            let open = if at == 0 { '{' } else { ',' };
            say(text, format_args!("{open}{label}=\"{}\"", escaped(value)));
        }
        let close = if labels.is_empty() { "" } else { "}" };
        say(text, format_args!("{close} {value}\n"));
    }
}

/// A bound that is a whole number is written with its point, as the text format wants it.
fn canonical(bound: String) -> String {
    if bound.contains(['.', 'I']) { bound } else { bound + ".0" }
}

fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

fn say(text: &mut String, said: std::fmt::Arguments<'_>) {
    text.write_fmt(said).expect("because a string takes everything");
}

#[cfg(test)]
mod tests {
    use super::{Buckets, Exposition};

    #[test]
    fn every_kind_is_written_as_the_format_wants_it() {
        let mut out = Exposition::default();
        out.counter("a", "What \"is\"\ncounted.", [(vec![("x", "q\"\\\n"), ("y", "z")], 3)]);
        out.gauge("b_bytes", "Size.", 4);
        let buckets = Buckets { bounds: &[0.5, 1.0], counts: &[1, 0, 2], sum: 7.25 };
        out.histogram("c_seconds", "Time.", &buckets);
        let expected = r#"# TYPE a counter
# HELP a What \"is\"\ncounted.
a_total{x="q\"\\\n",y="z"} 3
# TYPE b_bytes gauge
# UNIT b_bytes bytes
# HELP b_bytes Size.
b_bytes 4
# TYPE c_seconds histogram
# UNIT c_seconds seconds
# HELP c_seconds Time.
c_seconds_bucket{le="0.5"} 1
c_seconds_bucket{le="1.0"} 1
c_seconds_bucket{le="+Inf"} 3
c_seconds_count 3
c_seconds_sum 7.25
# EOF
"#;
        assert_eq!(out.end(), expected);
    }
}
