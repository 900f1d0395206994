//! Where a context was cut: which earlier results are still in it.
//!
//! A compaction keeps nothing but what it names; a small one ("micro") keeps everything but what it names.

use crate::agent::line::{Line, text, texts};
use serde_json::Value;
use std::collections::{HashMap, HashSet};

/// One cut.
pub(super) enum Boundary {
    /// Everything before became a summary, but for these.
    Summary {
        /// Lines by uuid.
        uuids: HashSet<String>,
        /// A run of lines, its first and last by uuid.
        segment: Option<(String, String)>,
    },
    /// These were cleared.
    Cleared {
        /// Results by their call.
        calls: HashSet<String>,
        /// Attachments by uuid.
        uuids: HashSet<String>,
    },
}

impl Boundary {
    /// The cut that a line marks, if any.
    pub(super) fn parse(line: &Line) -> Option<Self> {
        match (line.text("type")?, line.text("subtype")?) {
            ("system", "compact_boundary") => Some(Self::summary(line.part("compactMetadata"))),
            ("system", "microcompact_boundary") => {
                let metadata = line.part("microcompactMetadata")?;
                let calls = owned(metadata, "compactedToolIds");
                Some(Self::Cleared { calls, uuids: owned(metadata, "clearedAttachmentUUIDs") })
            }
            _ => None,
        }
    }

    fn summary(metadata: Option<&Value>) -> Self {
        let preserved = |name: &str| metadata.and_then(|metadata| metadata.get(name)).unwrap_or(&Value::Null);
        let messages = preserved("preservedMessages");
        let run = preserved("preservedSegment");
        let mut uuids = owned(messages, "uuids");
        uuids.extend(owned(messages, "allUuids"));
        let segment = text(run, "headUuid").zip(text(run, "tailUuid"));
        Self::Summary { uuids, segment: segment.map(|(head, tail)| (head.into(), tail.into())) }
    }

    /// Whether what stands at this place is still in the context. `lines` tells the line of a uuid.
    pub(super) fn keeps(
        &self,
        line: u64,
        uuid: Option<&str>,
        call: Option<&str>,
        lines: &HashMap<String, u64>,
    ) -> bool {
        let named = |set: &HashSet<String>, name: Option<&str>| name.is_some_and(|name| set.contains(name));
        match self {
            Self::Summary { uuids, segment } => {
                let ends = segment.as_ref().and_then(|(head, tail)| lines.get(head).zip(lines.get(tail)));
                named(uuids, uuid) || ends.is_some_and(|(&head, &tail)| (head..=tail).contains(&line))
            }
            Self::Cleared { calls, uuids } => !named(calls, call) && !named(uuids, uuid),
        }
    }
}

fn owned(value: &Value, field: &str) -> HashSet<String> {
    texts(value, field).map(str::to_owned).collect()
}
