//! Pure: raw facts to labelled figures. Every figure that anyone ever sees comes out of here.

mod alone;
mod book;
mod compare;
mod energy;
mod expected;
mod family;
mod figure;
mod foresee;
mod formula;
mod group;
mod halves;
mod identity;
mod look;
mod metric;
mod noise;
mod request;
mod session;
mod settings;
mod settling;
mod verdict;
mod version;
mod worst;

pub use alone::Alone;
pub use book::{Derived, Figures, derive, derive_as, detectable};
pub use compare::Comparison;
pub use expected::{ExpectedDuration, SeenSessions, expected_duration, in_words};
pub use figure::{
    AnyFigure, Assumed, Calculated, Fact, Figure, Label, Measured, Published, Simulated, Unit,
};
pub use foresee::{Foresight, Spread, foresee, foresee_pairs, percent};
pub use formula::Formula;
pub use halves::by_arm;
pub use identity::{HashKind, Identity};
pub use look::{Look, ended_by_look, followed};
pub use metric::Metric;
pub use noise::{Limits, NOISE_RULES, Noise, NoiseKind};
pub(crate) use settings::shown;
pub use settings::{
    Asked, By, SessionSettings, Setting, Terms, Verdicted, broken_terms, gists, settings,
    unused_instructions,
};
pub use settling::settling;
pub use verdict::{Verdict, three_digits};
pub use version::{DERIVE, DERIVE_CHANGELOG};
pub use worst::{PERCENTS, WORST};
