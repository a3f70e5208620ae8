//! Running the tests on one model with one number of threads.

use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use super::row::Setting;
use super::{BenchError, Cost, Limits, Rates, Row, Test, Work};
use crate::formats::store;
use crate::kv::KvCache;
use crate::model::{ForwardError, LoadOptions, LoadedModel, Want};
use crate::probe::{Host, LoadMeter};
use crate::sampling::draw;

/// How to run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The model, as the user named it; what is read may be its store.
    pub model_filename: String,
    /// Times that a test is repeated.
    pub repetitions: usize,
    /// One more time before, not reported.
    pub warmup: bool,
    /// Of the tokens.
    pub seed: u64,
}

/// Loads the model, runs the tests and reports each to `done`. `progress` hears of each
/// repetition before it begins.
pub fn run(
    path: &Path,
    options: &LoadOptions,
    tests: &[Test],
    settings: &Settings,
    limits: &Limits,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Row>, BenchError> {
    progress("loading the model");
    let file = store::open_model(path)?;
    let cost = Cost::of(&file, options.activations)?;
    drop(file);
    let model = LoadedModel::load(path, options)?;
    let setting = Setting {
        cpu_info: Host::look().cpu,
        isa: model.isa().name().to_owned(),
        activations: model.activations().name().to_owned(),
        kv_type: model.kv_type().name().to_owned(),
        model_filename: settings.model_filename.clone(),
        model_type: model.name().to_owned(),
        n_threads: model.threads(),
        n_ctx: model.n_ctx(),
        n_batch: model.block(),
        seed: settings.seed,
        warmup: settings.warmup,
    };
    let mut rows = Vec::with_capacity(tests.len());
    // Tests of one depth follow each other and share what fills the cache.
    let mut base: Option<KvCache> = None;
    for &test in tests {
        let failed = |source: ForwardError| BenchError::Forward {
            test: test.to_string(),
            source,
        };
        let ready = base.take().filter(|cache| cache.len() == test.depth);
        let cache = if let Some(cache) = ready {
            cache
        } else {
            progress(&format!("{test}: filling {} tokens", test.depth));
            let mut cache = model.new_cache();
            let tokens = tokens(settings.seed, 0, test.depth, model.vocab());
            prefill(&model, &mut cache, &tokens).map_err(failed)?;
            cache
        };
        let began = unix_seconds();
        let meter = LoadMeter::start();
        let times = repeat(&model, &cache, test, settings, progress).map_err(failed)?;
        let other = meter.and_then(LoadMeter::stop);
        let rates = Rates::new(test.tokens(), &times);
        rows.push(Row::new(
            &setting,
            test,
            &rates,
            &cost,
            limits,
            began,
            other.map(|load| load.other_processors),
        ));
        base = Some(cache);
    }
    Ok(rows)
}

/// The times of the repetitions, each on its own copy of the cache.
fn repeat(
    model: &LoadedModel,
    base: &KvCache,
    test: Test,
    settings: &Settings,
    progress: &mut dyn FnMut(&str),
) -> Result<Vec<Duration>, ForwardError> {
    let mut times = Vec::with_capacity(settings.repetitions);
    let first = usize::from(!settings.warmup);
    for repetition in first..=settings.repetitions {
        progress(&match repetition {
            0 => format!("{test}: warm-up"),
            n => format!("{test}: {n} of {}", settings.repetitions),
        });
        // Every repetition has tokens of its own, and so experts of its own.
        let stream = 1 + repetition as u64;
        let tokens = tokens(settings.seed, stream, test.tokens(), model.vocab());
        let mut cache = base.clone();
        let start = Instant::now();
        match test.work {
            Work::Prompt(_) => prefill(model, &mut cache, &tokens)?,
            Work::Generate(_) => {
                for token in &tokens {
                    // As greedy requests do: the output matrix may be screened.
                    model.forward(&mut cache, std::slice::from_ref(token), Want::Best(1))?;
                }
            }
        }
        let time = start.elapsed();
        if repetition > 0 {
            times.push(time);
        }
    }
    Ok(times)
}

/// The prompt in the model's blocks, as the server computes it.
fn prefill(model: &LoadedModel, cache: &mut KvCache, tokens: &[u32]) -> Result<(), ForwardError> {
    let blocks = tokens.len().div_ceil(model.block());
    for (i, block) in tokens.chunks(model.block()).enumerate() {
        let want = if i + 1 == blocks {
            Want::Last
        } else {
            Want::Nothing
        };
        model.forward(cache, block, want)?;
    }
    Ok(())
}

/// Tokens drawn evenly from the vocabulary; the same for the same seed and stream.
fn tokens(seed: u64, stream: u64, n: usize, vocab: usize) -> Vec<u32> {
    (0..n as u64)
        .map(|i| (draw(seed, stream << 32 | i) * vocab as f64) as u32)
        .collect()
}

fn unix_seconds() -> u64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_depend_on_seed_and_stream_and_stay_in_the_vocabulary() {
        let a = tokens(1, 1, 1000, 300);
        assert_eq!(a, tokens(1, 1, 1000, 300));
        assert_eq!(a[..10], tokens(1, 1, 10, 300));
        assert_ne!(a, tokens(1, 2, 1000, 300));
        assert_ne!(a, tokens(2, 1, 1000, 300));
        assert!(a.iter().all(|id| *id < 300));
        assert!(a.iter().any(|id| *id > 250) && a.iter().any(|id| *id < 50));
    }
}
