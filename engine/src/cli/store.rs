//! `pack`, `unpack`, and the store that `serve` and `run` make of a model.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use sha2::{Digest, Sha256};

use super::failure::Failure;
use crate::formats::gguf::GgufFile;
use crate::formats::store::{self, Packing, Prelude};
use crate::model::SUPPORTED_ARCHITECTURES;

/// Flags of `pack`.
#[derive(Debug, Args)]
pub struct PackArgs {
    /// The model file (GGUF; for a split one, any part)
    #[arg(value_name = "MODEL.gguf")]
    model: PathBuf,
    /// The store to write [default: the one that `serve` would look for]
    #[arg(long, short = 'o', value_name = "FILE")]
    out: Option<PathBuf>,
    #[command(flatten)]
    place: StoreDir,
    /// Split the output matrix, for `serve --screened-output`
    #[arg(long)]
    screened_output: bool,
    /// How MXFP4 scales are kept; logits are the same bits either way
    #[arg(long, value_enum, default_value_t)]
    scales: Scales,
    /// Replace the store if it exists
    #[arg(long)]
    force: bool,
}

/// How MXFP4 scales are kept.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
enum Scales {
    /// A byte each, as in the model file
    #[default]
    Plain,
    /// Half a byte each, where a tensor's lie close together: 2.9% fewer bytes to read
    Packed,
}

/// Flags of `unpack`.
#[derive(Debug, Args)]
pub struct UnpackArgs {
    /// The store
    #[arg(value_name = "STORE")]
    store: PathBuf,
    /// Folder for the model's files, under their own names
    #[arg(
        long,
        short = 'o',
        value_name = "FOLDER",
        required_unless_present = "verify"
    )]
    out: Option<PathBuf>,
    /// Only rebuild the files in memory and compare their sha256 with the source's
    #[arg(long, conflicts_with = "out")]
    verify: bool,
}

/// Where stores are kept.
#[derive(Clone, Debug, Args)]
pub struct StoreDir {
    /// Folder for stores [default: palindrome-engine/stores in the user's cache folder]
    #[arg(long, value_name = "FOLDER")]
    store_dir: Option<PathBuf>,
}

/// Whether and where to keep a store of a model.
#[derive(Clone, Debug, Args)]
pub struct StoreArgs {
    /// Read the GGUF file as it is: no store is written, and everything is slower
    #[arg(long)]
    no_store: bool,
    /// Keep the output matrix in two parts, and for greedy and top-k requests read the second only
    /// where the first leaves a choice: the same tokens from fewer bytes
    #[arg(long, conflicts_with = "no_store")]
    screened_output: bool,
    /// How the store keeps MXFP4 scales; logits are the same bits either way
    #[arg(long, value_enum, default_value_t, conflicts_with = "no_store")]
    scales: Scales,
    #[command(flatten)]
    place: StoreDir,
}

/// Packs a model.
pub fn pack(args: &PackArgs) -> Result<ExitCode, Failure> {
    let packing = Packing {
        screening: args.screened_output,
        packed_scales: args.scales == Scales::Packed,
    };
    let out = if let Some(out) = &args.out {
        out.clone()
    } else {
        let file = GgufFile::open(&args.model)
            .map_err(|error| Failure::new(format!("{}: {error}", args.model.display())))?;
        args.place.store_of(&file.paths()[0], packing)?
    };
    if out.exists() && !store::is_store(&out) {
        let message = format!("{} exists and is no store; it is kept", out.display());
        return Err(Failure::new(message).hint("give another name with --out"));
    }
    if out.exists() && !args.force {
        return Err(Failure::new(format!("{} exists", out.display()))
            .hint("--force replaces it; `unpack --verify` checks it"));
    }
    write(&args.model, &out, packing)?;
    Ok(ExitCode::SUCCESS)
}

/// Turns a store back into its model, or checks that it could be.
pub fn unpack(args: &UnpackArgs) -> Result<ExitCode, Failure> {
    let bar = bar("rebuilding");
    let progress = |done, all| show(&bar, done, all);
    if let Some(folder) = &args.out {
        let paths = store::rebuild(&args.store, folder, progress).map_err(Failure::new)?;
        bar.finish_and_clear();
        for path in paths {
            println!("wrote {}", path.display());
        }
        return Ok(ExitCode::SUCCESS);
    }
    let prelude = store::verify(&args.store, progress).map_err(Failure::new)?;
    bar.finish_and_clear();
    for part in prelude.parts {
        println!(
            "{}: {} bytes, sha256 {}, rebuilt bit for bit",
            part.name, part.bytes, part.sha256
        );
    }
    Ok(ExitCode::SUCCESS)
}

impl StoreArgs {
    /// The file to load for `model`: its store, written first where there is none.
    pub fn prepare(&self, model: &Path) -> Result<PathBuf, Failure> {
        self.prepare_with(model, self.packs_scales())
    }

    /// Whether stores are to have packed scales.
    pub fn packs_scales(&self) -> bool {
        self.scales == Scales::Packed
    }

