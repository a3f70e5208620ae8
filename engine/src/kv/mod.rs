//! Keys and values of the positions seen so far.
