//! The evidence on disk (EVIDENCE.md in the design; `docs/archive.md` for users).
