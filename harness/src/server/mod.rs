//! Launching servers: one adapter a kind.
