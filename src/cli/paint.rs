//! Colour: a few ANSI codes, on a terminal only, and never with `NO_COLOR`. Nothing is said by colour alone.

/// What a colour means.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tone {
    /// As it comes.
    Plain,
    /// Holds: fresh, resume, pass.
    Good,
    /// Does not hold: stale, fresh start, fail.
    Bad,
    /// Cannot be told.
    Doubt,
    /// Runs in parallel: fork.
    Apart,
    /// A heading.
    Strong,
    /// Beside the point.
    Faint,
}

/// Whether to colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Paint {
    on: bool,
}

impl Paint {
    pub(super) fn new(on_terminal: bool) -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        Self { on: on_terminal && !unwanted && !dumb }
    }

    /// One that looks at no environment.
    #[cfg(test)]
    pub(super) fn of_test(on: bool) -> Self {
        Self { on }
    }

    /// Whether anything is coloured.
    pub(super) fn is_on(self) -> bool {
        self.on
    }

    /// The text in the colour of a tone.
    pub(super) fn of(self, tone: Tone, text: &str) -> String {
        match (self.on, code(tone)) {
            (true, Some(code)) if !text.is_empty() => format!("\x1b[{code}m{text}\x1b[0m"),
            _ => text.to_owned(),
        }
    }
}

fn code(tone: Tone) -> Option<&'static str> {
    match tone {
        Tone::Plain => None,
        Tone::Good => Some("32"),
        Tone::Bad => Some("31"),
        Tone::Doubt => Some("33"),
        Tone::Apart => Some("36"),
        Tone::Strong => Some("1"),
        Tone::Faint => Some("2"),
    }
}

#[cfg(test)]
mod tests {
    use super::{Paint, Tone};

    #[test]
    fn colour_is_on_or_off() {
        assert_eq!(Paint { on: true }.of(Tone::Good, "fresh"), "\x1b[32mfresh\x1b[0m");
        assert_eq!(Paint { on: true }.of(Tone::Plain, "fresh"), "fresh");
        assert_eq!(Paint { on: false }.of(Tone::Good, "fresh"), "fresh");
    }
}
