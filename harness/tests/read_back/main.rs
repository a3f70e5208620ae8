//! What servers really did, read back and compared with what a study expects; noise and energy.

#[path = "../archive_fixture/mod.rs"]
mod archive_fixture;
#[path = "../common/mod.rs"]
mod common;
mod logs;
mod noise;
mod studies;
mod support;
mod times;
