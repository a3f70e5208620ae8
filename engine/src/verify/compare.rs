//! Walking a model along every way, and finding where one parts from the base way.

use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use super::chain::Chain;
use super::difference::{At, Difference, differing};
use super::walk::{Walk, walk};
use super::way::{NamedWay, Way};
use crate::model::{ForwardError, LoadedModel, ModelError};

/// Tokens of the trial that an estimate rests on.
const TRIAL: usize = 16;
/// Its decode steps.
const TRIAL_STEPS: usize = 2;

/// What to compare.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What the others are compared with.
    pub base: Way,
    /// The others.
    pub ways: Vec<NamedWay>,
    /// The prompts, none empty.
    pub prompts: Vec<Vec<u32>>,
    /// Decode steps after each.
    pub steps: usize,
    /// Whether to walk a few tokens along each way first, and tell how long it will take.
    pub estimate: bool,
}

/// One way and one prompt.
#[derive(Clone, Debug)]
pub struct Row {
    /// Index of the way; `None`: the base way.
    pub way: Option<usize>,
    /// Index of the prompt.
    pub prompt: usize,
    /// The chained hash over all steps' logits, hex.
    pub hash: String,
    /// How it parts from the base way, if it does.
    pub difference: Option<Difference>,
    /// Seconds of the walk.
    pub seconds: f64,
}

/// All rows, the base way's first.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// A row for each way and prompt.
    pub rows: Vec<Row>,
}

impl Comparison {
    /// Rows that part from the base way.
    pub fn differences(&self) -> usize {
        let differ = |row: &&Row| row.difference.is_some();
        self.rows.iter().filter(differ).count()
    }
}

/// What the comparison will take. Attention's part of long prompts is in it only once the base
/// way has walked them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// All walks that are left.
    pub seconds: f64,
    /// The way that takes longest (`None`: the base way), and its part.
    pub longest: (Option<usize>, f64),
    /// Whether the base way has walked the prompts.
    pub refined: bool,
}

/// What a caller hears while it waits.
#[derive(Debug)]
pub enum Event<'a> {
    /// How long it will take.
    Estimate(Estimate),
    /// A step of a walk (`None`: the base way, or a trial).
    Step {
        /// Index of the way.
        way: Option<usize>,
        /// Steps done, of how many.
        done: (usize, usize),
    },
    /// A walk has ended.
    Row(&'a Row),
}

/// Why a comparison came to no end.
#[derive(Debug, thiserror::Error)]
pub enum VerifyError {
    /// The model does not load in this way.
    #[error("{way}: {source}")]
    Load {
        /// The way.
        way: String,
        /// Why.
        source: ModelError,
    },
    /// A pass failed.
    #[error("{way}: {source}")]
    Forward {
        /// The way.
        way: String,
        /// Why.
        source: ForwardError,
    },
}

/// Walks every prompt along the base way and along the others. `load` opens the model for a way.
pub fn compare(
    plan: &Plan,
    load: &mut dyn FnMut(&Way) -> Result<LoadedModel, ModelError>,
    hear: &mut dyn FnMut(Event<'_>),
) -> Result<Comparison, VerifyError> {
    let mut run = Run { plan, load, hear };
    let trials = if plan.estimate {
        run.trials()?
    } else {
        Vec::new()
    };
    run.say(&trials, None);
    let mut rows = Vec::new();
    let mut chains = Vec::new();
    let model = run.load(None)?;
    for prompt in 0..plan.prompts.len() {
        let (chain, seconds) = run.chain(&model, None, prompt)?;
        let row = Row {
            way: None,
            prompt,
            hash: chain.hex(),
            difference: None,
            seconds,
        };
        (run.hear)(Event::Row(&row));
        rows.push(row);
        chains.push(chain);
    }
    drop(model);
    run.say(&trials, Some(&rows));
    for way in 0..plan.ways.len() {
        let model = run.load(Some(way))?;
        for (prompt, base) in chains.iter().enumerate() {
            let (chain, seconds) = run.chain(&model, Some(way), prompt)?;
            let difference = match base.first_difference(&chain) {
                None => None,
                Some(step) => Some(run.look(&model, way, prompt, step)?),
            };
            let row = Row {
                way: Some(way),
                prompt,
                hash: chain.hex(),
                difference,
                seconds,
            };
            (run.hear)(Event::Row(&row));
            rows.push(row);
        }
    }
    Ok(Comparison { rows })
}

/// Seconds of a prompt token and of a decode step.
#[derive(Clone, Copy)]
struct Trial {
    token: f64,
    step: f64,
}

struct Run<'a> {
    plan: &'a Plan,
    load: &'a mut dyn FnMut(&Way) -> Result<LoadedModel, ModelError>,
    hear: &'a mut dyn FnMut(Event<'_>),
}

