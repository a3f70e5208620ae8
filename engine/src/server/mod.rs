//! The HTTP surface (SERVER_API.md in the design; `docs/api.md` for users).
