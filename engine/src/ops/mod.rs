//! The steps of a forward pass.
