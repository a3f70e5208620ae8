//! Whether a request is answered alike in company and alone.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use super::book::Book;
use super::figure::{AnyFigure, Fact, Figure, Unit};
use super::session::SessionFigures;
use super::{Formula, HashKind};
use crate::archive::SessionFacts;
use crate::replay::RequestRecord;
use crate::study::{ALONE, Role};

/// Answers of one arm's cohorts next to the same bodies' answers alone, later in the same session.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Alone {
    /// The arm.
    pub arm: String,
    /// What is compared: token ids, or text where a server shows none.
    pub kind: HashKind,
    /// Scored sessions.
    pub sessions: usize,
    /// Answers of cohorts, over all sessions, of which both hashes are shown.
    pub compared: usize,
    /// Of those, the ones equal to the answer alone.
    pub identical: usize,
    /// Answers that lack a hash on either side.
    pub unseen: usize,
    /// Requests (by index) whose answers differ in at least one session.
    pub differing: Vec<u32>,
}

/// An answer of a cohort and the same body's answer alone.
struct Couple<'a> {
    session: &'a SessionFacts,
    together: &'a RequestRecord,
    alone: &'a RequestRecord,
}

impl Couple<'_> {
    /// Whether their hashes are equal; absent where either is not shown.
    fn equal(&self, kind: HashKind) -> Option<bool> {
        let hash = |r| kind.of(self.session, r);
        Some(hash(self.together)? == hash(self.alone)?)
    }
}

/// The couples of a session.
fn couples(session: &SessionFacts) -> impl Iterator<Item = Couple<'_>> {
    let scored = session.requests.iter().filter(|r| r.scored);
    scored.filter_map(move |together| {
        let alone = session
            .requests
            .iter()
            .find(|r| r.phase.as_deref() == Some(ALONE) && r.body == together.body)?;
        Some(Couple {
            session,
            together,
            alone,
        })
    })
}

/// Compares and publishes the counts of one arm; absent where nothing was replayed alone.
pub(super) fn alone(
    book: &mut Book,
    arm: &str,
    facts: &[SessionFacts],
    figures: &[SessionFigures<'_>],
) -> Option<Alone> {
    let mine =
        |planned: &crate::study::PlannedSession| planned.arm == arm && planned.role == Role::Scored;
    let sessions: Vec<&SessionFacts> = facts.iter().filter(|s| mine(&s.planned)).collect();
    let couples: Vec<Couple<'_>> = sessions.iter().flat_map(|s| couples(s)).collect();
    if couples.is_empty() {
        return None;
    }
    let shows = |kind| couples.iter().any(|c| c.equal(kind).is_some());
    let kind = if shows(HashKind::Generated) {
        HashKind::Generated
    } else {
        HashKind::Text
    };
    let seen: Vec<(&Couple<'_>, bool)> = couples
        .iter()
        .filter_map(|c| Some((c, c.equal(kind)?)))
        .collect();
    let differing: BTreeSet<u32> = seen
        .iter()
        .filter(|(_, equal)| !equal)
        .map(|(c, _)| c.together.index)
        .collect();
    let found = Alone {
        arm: arm.to_owned(),
        kind,
        sessions: sessions.len(),
        compared: seen.len(),
        identical: seen.iter().filter(|(_, equal)| *equal).count(),
        unseen: couples.len() - seen.len(),
        differing: differing.into_iter().collect(),
    };
    let facts: Vec<Fact> = seen.iter().flat_map(|(c, _)| hashes(c, kind)).collect();
    let scope = format!("arm/{arm}");
    for (name, count) in [
        ("alone_compared", found.compared),
        ("alone_identical", found.identical),
    ] {
        book.add(Figure::counted(
            format!("{scope}/{name}"),
            Unit::Count,
            Some(count as f64),
            &facts,
        ));
    }
    let replayed: Vec<_> = figures
        .iter()
        .filter(|s| mine(s.planned))
        .flat_map(SessionFigures::alone)
        .collect();
    // A body sent before may have left its prompt in a cache: said, because it is another way there.
    let prompt: Vec<&dyn AnyFigure> = replayed.iter().map(|r| &r.prompt as _).collect();
    let cached: Vec<&dyn AnyFigure> = replayed.iter().map(|r| &r.cached as _).collect();
    for (name, inputs) in [("prompt_tokens", prompt), ("cached_tokens", cached)] {
        let id = format!("{scope}/alone_{name}");
        book.add(Figure::by(id, Unit::Tokens, &Formula::Sum, &inputs));
    }
    Some(found)
}

/// The two recorded hashes of a couple.
fn hashes(couple: &Couple<'_>, kind: HashKind) -> [Fact; 2] {
    let file = format!("sessions/{}/requests.jsonl", couple.session.name());
    let field = match kind {
        HashKind::Prompt => "prompt_hash",
        HashKind::Generated => "generated_hash",
        HashKind::Text => "text_hash",
    };
    [couple.together, couple.alone].map(|r| Fact::new(&file, &format!("{}/{field}", r.index), None))
}
