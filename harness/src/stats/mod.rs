//! Estimates over sessions; never over requests.
