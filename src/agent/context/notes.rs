//! What an import has to say to whoever asked for it, one sentence each.

/// Counts of what happened on the way.
#[derive(Debug, Default)]
pub(super) struct Notes {
    /// Files whose content the transcript does not show.
    pub(super) unseen: usize,
    /// Files of which it shows some lines.
    pub(super) in_part: usize,
    pub(super) line_ends: usize,
    pub(super) elsewhere: usize,
    pub(super) contradicted: usize,
    pub(super) no_repository: bool,
    pub(super) searches: usize,
    pub(super) commands: usize,
    /// Of these two, those that the session may have overtaken itself.
    pub(super) overtaken: usize,
    pub(super) volatile: usize,
    pub(super) cut: usize,
    pub(super) left_out: LeftOut,
}

/// Searches and commands that were not registered, by the reason.
#[derive(Debug, Default)]
pub(super) struct LeftOut {
    pub(super) writes: usize,
    pub(super) background: usize,
    pub(super) refused: usize,
    pub(super) elsewhere: usize,
    pub(super) no_repository: usize,
    pub(super) known_since: usize,
    pub(super) private: usize,
    pub(super) early: usize,
}

impl LeftOut {
    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.reasons().iter().map(|(count, _)| count).sum()
    }

    fn reasons(&self) -> [(usize, &'static str); 8] {
        [
            (self.writes, "changed something"),
            (self.background, "ran in the background"),
            (self.refused, "did not run"),
            (self.elsewhere, "read outside the root"),
            (self.no_repository, "asked git, and the root is in no repository"),
            (self.known_since, "showed a file that the session changed or read again later"),
            (self.private, "named a private path"),
            (self.early, "came before the latest ones"),
        ]
    }

    fn sentence(&self) -> Option<String> {
        let reasons = self.reasons();
        let said: Vec<String> = reasons
            .iter()
            .filter(|(count, _)| *count > 0)
            .map(|(count, why)| format!("{count} {why}"))
            .collect();
        let count = counted(self.count(), "search or command was", "searches and commands were");
        (!said.is_empty()).then(|| format!("{count} left out: {}", said.join(", ")))
    }
}

impl Notes {
    /// The sentences, for what there is to be said.
    pub(super) fn sentences(&self) -> Vec<String> {
        let counted_files = [
            (self.in_part, "known only in part: the lines that were shown are watched, the others are not"),
            (self.unseen, "known only by name: what is on disk now stands in as their baseline"),
            (self.contradicted, "changed under the agent while it worked: what it saw first is out of date"),
            (self.line_ends, "differ from what the agent saw in line ends alone, and count as the same"),
            (
                self.elsewhere,
                "outside the root belong to another machine and were left out (name them with --map)",
            ),
        ];
        let files = counted_files.iter().filter(|(count, _)| *count > 0);
        let mut sentences: Vec<String> =
            files.map(|(count, what)| format!("{} {what}", counted(*count, "file", "files"))).collect();
        if self.no_repository {
            sentences.push("the root is in no git repository, so HEAD is not watched".to_owned());
        }
        sentences.extend(self.questions());
        sentences.extend(self.left_out.sentence());
        sentences
    }

    fn questions(&self) -> Vec<String> {
        let kinds = [(self.searches, "search", "searches"), (self.commands, "command", "commands")];
        let said = kinds.iter().filter(|(count, ..)| *count > 0);
        let asked: Vec<String> = said.map(|&(count, one, many)| counted(count, one, many)).collect();
        let asked = asked.join(" and ");
        let overtaken = match self.overtaken {
            0 => String::new(),
            count => format!("; {count} of them came before the session's own last edit"),
        };
        let cases = [
            (
                self.searches + self.commands > 0,
                format!("{asked} watched from now on, for what was found then is not kept{overtaken}"),
            ),
            (
                self.volatile > 0,
                format!(
                    "{} on what nobody can watch: stale from the start",
                    counted(self.volatile, "command rests", "commands rest")
                ),
            ),
            (
                self.cut > 0,
                format!("{} too long to be kept whole", counted(self.cut, "text was", "texts were")),
            ),
        ];
        cases.into_iter().filter_map(|(applies, sentence)| applies.then_some(sentence)).collect()
    }
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}
