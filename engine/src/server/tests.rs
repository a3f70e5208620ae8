//! The whole HTTP surface over a scripted backend.
