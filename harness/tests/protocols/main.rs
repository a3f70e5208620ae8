//! Protocols over scripted servers: real processes, real sockets, sealed and audited archives.

#[path = "../archive_fixture/mod.rs"]
mod archive_fixture;
mod arrivals;
mod closed_loop;
mod cohort;
#[path = "../common/mod.rs"]
mod common;
mod interrupts;
mod older;
mod open_loop;
mod paired;
mod support;
mod warm;
