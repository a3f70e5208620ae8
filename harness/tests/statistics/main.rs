//! Statistics: against scipy, by simulation, with planted truths, and as studies publish them.

#[path = "../archive_fixture/mod.rs"]
mod archive_fixture;
mod calibration;
#[path = "../common/mod.rs"]
mod common;
mod derived;
mod looks;
mod planted;
mod power;
mod student;
