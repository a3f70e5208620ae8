//! One prompt through a model along one way, and some decode steps after it.

use std::ops::ControlFlow;

use super::prompt::prompt;
use super::way::{Prefix, Way};
use crate::kv::KvCache;
use crate::model::{ForwardError, LoadedModel, Segment, Want};
use crate::sampling::greedy;

/// Tokens that are written behind a prefix, and taken back.
const STRAY: usize = 40;
/// The sequence that is looked at has this many of its company before it in a pass.
const BEFORE: usize = 5;
/// Tokens after which one of the company begins anew.
const COMPANY_TOKENS: usize = 160;
/// Seed of the tokens of the company, and of the stray ones.
const OTHER_SEED: u64 = 77;

/// Tokens of one of the company in a pass: mostly one, as if it decoded.
const PACE: [usize; 10] = [1, 1, 2, 1, 1, 7, 1, 1, 23, 1];

/// What to walk.
#[derive(Clone, Copy, Debug)]
pub struct Walk<'a> {
    /// Threads, instructions and layout are the model's; the rest is looked up here.
    pub way: &'a Way,
    /// The prompt; never empty.
    pub prompt: &'a [u32],
    /// Greedy decode steps after it.
    pub steps: usize,
}

/// Walks: `see` gets the index of each step, prompt positions first, and its logits, and may break
/// off. `model` must have been loaded for the way, with a context of at least the prompt and the
/// steps.
pub fn walk(
    model: &LoadedModel,
    walk: Walk<'_>,
    see: &mut dyn FnMut(usize, &[f32]) -> ControlFlow<()>,
) -> Result<(), ForwardError> {
    let n = walk.prompt.len();
    let mut passes = Passes {
        model,
        cache: model.new_cache(),
        company: Company::new(model, walk.way.company - 1),
    };
    let cuts = match walk.way.prefix {
        Prefix::Cold => Vec::new(),
        Prefix::Cached => cuts(n),
    };
    let mut at = 0;
    let mut last = Vec::new();
    while at < n {
        if let Some(i) = cuts.iter().position(|cut| *cut == at) {
            passes.stray(i)?;
        }
        let stop = cuts.iter().copied().find(|cut| *cut > at).unwrap_or(n);
        let end = stop.min(at + walk.way.block);
        let logits = passes.take(&walk.prompt[at..end])?;
        for row in logits.chunks_exact(model.vocab()) {
            if see(at, row).is_break() {
                return Ok(());
            }
            at += 1;
        }
        last = logits;
    }
    for step in 0..walk.steps {
        let from = last.len() - model.vocab();
        let token = greedy(&last[from..]);
        last = passes.take(&[token])?;
        if see(n + step, &last).is_break() {
            return Ok(());
        }
    }
    Ok(())
}

/// Where a cached prefix ends: no whole number of blocks, and just before the last token.
fn cuts(n: usize) -> Vec<usize> {
    let mut cuts = vec![n / 3 + 1, n * 2 / 3 + 1, n - 1];
    cuts.retain(|cut| (1..n).contains(cut));
    cuts.dedup();
    cuts
}

struct Passes<'a> {
    model: &'a LoadedModel,
    cache: KvCache,
    company: Company,
}

impl Passes<'_> {
    /// The logits after each of the next tokens.
    fn take(&mut self, tokens: &[u32]) -> Result<Vec<f32>, ForwardError> {
        if self.company.members.is_empty() {
            return self.model.forward(&mut self.cache, tokens, Want::All);
        }
        let own = Segment {
            cache: &mut self.cache,
            tokens,
            want: Want::All,
        };
        self.company.share(self.model, own)
    }

    /// Other tokens behind the prefix, which then goes on: the cache itself, taken back, or a copy.
    fn stray(&mut self, cut: usize) -> Result<(), ForwardError> {
        let held = self.cache.len();
        let room = STRAY.min(self.model.n_ctx() - held);
        let other = prompt(OTHER_SEED, room, self.model.vocab());
        // As the scheduler does, so that windowed layers keep what going back takes.
        self.cache.mark();
        let copy = self.cache.prefix(held);
        assert_eq!(copy.len(), held, "all of a prefix can be copied");
        self.take(&other)?;
        if cut.is_multiple_of(2) {
            let left = self.cache.truncate(held);
            assert_eq!(left, held, "what one pass wrote can be forgotten");
        } else {
            self.cache = copy;
        }
        Ok(())
    }
}

/// Sequences that share passes with the one that is looked at.
struct Company {
    members: Vec<Member>,
    passes: usize,
}

struct Member {
    cache: KvCache,
    tokens: Vec<u32>,
}

impl Company {
    fn new(model: &LoadedModel, members: usize) -> Self {
        let most = COMPANY_TOKENS.min(model.n_ctx());
        let member = |i| Member {
            cache: model.new_cache(),
            tokens: prompt(OTHER_SEED + 1 + i as u64, most, model.vocab()),
        };
        Self {
            members: (0..members).map(member).collect(),
            passes: 0,
        }
    }

    /// One pass: the logits of `own`, in the middle of the others.
    fn share(&mut self, model: &LoadedModel, own: Segment<'_>) -> Result<Vec<f32>, ForwardError> {
        let mut segments = Vec::new();
        for (i, member) in self.members.iter_mut().enumerate() {
            if member.cache.len() == member.tokens.len() {
                member.cache = model.new_cache();
            }
            let done = member.cache.len();
            let n = PACE[(self.passes + 3 * i) % PACE.len()].min(member.tokens.len() - done);
            segments.push(Segment {
                cache: &mut member.cache,
                tokens: &member.tokens[done..done + n],
                want: Want::Last,
            });
        }
        self.passes += 1;
        let place = BEFORE.min(segments.len());
        segments.insert(place, own);
        let mut results = model.forward_batch(&mut segments);
        let own = results.swap_remove(place);
        results.into_iter().collect::<Result<Vec<_>, _>>()?;
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn prefixes_end_within_the_prompt() {
        assert_eq!(cuts(128), [43, 86, 127]);
        assert_eq!(cuts(3), [2]);
        assert_eq!(cuts(2), [1]);
        assert!(cuts(1).is_empty());
    }
}
