//! `verify --against`: the same logits along every way.

use std::borrow::Cow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::Args;

use super::progress::progress;
use super::table::{Table, json, readable};
use crate::cli::args::load_failure;
use crate::cli::failure::Failure;
use crate::cli::store::StoreArgs;
use crate::formats::blocks::GgmlType;
use crate::formats::store::{is_store, open_model, read_prelude};
use crate::kernels::Isa;
use crate::kv::KvType;
use crate::model::{ActivationFormat, LoadOptions, LoadedModel};
use crate::verify::{
    Arrangement, Event, NamedWay, Plan, Prefix, VerifyError, Way, compare, parse_ways, prompt,
};

/// Flags of the comparison.
#[derive(Debug, Args)]
pub struct AgainstArgs {
    /// Compare logits along these ways, and do nothing else: `all`, or KEY=VALUE,... with keys
    /// threads, isa, block, prefix, company, layout; `+` joins keys of one way
    ///
    /// The model is walked along the base way and along each of these. After every position of a
    /// prompt and after every decode step, the logits join a chained sha256; all chains must be
    /// the base way's. Exit code 1 when one is not.
    ///
    ///   threads=1,2,3       worker threads
    ///   isa=all             instruction-set levels of this machine
    ///   block=1,17,512      prompt tokens in a pass (1 takes long: it is decoding the prompt)
    ///   prefix=cached       after other tokens, taken back or copied, at a third, two thirds and
    ///                       all but one token of the prompt
    ///   company=16          in the same passes as 15 other sequences
    ///   layout=plain        from the GGUF file instead of its store
    ///   layout=packed-scales  from a store with packed scales, which is written first
    ///   isa=all+layout=all  every combination
    ///   all                 all of these, with blocks of 1, 17, 512 and 4096, and two mixtures
    #[arg(
        long,
        value_name = "WAY",
        num_args = 1..,
        verbatim_doc_comment
    )]
    against: Vec<String>,
    /// What the base way has other than `serve` would, as in `threads=1+isa=scalar`
    #[arg(long, value_name = "WAY", requires = "against")]
    base: Option<String>,
    /// Prompts of so many tokens, drawn evenly from the vocabulary
    #[arg(long, value_name = "N,...", value_delimiter = ',', default_value = "128,3000,13000", requires = "against", value_parser = clap::value_parser!(u32).range(1..=1 << 24))]
    prompts: Vec<u32>,
    /// Greedy decode steps after each prompt
    #[arg(long, value_name = "N", default_value_t = 64, requires = "against", value_parser = clap::value_parser!(u32).range(..=1 << 24))]
    steps: u32,
    /// Seed of the prompts
    #[arg(long, value_name = "N", default_value_t = 1, requires = "against")]
    seed: u64,
    /// How finely activations are quantised, on every way
    #[arg(long, value_enum, default_value_t, requires = "against")]
    activations: ActivationFormat,
    #[command(flatten)]
    store: StoreArgs,
    /// Write the findings as JSON, too
    #[arg(long, value_name = "FILE", requires = "against")]
    json: Option<PathBuf>,
}

impl AgainstArgs {
    /// Whether there is anything to compare.
    pub fn is_asked_for(&self) -> bool {
        !self.against.is_empty()
    }
}

/// The files of a model.
struct Files<'a> {
    /// The one that the base way reads comes first.
    all: Vec<(Arrangement, Cow<'a, Path>)>,
}

impl<'a> Files<'a> {
    /// The layouts that there are or can be made, the base way's first.
    fn layouts(model: &Path, store: &StoreArgs) -> Result<Vec<Arrangement>, Failure> {
        if is_store(model) || !store.makes_stores() {
            return Ok(vec![arrangement(model)?]);
        }
        let mut all = vec![Arrangement::Store];
        if has_mxfp4(model)? {
            let at = usize::from(!store.packs_scales());
            all.insert(at, Arrangement::PackedScales);
        }
        all.push(Arrangement::Plain);
        Ok(all)
    }

    /// The base way's file. Where no store can be made of the model, it is read as it is.
    fn new(model: &'a Path, store: &StoreArgs) -> Result<Self, Failure> {
        let base = store.prepare(model)?;
        let mut all = vec![(arrangement(&base)?, Cow::Owned(base))];
        if all[0].1 != model {
            all.push((Arrangement::Plain, Cow::Borrowed(model)));
        }
        Ok(Self { all })
    }

    fn base(&self) -> &(Arrangement, Cow<'a, Path>) {
        &self.all[0]
    }

    /// Writes the stores that ways need.
    fn add(&mut self, model: &Path, store: &StoreArgs, ways: &[NamedWay]) -> Result<(), Failure> {
        for layout in ways.iter().map(|way| way.way.layout) {
            if self.all.iter().all(|(own, _)| *own != layout) {
                let path = store.prepare_with(model, layout == Arrangement::PackedScales)?;
                if arrangement(&path)? != layout {
                    let what = format!(
                        "{}: no file of layout={layout} can be made",
                        model.display()
                    );
                    return Err(Failure::new(what).hint("leave that layout out of --against"));
                }
                self.all.push((layout, Cow::Owned(path)));
            }
        }
        Ok(())
    }

    /// The file of an arrangement.
    fn of(&self, layout: Arrangement) -> &Path {
        let found = self.all.iter().find(|(own, _)| *own == layout);
        let (_, path) = found.unwrap_or_else(|| unreachable!("`add` made it: {layout}"));
        path
    }
}

