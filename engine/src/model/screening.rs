//! When the output matrix is screened, and what came of it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::ops::Kept;

/// Passes after which it is judged.
const WINDOW: usize = 8;
/// Share of rows computed above which it costs more than it saves: the high part is 26 of a
/// block's 34 bytes, and what is computed is read once more.
const MOST: f64 = 0.2;
/// Passes without it after the first window that did not pay; twice as many after each further
/// one, up to the second number.
const PAUSES: (usize, usize) = (64, 4096);

/// Products of the output matrix since the model was loaded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ScreenCounts {
    /// Rows times tokens that were asked for in screened passes.
    pub screened: u64,
    /// Of these, computed.
    pub computed: u64,
}

/// Switches itself off where it does not pay, and on again to see whether it does by now. It
/// changes which products are computed, and none that a choice depends on.
#[derive(Debug, Default)]
pub(super) struct Screening {
    screened: AtomicU64,
    computed: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    passes: usize,
    screened: usize,
    computed: usize,
    /// Passes to go without.
    pause: usize,
    /// The length of the next pause, halved.
    last_pause: usize,
}

impl Screening {
    /// Whether to screen the next pass that could be.
    pub fn is_on(&self) -> bool {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let on = state.pause == 0;
        state.pause = state.pause.saturating_sub(1);
        on
    }

    /// Takes in what a screened pass did.
    pub fn saw(&self, kept: Kept) {
        self.screened
            .fetch_add(kept.screened as u64, Ordering::Relaxed);
        self.computed
            .fetch_add(kept.computed as u64, Ordering::Relaxed);
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        state.passes += 1;
        state.screened += kept.screened;
        state.computed += kept.computed;
        if state.passes < WINDOW {
            return;
        }
        let paid = state.computed as f64 <= MOST * state.screened as f64;
        let pause = if paid {
            0
        } else {
            (2 * state.last_pause).clamp(PAUSES.0, PAUSES.1)
        };
        *state = State {
            pause,
            last_pause: pause,
            ..State::default()
        };
    }

    /// Since the model was loaded.
    pub fn counts(&self) -> ScreenCounts {
        ScreenCounts {
            screened: self.screened.load(Ordering::Relaxed),
            computed: self.computed.load(Ordering::Relaxed),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Passes without screening until it is on again.
    fn pause(screening: &Screening) -> usize {
        (0..=2 * PAUSES.1)
            .take_while(|_| !screening.is_on())
            .count()
    }

    #[test]
    fn it_goes_off_where_it_does_not_pay_and_looks_again() {
        let screening = Screening::default();
        let window = |computed| {
            for _ in 0..WINDOW {
                assert!(screening.is_on());
                screening.saw(Kept {
                    screened: 100,
                    computed,
                });
            }
        };
        window(20);
        assert_eq!(pause(&screening), 0);
        // `is_on` above was one look; the window goes on.
        window(21);
        assert_eq!(pause(&screening), 64);
        window(100);
        assert_eq!(pause(&screening), 128);
        window(0);
        assert_eq!(pause(&screening), 0);
        window(100);
        assert_eq!(pause(&screening), 64);
        let counts = screening.counts();
        assert_eq!(
            (counts.screened, counts.computed),
            (4000, 8 * (20 + 21 + 200))
        );
    }
}
