//! Stop strings, found across token borders.

/// Passes text through, holding back whatever might be the beginning of a stop string.
#[derive(Debug, Default)]
pub struct StopMatcher {
    stops: Vec<String>,
    held: String,
}

impl StopMatcher {
    /// A matcher for `stops`, none of which is empty.
    pub fn new(stops: Vec<String>) -> Self {
        Self {
            stops,
            held: String::new(),
        }
    }
    /// Takes text; gives what can no longer be part of a stop string, and the stop string that
    /// was found, after which nothing may be pushed. The earliest match wins, then the longest.
    pub fn push(&mut self, text: &str) -> (String, Option<String>) {
        if self.stops.is_empty() {
            return (text.to_owned(), None);
        }
        self.held.push_str(text);
        let found = self
            .stops
            .iter()
            .filter_map(|stop| self.held.find(stop.as_str()).map(|at| (at, stop)))
            .min_by_key(|(at, stop)| (*at, usize::MAX - stop.len()));
        if let Some((at, stop)) = found {
            let stop = stop.clone();
            self.held.truncate(at);
            return (std::mem::take(&mut self.held), Some(stop));
        }
        let keep = self
            .held
            .char_indices()
            .map(|(at, _)| at)
            .find(|at| {
                self.stops
                    .iter()
                    .any(|stop| stop.starts_with(&self.held[*at..]))
            })
            .unwrap_or(self.held.len());
        let tail = self.held.split_off(keep);
        (std::mem::replace(&mut self.held, tail), None)
    }
    /// What was held back.
    pub fn finish(&mut self) -> String {
        std::mem::take(&mut self.held)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_stop_across_pieces_is_found_and_cut() {
        let mut matcher = StopMatcher::new(vec!["</end>".into()]);
        assert_eq!(matcher.push("one <"), ("one ".into(), None));
        assert_eq!(matcher.push("/e"), (String::new(), None));
        assert_eq!(matcher.push("x </"), ("</ex ".into(), None));
        assert_eq!(
            matcher.push("end> more"),
            (String::new(), Some("</end>".into()))
        );
        assert_eq!(matcher.finish(), "");
    }

    #[test]
    fn the_earliest_stop_wins_and_a_held_prefix_comes_out_at_the_end() {
        let mut matcher = StopMatcher::new(vec!["bc".into(), "ab".into(), "abc".into()]);
        assert_eq!(matcher.push("xabc"), ("x".into(), Some("abc".into())));
        let mut matcher = StopMatcher::new(vec!["éé!".into()]);
        assert_eq!(matcher.push("aéé"), ("a".into(), None));
        assert_eq!(matcher.finish(), "éé");
    }

    proptest! {
        /// However the text is cut, the outcome is that of the whole text.
        #[test]
        fn cuts_do_not_matter(text in "[abc]{0,30}", cuts in prop::collection::vec(0usize..30, 0..6)) {
            let stops = vec!["abca".to_owned(), "cc".to_owned()];
            let whole = stops.iter().filter_map(|stop| text.find(stop.as_str())).min();
            let mut matcher = StopMatcher::new(stops);
            let mut cuts: Vec<usize> = cuts.into_iter().filter(|cut| *cut <= text.len()).collect();
            cuts.push(text.len());
            cuts.sort_unstable();
            let (mut out, mut from, mut stopped) = (String::new(), 0, false);
            for cut in cuts {
                let (piece, stop) = matcher.push(&text[from..cut]);
                out.push_str(&piece);
                from = cut;
                if stop.is_some() { stopped = true; break; }
            }
            if !stopped { out.push_str(&matcher.finish()); }
            prop_assert_eq!(stopped, whole.is_some());
            prop_assert_eq!(out.as_str(), &text[..whole.unwrap_or(text.len())]);
        }
    }
}