impl Run<'_> {
    fn way(&self, way: Option<usize>) -> &Way {
        way.map_or(&self.plan.base, |i| &self.plan.ways[i].way)
    }

    fn name(&self, way: Option<usize>) -> String {
        way.map_or_else(|| "base".to_owned(), |i| self.plan.ways[i].name.clone())
    }

    fn load(&mut self, way: Option<usize>) -> Result<LoadedModel, VerifyError> {
        let plan = self.plan;
        let wanted = way.map_or(&plan.base, |i| &plan.ways[i].way);
        (self.load)(wanted).map_err(|source| VerifyError::Load {
            way: self.name(way),
            source,
        })
    }

    /// A few tokens along each way, the base way first.
    fn trials(&mut self) -> Result<Vec<Trial>, VerifyError> {
        let ways = std::iter::once(None).chain((0..self.plan.ways.len()).map(Some));
        ways.map(|way| self.trial(way)).collect()
    }

    fn trial(&mut self, way: Option<usize>) -> Result<Trial, VerifyError> {
        let model = self.load(way)?;
        let longest = self.plan.prompts.iter().max_by_key(|p| p.len());
        let prompt = longest.map_or(&[][..], |p| &p[..p.len().min(TRIAL)]);
        let steps = self.plan.steps.min(TRIAL_STEPS);
        let start = Instant::now();
        let mut prompt_time = Duration::ZERO;
        self.walk(&model, way, prompt, steps, &mut |step, _| {
            if step + 1 == prompt.len() {
                prompt_time = start.elapsed();
            }
            ControlFlow::Continue(())
        })?;
        let rest = start.elapsed().saturating_sub(prompt_time);
        Ok(Trial {
            token: prompt_time.as_secs_f64() / prompt.len().max(1) as f64,
            step: rest.as_secs_f64() / steps.max(1) as f64,
        })
    }

    /// Tells what is left; `base` are the base way's rows once there are any.
    fn say(&mut self, trials: &[Trial], base: Option<&[Row]>) {
        if trials.is_empty() {
            return;
        }
        let steps = self.plan.steps as f64;
        let by_trial = |trial: &Trial, prompt: &Vec<u32>| {
            trial.token * prompt.len() as f64 + trial.step * steps
        };
        let cost = |trial: &Trial| -> f64 {
            let all = self.plan.prompts.iter().enumerate();
            all.map(|(i, prompt)| {
                let plain = by_trial(trial, prompt);
                let expected = by_trial(&trials[0], prompt);
                match base {
                    // Attention takes the base way's time in every way, the rest as the trials.
                    Some(rows) => plain + (rows[i].seconds - expected).max(0.0),
                    None => plain,
                }
            })
            .sum()
        };
        let first = usize::from(base.is_some());
        let costs: Vec<f64> = trials[first..].iter().map(cost).collect();
        let longest = costs.iter().copied().enumerate();
        let longest = longest.max_by(|a, b| a.1.total_cmp(&b.1));
        let Some((index, most)) = longest else { return };
        (self.hear)(Event::Estimate(Estimate {
            seconds: costs.iter().sum(),
            longest: ((index + first).checked_sub(1), most),
            refined: base.is_some(),
        }));
    }

    fn walk(
        &self,
        model: &LoadedModel,
        way: Option<usize>,
        prompt: &[u32],
        steps: usize,
        see: &mut dyn FnMut(usize, &[f32]) -> ControlFlow<()>,
    ) -> Result<(), VerifyError> {
        let what = Walk {
            way: self.way(way),
            prompt,
            steps,
        };
        walk(model, what, see).map_err(|source| VerifyError::Forward {
            way: self.name(way),
            source,
        })
    }

    fn chain(
        &mut self,
        model: &LoadedModel,
        way: Option<usize>,
        prompt: usize,
    ) -> Result<(Chain, f64), VerifyError> {
        let plan = self.plan;
        let (prompt, steps) = (&plan.prompts[prompt], plan.steps);
        let what = Walk {
            way: way.map_or(&plan.base, |i| &plan.ways[i].way),
            prompt,
            steps,
        };
        let all = prompt.len() + steps;
        let start = Instant::now();
        let mut chain = Chain::default();
        let done = walk(model, what, &mut |step, logits| {
            chain.push(logits);
            let done = (step + 1, all);
            (self.hear)(Event::Step { way, done });
            ControlFlow::Continue(())
        });
        done.map_err(|source| VerifyError::Forward {
            way: self.name(way),
            source,
        })?;
        Ok((chain, start.elapsed().as_secs_f64()))
    }

    /// Walks both ways again, up to the step where they parted, and counts.
    fn look(
        &mut self,
        model: &LoadedModel,
        way: usize,
        prompt: usize,
        step: usize,
    ) -> Result<Difference, VerifyError> {
        let base = self.load(None)?;
        let expected = self.logits(&base, None, prompt, step)?;
        let found = self.logits(model, Some(way), prompt, step)?;
        let differing = differing(&expected, &found);
        Ok(Difference {
            at: At::new(step, self.plan.prompts[prompt].len()),
            differing: (differing > 0).then_some(differing),
            vocab: model.vocab(),
        })
    }

    fn logits(
        &self,
        model: &LoadedModel,
        way: Option<usize>,
        prompt: usize,
        step: usize,
    ) -> Result<Vec<f32>, VerifyError> {
        let mut found = Vec::new();
        let prompt = &self.plan.prompts[prompt];
        self.walk(model, way, prompt, self.plan.steps, &mut |at, logits| {
            if at < step {
                return ControlFlow::Continue(());
            }
            found = logits.to_vec();
            ControlFlow::Break(())
        })?;
        Ok(found)
    }
}
