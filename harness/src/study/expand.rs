//! From a study to the exact order of its sessions.

use super::coin::SplitMix64;
use super::{Phase, Plan, PlannedSession, Protocol, Role, Study};
use crate::archive::SCHEMA;

impl Plan {
    /// The plan of a study: nothing in it depends on the machine or on a result.
    pub fn of(study: &Study) -> Self {
        let arms: Vec<String> = study.arms.iter().map(|a| a.name.clone()).collect();
        let coins = coins(study.seed, study.quartets);
        let named = |bodies: &[super::Body]| -> Vec<(String, String)> {
            bodies
                .iter()
                .map(|b| (b.name.clone(), b.sha256.clone()))
                .collect()
        };
        let (warmups, listed) = (
            named(&study.workload.warmups),
            named(&study.workload.bodies),
        );
        let protocol = study.protocol.clone();
        Self {
            schema: SCHEMA.to_owned(),
            study: study.name.clone(),
            study_sha256: study.sha256.clone(),
            seed: study.seed,
            sessions: order_of(&study.protocol, &arms, &coins, study.burn_in),
            coins,
            arms,
            phases: written_phases(&protocol, &names(&warmups), &names(&listed)),
            protocol,
            looks: study.looks.clone(),
            warmups,
            bodies: listed,
        }
    }
}

fn names(bodies: &[(String, String)]) -> Vec<String> {
    bodies.iter().map(|(name, _)| name.clone()).collect()
}

/// The phases as `plan.json` states them: none for the default protocol.
pub fn written_phases(protocol: &Protocol, warmups: &[String], bodies: &[String]) -> Vec<Phase> {
    if protocol.is_fresh() {
        return Vec::new();
    }
    protocol.phases(warmups, bodies)
}

/// One recorded coin a quartet.
pub fn coins(seed: u64, quartets: u32) -> Vec<bool> {
    let mut rng = SplitMix64::new(seed);
    (0..quartets).map(|_| rng.coin()).collect()
}

/// The order of sessions of a protocol. A session of a paired one is a pair by itself: its arm is the
/// one whose turn comes first, and the two sessions of a quartet mirror each other.
pub fn order_of(
    protocol: &Protocol,
    arms: &[String],
    coins: &[bool],
    burn_in: bool,
) -> Vec<PlannedSession> {
    if !matches!(protocol, Protocol::Paired { .. }) {
        return order(arms, coins, burn_in);
    }
    let leads = order(arms, coins, burn_in).into_iter();
    let leads = leads.filter(|s| s.role == Role::BurnIn || s.index % 2 == u32::from(burn_in));
    (0_u32..)
        .zip(leads)
        .map(|(index, s)| PlannedSession { index, ..s })
        .collect()
}

/// The order of sessions: one unscored burn-in session of the first arm, then a quartet a coin.
/// A quartet runs all arms and then all arms backwards (A B B A; A B C C B A), or the other way
/// round where the coin is `false` (B A A B). Each half of a quartet is a pair: with two arms,
/// two adjacent sessions.
pub fn order(arms: &[String], coins: &[bool], burn_in: bool) -> Vec<PlannedSession> {
    let mut sessions = Vec::new();
    if burn_in && let Some(first) = arms.first() {
        sessions.push(PlannedSession {
            index: 0,
            arm: first.clone(),
            role: Role::BurnIn,
            quartet: None,
            pair: None,
        });
    }
    for (quartet, &forward) in (0_u32..).zip(coins) {
        for half in 0..2_u32 {
            let ascending = forward == (half == 0);
            for i in 0..arms.len() {
                let arm = if ascending {
                    &arms[i]
                } else {
                    &arms[arms.len() - 1 - i]
                };
                sessions.push(PlannedSession {
                    index: sessions.len() as u32,
                    arm: arm.clone(),
                    role: Role::Scored,
                    quartet: Some(quartet),
                    pair: Some(quartet * 2 + half),
                });
            }
        }
    }
    sessions
}
