//! Whether the same request gave the same tokens, within an arm and across arms.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::archive::SessionFacts;
use crate::replay::RequestRecord;
use crate::study::{Identity as Class, Role};

/// What is hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HashKind {
    /// Prompt token ids.
    Prompt,
    /// Generated token ids.
    Generated,
    /// Text of reasoning and answer: for servers that show no ids.
    Text,
}

impl HashKind {
    /// For people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Prompt => "prompt tokens",
            Self::Generated => "generated tokens",
            Self::Text => "generated text",
        }
    }

    pub(super) fn of<'a>(self, session: &'a SessionFacts, r: &'a RequestRecord) -> Option<&'a str> {
        match self {
            Self::Prompt => session.prompt_hash(r),
            Self::Generated => r.generated_hash.as_deref(),
            Self::Text => r.text_hash.as_deref(),
        }
    }
}

/// One comparison of hashes over scored sessions.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity {
    /// Arms compared: one for "across its sessions", more for "across arms".
    pub arms: Vec<String>,
    /// What is hashed.
    pub kind: HashKind,
    /// Whether the study declares that they must be equal.
    #[serde(default)]
    pub required: bool,
    /// Sessions compared.
    pub sessions: usize,
    /// Requests that showed a hash in every one of them.
    pub compared: usize,
    /// Requests that lack the hash in at least one.
    pub unseen: usize,
    /// Requests (by index, or by place among an arm's own) whose hashes differ.
    pub differing: Vec<u32>,
}

impl Identity {
    /// Absent when nothing could be compared.
    pub fn equal(&self) -> Option<bool> {
        (self.compared > 0).then_some(self.differing.is_empty())
    }
}

/// Compares hashes within each arm and across all arms.
pub(super) fn identities(
    arms: &[String],
    sessions: &[SessionFacts],
    class: Class,
) -> Vec<Identity> {
    let scored: Vec<&SessionFacts> = sessions
        .iter()
        .filter(|s| s.planned.role == Role::Scored)
        .collect();
    let mut groups: Vec<Vec<String>> = arms.iter().map(|a| vec![a.clone()]).collect();
    if arms.len() > 1 {
        groups.push(arms.to_vec());
    }
    let mut out = Vec::new();
    for group in groups {
        let members: Vec<&SessionFacts> = scored
            .iter()
            .copied()
            .filter(|s| group.contains(&s.planned.arm))
            .collect();
        for kind in [HashKind::Prompt, HashKind::Generated, HashKind::Text] {
            let mut found = identity(&group, kind, &members);
            // Arms on one model must be given the same prompt; what they generate across arms is
            // reported, never required. Text stands in for tokens where a server shows no ids.
            found.required = match kind {
                HashKind::Prompt => {
                    class != Class::None && (group.len() == 1 || one_model(&members))
                }
                HashKind::Generated | HashKind::Text => group.len() == 1 && class == Class::Exact,
            };
            out.push(found);
        }
    }
    out
}

/// Whether all sessions served the same model files.
fn one_model(sessions: &[&SessionFacts]) -> bool {
    let hashes = |s: &SessionFacts| -> Vec<String> {
        s.launch.models.iter().map(|m| m.sha256.clone()).collect()
    };
    sessions.windows(2).all(|w| hashes(w[0]) == hashes(w[1]))
}

fn identity(arms: &[String], kind: HashKind, sessions: &[&SessionFacts]) -> Identity {
    let mut seen: BTreeMap<u32, Vec<Option<&str>>> = BTreeMap::new();
    for session in sessions {
        for r in session.requests.iter().filter(|r| r.scored) {
            seen.entry(session.place(r.index))
                .or_default()
                .push(kind.of(session, r));
        }
    }
    let (mut compared, mut unseen, mut differing) = (0, 0, Vec::new());
    for (index, hashes) in seen {
        if hashes.len() < sessions.len() || hashes.iter().any(Option::is_none) || sessions.len() < 2
        {
            unseen += 1;
            continue;
        }
        compared += 1;
        if hashes.into_iter().collect::<BTreeSet<_>>().len() > 1 {
            differing.push(index);
        }
    }
    Identity {
        arms: arms.to_vec(),
        kind,
        required: false,
        sessions: sessions.len(),
        compared,
        unseen,
        differing,
    }
}
