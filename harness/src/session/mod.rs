//! A study under way: launch, ready, replay, stop, in the plan's order.

mod end;

pub use end::SessionEnd;
