//! A run on a terminal, or in plain lines.

use std::io::IsTerminal;
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use super::Progress;
use super::live::{Live, in_words};
use crate::replay::RequestRecord;
use crate::study::{Plan, PlannedSession, Role};

/// Draws a second at most: drawing takes a fraction of a millisecond, on no thread that measures.
const DRAWS_HZ: u8 = 4;
/// How often the time is drawn while nothing happens.
const TICK: Duration = Duration::from_secs(1);

/// A live view on a terminal (where the plan is, the session now, rates so far, time left); one
/// plain line a step anywhere else. On standard error, so that standard output stays for results.
#[derive(Debug)]
pub struct Console {
    view: Option<View>,
    state: Mutex<State>,
}

/// The lines of a terminal.
#[derive(Debug)]
struct View {
    place: ProgressBar,
    now: ProgressBar,
    rates: ProgressBar,
    bar: ProgressBar,
}

#[derive(Debug)]
struct State {
    live: Live,
    plan: Option<(usize, usize)>,
    name: String,
    began: Instant,
}

impl View {
    fn new() -> Self {
        let all = MultiProgress::with_draw_target(ProgressDrawTarget::stderr_with_hz(DRAWS_HZ));
        let line = |label: &str| {
            let bar = all.add(ProgressBar::new(0));
            if let Ok(style) = ProgressStyle::with_template(&format!("{label:6} {{wide_msg}}")) {
                bar.set_style(style);
            }
            bar
        };
        let (place, now, rates) = (line("plan"), line("now"), line("so far"));
        let bar = all.add(ProgressBar::new(0));
        let template = "{bar:20} {pos}/{len} sessions, {elapsed} {wide_msg}";
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        bar.enable_steady_tick(TICK);
        Self {
            place,
            now,
            rates,
            bar,
        }
    }

    fn show(&self, state: &State) {
        self.place.set_message(state.live.place());
        self.rates.set_message(state.live.rates());
        let left = state.live.time_left(state.began.elapsed());
        self.bar.set_message(left.map(in_words).unwrap_or_default());
    }
}

impl Console {
    /// Chooses by what standard error is.
    pub fn new() -> Self {
        Self {
            view: std::io::stderr().is_terminal().then(View::new),
            state: Mutex::new(State {
                live: Live::default(),
                plan: None,
                name: String::new(),
                began: Instant::now(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A step with its session's place in the plan; before there is a plan, as when another study is
/// waited for, the step alone.
fn counted(plan: Option<(usize, usize)>, name: &str, text: &str) -> String {
    let text = match name {
        "" => text.to_owned(),
        name => format!("{name}: {text}"),
    };
    match plan {
        None => text,
        Some((done, total)) => format!("[{}/{total}] {text}", done + 1),
    }
}

impl Default for Console {
    fn default() -> Self {
        Self::new()
    }
}

impl Progress for Console {
    fn planned(&self, _: &Path, plan: &Plan, finished: &[PlannedSession]) {
        let total = plan.sessions.len();
        let mut state = self.state();
        state.live = Live::new(plan, finished.len());
        state.plan = Some((finished.len(), total));
        if let Some(view) = &self.view {
            view.bar.set_length(total as u64);
            view.bar.set_position(finished.len() as u64);
            view.show(&state);
        }
    }

    fn session(&self, session: &PlannedSession) {
        let mut state = self.state();
        state.live.session(session);
        state.began = Instant::now();
        state.name = match session.role {
            Role::BurnIn => format!("{} (burn-in, not scored)", session.arm),
            Role::Scored => session.arm.clone(),
        };
        if let Some(view) = &self.view {
            view.show(&state);
        }
    }

    fn step(&self, text: &str) {
        let state = self.state();
        match &self.view {
            Some(view) => {
                view.now.set_message(format!("{} {text}", state.name));
                view.show(&state);
            }
            None => eprintln!("{}", counted(state.plan, &state.name, text)),
        }
    }

    fn request(&self, session: &PlannedSession, record: &RequestRecord) {
        let mut state = self.state();
        state.live.request(&session.arm, record);
        if let Some(view) = &self.view {
            view.show(&state);
        }
    }

    fn committed(&self, session: &PlannedSession) {
        let mut state = self.state();
        let wall = state.began.elapsed();
        state.live.committed(session, wall);
        let left = state.live.time_left(Duration::ZERO);
        let left = left.map(in_words).unwrap_or_default();
        if let Some(view) = &self.view {
            view.bar.inc(1);
            view.show(&state);
        } else {
            let text = format!("done; {left}");
            eprintln!("{}", counted(state.plan, &state.name, &text));
        }
        if let Some((done, _)) = &mut state.plan {
            *done += 1;
        }
    }

    fn finished(&self) {
        if let Some(view) = &self.view {
            for line in [&view.place, &view.now, &view.rates, &view.bar] {
                line.finish_and_clear();
            }
        }
    }
}

impl Drop for Console {
    /// A study that stops early leaves no half-drawn lines below which its error would stand.
    fn drop(&mut self) {
        self.finished();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_before_the_plan_has_no_place() {
        assert_eq!(counted(None, "", "waiting: x"), "waiting: x");
        assert_eq!(counted(Some((1, 5)), "slow", "done"), "[2/5] slow: done");
    }
}
