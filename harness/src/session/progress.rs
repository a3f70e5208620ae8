//! Telling people what happens.

use std::io::IsTerminal;
use std::sync::{Mutex, PoisonError};

use indicatif::{ProgressBar, ProgressStyle};

use crate::study::{Plan, PlannedSession, Role};

/// Hears the steps of a run.
pub trait Progress {
    /// The plan is written; `finished` of its sessions were done before.
    fn planned(&self, plan: &Plan, finished: usize);
    /// A session starts.
    fn session(&self, session: &PlannedSession);
    /// A step of it.
    fn step(&self, text: &str);
    /// The session is in the archive.
    fn committed(&self, session: &PlannedSession);
    /// Nothing more comes.
    fn finished(&self);
}

/// Says nothing.
#[derive(Clone, Copy, Debug, Default)]
pub struct Silent;

impl Progress for Silent {
    fn planned(&self, _: &Plan, _: usize) {}
    fn session(&self, _: &PlannedSession) {}
    fn step(&self, _: &str) {}
    fn committed(&self, _: &PlannedSession) {}
    fn finished(&self) {}
}

/// A bar on a terminal; one plain line a step anywhere else. On standard error, so that standard
/// output stays for results.
#[derive(Debug)]
pub struct Console {
    terminal: bool,
    bar: ProgressBar,
    state: Mutex<(u32, String)>,
}

impl Console {
    /// Chooses by what standard error is.
    pub fn new() -> Self {
        let terminal = std::io::stderr().is_terminal();
        let bar = if terminal {
            ProgressBar::new(0)
        } else {
            ProgressBar::hidden()
        };
        if let Ok(style) = ProgressStyle::with_template("{bar:20} {pos}/{len} {elapsed} {wide_msg}")
        {
            bar.set_style(style);
        }
        Self {
            terminal,
            bar,
            state: Mutex::new((0, String::new())),
        }
    }

    fn say(&self, text: &str) {
        let (total, name) = self
            .state
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let text = match name.as_str() {
            "" => text.to_owned(),
            name => format!("{name}: {text}"),
        };
        if self.terminal {
            self.bar.set_message(text);
            self.bar.tick();
        } else {
            eprintln!("{}", counted(self.bar.position() + 1, total, &text));
        }
    }
}

/// A step with its session's place in the plan; before there is a plan, as when another study is
/// waited for, the step alone.
fn counted(place: u64, total: u32, text: &str) -> String {
    match total {
        0 => text.to_owned(),
        total => format!("[{place}/{total}] {text}"),
    }
}

impl Default for Console {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress for Console {
    fn planned(&self, plan: &Plan, finished: usize) {
        let total = plan.sessions.len() as u32;
        self.bar.set_length(u64::from(total));
        self.bar.set_position(finished as u64);
        self.state.lock().unwrap_or_else(PoisonError::into_inner).0 = total;
    }

    fn session(&self, session: &PlannedSession) {
        let name = match session.role {
            Role::BurnIn => format!("{} (burn-in, not scored)", session.arm),
            Role::Scored => session.arm.clone(),
        };
        self.state.lock().unwrap_or_else(PoisonError::into_inner).1 = name;
    }

    fn step(&self, text: &str) {
        self.say(text);
    }

    fn committed(&self, _: &PlannedSession) {
        self.say("done");
        self.bar.inc(1);
    }

    fn finished(&self) {
        self.bar.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_before_the_plan_has_no_place() {
        assert_eq!(counted(1, 0, "waiting: x"), "waiting: x");
        assert_eq!(counted(2, 5, "slow: done"), "[2/5] slow: done");
    }
}
