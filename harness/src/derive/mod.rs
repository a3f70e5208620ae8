//! Pure: raw facts to labelled figures. Every figure that anyone ever sees comes out of here.

mod alone;
mod book;
mod compare;
mod figure;
mod formula;
mod group;
mod identity;
mod metric;
mod request;
mod session;
mod verdict;

pub use alone::Alone;
pub use book::{Figures, derive, detectable};
pub use compare::Comparison;
pub use figure::{AnyFigure, Assumed, Calculated, Fact, Figure, Label, Measured, Published, Unit};
pub use formula::Formula;
pub use identity::{HashKind, Identity};
pub use metric::Metric;
pub use verdict::{Verdict, three_digits};
