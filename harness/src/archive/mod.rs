//! The evidence on disk (EVIDENCE.md in the design; `docs/archive.md` for users).

mod crash;
mod disk;
mod error;
mod event;
mod format;
mod json;
mod layout;
mod reader;
mod seal;
mod session_writer;
mod signature;
mod writer;

pub use disk::{hash_file, sha256_hex};
pub(crate) use disk::{replace_file, short};
pub use error::ArchiveError;
pub use event::Event;
pub use format::{CHANGELOG, PREDICATE_TYPE, SCHEMA, STATEMENT_TYPE, minor};
pub(crate) use json::parse as parse_unique;
pub(crate) use layout::{is_outside_manifest, slug};
pub use layout::{list_files, session_folder_name, utc_rfc3339};
pub(crate) use reader::parse_document;
pub use reader::{Archive, Facts, Half, SessionFacts};
pub use seal::{Manifest, Subject, check_seal, check_sums, manifest_bytes, sums};
pub use session_writer::{SessionSummary, SessionWriter};
pub use signature::{
    KeyError, PublicKey, SecretKey, SignError, Signed, check_signature, generate_keys,
    sign_archive, sign_file,
};
pub use writer::ArchiveWriter;
