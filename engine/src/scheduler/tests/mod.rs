//! The scheduler by itself: over a model that only counts (`fake`), and over real ones (`exact`).

mod exact;
mod fake;
mod order;
