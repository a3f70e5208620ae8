//! Planted slowness: a truth that a study of this engine must find. Only in builds with debug
//! assertions or the feature `planted`; any other build has none of it.
//!
//! `PALINDROME_PLANTED` is a list of `key=value`:
//!
//! * `decode_share=0.05`: the time from token to token is 5% longer, whatever it is.
//! * `first_ms=20`: the first token comes 20 ms later.
//! * `decode_floor_ms=30`, `first_floor_ms=100`: from token to token, and to the first one, at least so
//!   long, so that a busy machine shows through less; a token that was late is caught up with.
//!
//! Meant for one request at a time.

use std::time::{Duration, Instant};

/// Name of the variable.
const VARIABLE: &str = "PALINDROME_PLANTED";
/// The last part of a wait is spun through, for its end to be exact.
const SPIN: Duration = Duration::from_micros(300);

/// What is planted, and the times that it goes by.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Planted {
    decode_share: f64,
    first: Duration,
    decode_floor: Duration,
    first_floor: Duration,
    /// When the last token was reported.
    reported: Option<Instant>,
    /// When the first pass over a prompt began.
    prompt: Option<Instant>,
}

impl Planted {
    /// As the environment says; nothing without it.
    pub fn from_environment() -> Self {
        let said = std::env::var(VARIABLE).unwrap_or_default();
        match Self::parse(&said) {
            Ok(planted) => {
                if !said.is_empty() {
                    eprintln!("planted slowness: {said}");
                }
                planted
            }
            Err(wrong) => {
                eprintln!("{VARIABLE}: {wrong}; nothing is planted");
                Self::default()
            }
        }
    }

    fn parse(said: &str) -> Result<Self, String> {
        let mut planted = Self::default();
        for entry in said.split(',').filter(|entry| !entry.is_empty()) {
            let (key, value) = entry.split_once('=').unwrap_or((entry, ""));
            let value: f64 = value
                .parse()
                .ok()
                .filter(|v| (0.0..=60_000.0).contains(v))
                .ok_or_else(|| format!("{entry:?} is no `key=number`"))?;
            let ms = Duration::from_secs_f64(value / 1e3);
            match key {
                "decode_share" => planted.decode_share = value,
                "first_ms" => planted.first = ms,
                "decode_floor_ms" => planted.decode_floor = ms,
                "first_floor_ms" => planted.first_floor = ms,
                _ => return Err(format!("{key:?} is not known")),
            }
        }
        Ok(planted)
    }

    /// A pass begins.
    pub fn begins(&mut self, over_a_prompt: bool) {
        if over_a_prompt {
            self.prompt.get_or_insert_with(Instant::now);
        }
    }

    /// Waits after a pass, before its tokens are reported. `first` says that a prompt is complete with
    /// it, `decodes` that it holds no prompt at all.
    pub fn wait(&mut self, first: bool, decodes: bool) {
        let now = Instant::now();
        let until = if first {
            let floor = self.prompt.take().map(|began| began + self.first_floor);
            floor.map_or(now, |floor| floor.max(now)) + self.first
        } else if let Some(before) = self.reported.filter(|_| decodes) {
            if self.decode_floor > Duration::ZERO {
                before + self.decode_floor
            } else {
                now + now
                    .saturating_duration_since(before)
                    .mul_f64(self.decode_share)
            }
        } else {
            now
        };
        let left = until.saturating_duration_since(Instant::now());
        if left > SPIN {
            std::thread::sleep(left.saturating_sub(SPIN));
        }
        while Instant::now() < until {
            std::hint::spin_loop();
        }
        self.reported = Some(until);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_planted_is_read_and_what_is_not_understood_is_told() {
        assert_eq!(Planted::parse("").unwrap(), Planted::default());
        let all = "decode_share=0.05,first_ms=20,decode_floor_ms=8,first_floor_ms=60.5";
        let planted = Planted::parse(all).unwrap();
        assert_eq!(planted.decode_share, 0.05);
        assert_eq!(planted.first, Duration::from_millis(20));
        assert_eq!(planted.decode_floor, Duration::from_millis(8));
        assert_eq!(planted.first_floor, Duration::from_micros(60_500));
        for (said, wrong) in [
            ("decode=1", "\"decode\" is not known"),
            ("first_ms", "is no `key=number`"),
            ("first_ms=-1", "is no `key=number`"),
        ] {
            let told = Planted::parse(said).unwrap_err();
            assert!(told.contains(wrong), "{told}");
        }
    }

    #[test]
    fn a_wait_is_never_shorter_than_what_is_planted() {
        let mut planted = Planted::parse("first_floor_ms=3,first_ms=2,decode_floor_ms=2").unwrap();
        let began = Instant::now();
        planted.begins(true);
        planted.wait(true, false);
        assert!(began.elapsed() >= Duration::from_millis(5));
        planted.begins(false);
        planted.wait(false, true);
        assert!(began.elapsed() >= Duration::from_millis(7));
        let mut nothing = Planted::default();
        nothing.wait(false, true);
        assert!(nothing.reported.is_some());
    }
}
