//! Re-derives everything from raw bytes and compares.
