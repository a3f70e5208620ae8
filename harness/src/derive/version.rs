//! Versions of `derive`: which figures there are. `figures.json` states the one that published it.
//!
//! A published figure is audited for as long as its archive exists, so what a version derives never
//! changes afterwards:
//!
//! * A new figure is added inside [`Book::since`](super::book::Book::since) with the newest version,
//!   or only where a fact is there that older archives lack.
//!   Audits of older archives count it and do not miss it.
//! * A new formula for an existing figure gets a name of its own, and stands beside the old one:
//!   `if book.version() >= N { new } else { old }`. So do new words: a sentence that would appear in
//!   an older archive's verdict too is said only from `figures.derive_version() >= N` on.
//! * The first of either after archives of the newest version were kept takes the next number here.

/// The newest version: what `derive` derives.
pub const DERIVE: u32 = 2;

/// What each version added, newest first.
pub const DERIVE_CHANGELOG: &[(u32, &str)] = &[
    (
        2,
        "`derive` in figures.json; where servers were read back (readback.json): settings, noise, energy, first byte and \
         first content, percentiles of requests sent one at a time; what the client cost; halves of paired sessions; \
         margins of further `[gate]` rules and quartets to settle them",
    ),
    (
        1,
        "everything before: archives of format 1.0 and 1.1, whose figures.json states no version",
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_changelog_names_every_version() {
        let named: Vec<u32> = DERIVE_CHANGELOG.iter().map(|(v, _)| *v).collect();
        let all: Vec<u32> = (1..=DERIVE).rev().collect();
        assert_eq!(named, all);
    }
}