    /// Whether a store is made of models that are none.
    pub fn makes_stores(&self) -> bool {
        !self.no_store
    }

    /// As [`StoreArgs::prepare`], with packed scales or without, whatever was asked for.
    pub fn prepare_with(&self, model: &Path, packed_scales: bool) -> Result<PathBuf, Failure> {
        if self.no_store {
            return Ok(model.to_owned());
        }
        let Some(file) = packable(model) else {
            return Ok(model.to_owned()); // a store, or loading says what is wrong with it
        };
        let packing = Packing {
            screening: self.screened_output,
            packed_scales,
        };
        let path = self.place.store_of(&file.paths()[0], packing)?;
        let written = if fresh(&path, &file) {
            Ok(())
        } else {
            write(model, &path, packing)
        };
        match written.and_then(|()| store::read_prelude(&path).map_err(Failure::new)) {
            Ok(prelude) => {
                for part in prelude.parts {
                    eprintln!(
                        "reading {} (sha256 {}) from its store {}",
                        part.name,
                        part.sha256,
                        path.display()
                    );
                }
                Ok(path)
            }
            Err(failure) => {
                eprintln!("{failure}");
                eprintln!("reading {} without a store, slower", model.display());
                Ok(model.to_owned())
            }
        }
    }
}

impl StoreDir {
    /// Where the store of `model`, the first file of it, is or would be.
    fn store_of(&self, model: &Path, packing: Packing) -> Result<PathBuf, Failure> {
        let folder = match &self.store_dir {
            Some(folder) => folder.clone(),
            None => default_dir().ok_or_else(|| {
                Failure::new("there is no cache folder: neither XDG_CACHE_HOME nor HOME is set")
                    .hint("--store-dir FOLDER names one, --no-store does without")
            })?,
        };
        let whole = fs::canonicalize(model)
            .map_err(|error| Failure::new(format!("{}: {error}", model.display())))?;
        let digest = Sha256::digest(whole.as_os_str().as_encoded_bytes());
        let stem = whole.file_stem().unwrap_or_default().to_string_lossy();
        let [a, b, c, d, ..] = digest[..] else {
            unreachable!("a sha256 has 32 bytes")
        };
        let key = u32::from_be_bytes([a, b, c, d]);
        let ending = match (packing.screening, packing.packed_scales) {
            (false, false) => "store",
            (true, false) => "screened.store",
            (false, true) => "packed-scales.store",
            (true, true) => "screened.packed-scales.store",
        };
        Ok(folder.join(format!("{stem}-{key:08x}.{ending}")))
    }
}

fn default_dir() -> Option<PathBuf> {
    let set = |name| {
        std::env::var_os(name)
            .filter(|v| !v.is_empty())
            .map(PathBuf::from)
    };
    let cache = set("XDG_CACHE_HOME").or_else(|| Some(set("HOME")?.join(".cache")))?;
    Some(cache.join("palindrome-engine").join("stores"))
}

/// Whether the store at `path` was packed from `file` as it is now, by length and times.
fn fresh(path: &Path, file: &GgufFile) -> bool {
    let Ok(found) = store::read_prelude(path) else {
        return false;
    };
    Prelude::of(file).is_ok_and(|now| found.same_source(&now))
}

/// The model's file, if it is one that can be packed and served.
fn packable(model: &Path) -> Option<GgufFile> {
    let file = GgufFile::open(model).ok()?;
    let architecture = file.metadata().str("general.architecture").ok()?;
    SUPPORTED_ARCHITECTURES
        .contains(&architecture)
        .then_some(file)
}

fn write(model: &Path, out: &Path, packing: Packing) -> Result<(), Failure> {
    let bar = bar("packing");
    let packed = store::pack_as(packing, model, out, |done, all| show(&bar, done, all));
    bar.finish_and_clear();
    let packed = packed
        .map_err(|error| Failure::new(format!("cannot pack {}: {error}", model.display())))?;
    let (tiled, all) = packed.tiled;
    eprintln!(
        "packed {} of {all} tensors into {}: {} bytes",
        tiled,
        out.display(),
        packed.bytes
    );
    if packing.packed_scales {
        match packed.packed_scales {
            0 => eprintln!("no tensor has MXFP4 scales that can be packed: it is as a plain store"),
            some => eprintln!("{some} of them with packed scales"),
        }
    }
    if packing.screening && packed.planes.is_none() {
        eprintln!("the output matrix is not in Q8_0 tiles: it will not be screened");
    }
    Ok(())
}

fn bar(what: &str) -> ProgressBar {
    let style = "{prefix} {bar:32} {bytes} of {total_bytes}, {binary_bytes_per_sec}, {eta} left";
    let style = ProgressStyle::with_template(style).expect("a sound template");
    ProgressBar::new(0)
        .with_style(style)
        .with_prefix(what.to_owned())
}

fn show(bar: &ProgressBar, done: u64, all: u64) {
    bar.set_length(all);
    bar.set_position(done);
}