/// How the weights of a file lie.
pub(super) fn arrangement(path: &Path) -> Result<Arrangement, Failure> {
    if !is_store(path) {
        return Ok(Arrangement::Plain);
    }
    let prelude = read_prelude(path).map_err(Failure::new)?;
    Ok(if prelude.packed_scales.is_empty() {
        Arrangement::Store
    } else {
        Arrangement::PackedScales
    })
}

/// Whether there are scales that could be packed.
fn has_mxfp4(model: &Path) -> Result<bool, Failure> {
    let file = open_model(model).map_err(Failure::new)?;
    let mut tensors = file.tensors().iter();
    Ok(tensors.any(|t| t.ty == GgmlType::Mxfp4))
}

/// The way that a server would take with this model.
pub(super) fn served(model: &LoadedModel, layout: Arrangement) -> Way {
    Way {
        threads: model.threads(),
        isa: model.isa().name().to_owned(),
        block: model.block(),
        prefix: Prefix::Cold,
        company: 1,
        layout,
    }
}

/// Why a comparison came to no end, for people.
pub(super) fn failure(model: &Path, error: VerifyError) -> Failure {
    match error {
        VerifyError::Load { way, source } => load_failure(model, format!("{way}: {source}")),
        forward @ VerifyError::Forward { .. } => Failure::new(forward),
    }
}

/// Compares, prints a table, and says how long it will take before.
pub fn against(model: &Path, args: &AgainstArgs, kv_type: KvType) -> Result<ExitCode, Failure> {
    let texts: Vec<&str> = args
        .against
        .iter()
        .flat_map(|text| text.split_whitespace())
        .collect();
    let layouts = Files::layouts(model, &args.store)?;
    // What cannot be read is said before a store is written.
    let some = Way {
        threads: 1,
        isa: Isa::SCALAR.name().to_owned(),
        block: 1,
        prefix: Prefix::Cold,
        company: 1,
        layout: layouts[0],
    };
    let all = texts.iter().copied().chain(args.base.as_deref());
    parse_ways(&all.collect::<Vec<_>>(), &some, &layouts).map_err(Failure::new)?;

    let mut files = Files::new(model, &args.store)?;
    let (longest, steps) = (args.prompts.iter().max(), args.steps as usize);
    let ctx = longest.map_or(0, |n| *n as usize) + steps;
    let options = LoadOptions {
        ctx: Some(ctx),
        activations: args.activations,
        kv_type,
        ..LoadOptions::default()
    };
    let first = LoadedModel::load(&files.base().1, &options)
        .map_err(|error| load_failure(model, error).hint("--prompts and --steps shorten it"))?;
    let served = served(&first, files.base().0);
    let (name, vocab) = (first.name().to_owned(), first.vocab());
    drop(first);
    let base = match &args.base {
        None => served,
        Some(text) => match &parse_ways(&[text], &served, &layouts).map_err(Failure::new)?[..] {
            [] => served,
            [way] => way.way.clone(),
            _ => return Err(Failure::new(format!("--base `{text}` is several ways"))),
        },
    };
    let ways = parse_ways(&texts, &base, &layouts).map_err(Failure::new)?;
    if ways.is_empty() {
        return Err(Failure::new("every way given is the base way").hint(format!("it is {base}")));
    }
    files.add(model, &args.store, &ways)?;
    let lengths = args.prompts.iter().map(|n| *n as usize);
    let plan = Plan {
        base,
        ways,
        prompts: lengths.map(|n| prompt(args.seed, n, vocab)).collect(),
        steps,
        estimate: true,
    };
    println!(
        "model    {} ({name}), {} activations, {} K/V",
        model.display(),
        args.activations.name(),
        kv_type.name()
    );
    println!("base     {}", plan.base);
    println!(
        "prompts  tokens drawn evenly from the vocabulary, seed {}; {steps} decode steps after each",
        args.seed
    );
    let table = Table::new(&plan);
    let bar = progress(0, "trials");
    let mut load = |way: &Way| {
        let options = LoadOptions {
            kv_type,
            ..way.options(args.activations, ctx)
        };
        LoadedModel::load(files.of(way.layout), &options)
    };
    let mut hear = |event: Event<'_>| match event {
        Event::Estimate(estimate) => bar.suspend(|| {
            let (way, most) = estimate.longest;
            let which = if estimate.refined {
                "estimate: the other ways about"
            } else {
                // Whoever waits decides now, so it is said even where no bar is shown.
                "estimate: at least"
            };
            eprintln!(
                "{which} {}, of which {} for {}",
                readable(estimate.seconds),
                readable(most),
                table.name(way)
            );
            if !estimate.refined {
                println!("{}", table.head());
            }
        }),
        Event::Step { way, done } => {
            bar.set_message(table.name(way).to_owned());
            bar.set_length(done.1 as u64);
            bar.set_position(done.0 as u64);
        }
        Event::Row(row) => bar.suspend(|| println!("{}", table.row(row))),
    };
    let all = compare(&plan, &mut load, &mut hear).map_err(|error| failure(model, error))?;
    bar.finish_and_clear();
    if let Some(path) = &args.json {
        let text = json(model, (args.activations, kv_type), args.seed, &plan, &all);
        std::fs::write(path, text)
            .map_err(|error| Failure::new(format!("{}: {error}", path.display())))?;
    }
    let (differ, walks) = (all.differences(), plan.ways.len() * plan.prompts.len());
    if differ == 0 {
        println!(
            "ok       {} ways, {} prompts: the same bits",
            plan.ways.len(),
            plan.prompts.len()
        );
        return Ok(ExitCode::SUCCESS);
    }
    println!("FINDING  {differ} of {walks} walks part from the base way");
    Ok(ExitCode::FAILURE)
}
