//! A paired study as its arms saw it: each of its sessions as two, one an arm, side by side.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::archive::{Facts, Half, SessionFacts};
use crate::study::{PlannedSession, Protocol};

/// The facts with each session of a paired protocol taken apart by arm; any other study as it is.
/// The two halves of a session make one pair, and whose turn came first stands first.
pub fn by_arm(facts: &Facts) -> Cow<'_, Facts> {
    let Protocol::Paired { arms } = &facts.plan.protocol else {
        return Cow::Borrowed(facts);
    };
    let mut apart = facts.clone();
    apart.plan.sessions = facts
        .plan
        .sessions
        .iter()
        .flat_map(|planned| halves_of(planned, arms))
        .collect();
    apart.sessions = facts
        .sessions
        .iter()
        .flat_map(|session| {
            let halves = halves_of(&session.planned, arms);
            halves.map(move |planned| half(session, planned, &facts.plan.protocol))
        })
        .collect();
    Cow::Owned(apart)
}

/// The plan's entry twice: first for the arm that it names, then for the other one.
fn halves_of(
    planned: &PlannedSession,
    arms: &[String],
) -> impl Iterator<Item = PlannedSession> + use<> {
    let planned = planned.clone();
    let other = arms.iter().find(|arm| **arm != planned.arm).cloned();
    let both = [Some(planned.arm.clone()), other];
    (0_u32..)
        .zip(both.into_iter().flatten())
        .map(move |(rank, arm)| PlannedSession {
            index: planned.index * 2 + rank,
            arm,
            ..planned.clone()
        })
}

fn half(session: &SessionFacts, planned: PlannedSession, protocol: &Protocol) -> SessionFacts {
    let mut half = session.clone();
    half.requests
        .retain(|r| protocol.arm_of(&r.body) == Some(planned.arm.as_str()));
    let mut places = BTreeMap::new();
    for (place, request) in (0_u32..).zip(&half.requests) {
        places.insert(request.index, place);
    }
    half.half = Some(Half {
        folder: session.name(),
        arm: planned.arm.clone(),
        places,
    });
    half.planned = planned;
    half
}
