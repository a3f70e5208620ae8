//! Golden logits (`golden/README.md`) and how far the engine's are from them.

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use palindrome_engine::model::{LoadOptions, LoadedModel};
use serde::Deserialize;
use sha2::{Digest, Sha256};

/// A case as written by `make_golden.py`.
#[derive(Deserialize)]
pub struct Golden {
    pub format: u32,
    pub model: String,
    pub model_sha256: String,
    pub vocab: usize,
    pub tokens: Vec<u32>,
    pub positions: Vec<usize>,
    pub top1: Vec<u32>,
    pub margin: Vec<f32>,
    #[serde(skip)]
    pub logits: Vec<Vec<f32>>,
}

/// The engine's distance from a case.
#[derive(Debug)]
pub struct Distance {
    /// ||ours - theirs|| / ||theirs|| at each position with full logits.
    pub relative: Vec<(usize, f64)>,
    /// The largest absolute difference of a logit, over those positions.
    pub absolute: f64,
    /// Positions whose best token differs, with the reference's margin.
    pub disagreements: Vec<(usize, f32)>,
}

fn golden_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

/// Reads a case.
pub fn read(case: &str) -> Golden {
    let header = golden_dir().join(format!("{case}.json"));
    let text = fs::read_to_string(&header).unwrap_or_else(|e| panic!("{}: {e}", header.display()));
    let mut golden: Golden = serde_json::from_str(&text).unwrap();
    assert_eq!(golden.format, 1, "{case}: the format this test reads");
    let bytes = fs::read(golden_dir().join(format!("{case}.bin"))).unwrap();
    assert_eq!(
        bytes.len(),
        golden.positions.len() * golden.vocab * 4,
        "{case}.bin"
    );
    let values: Vec<f32> = bytes
        .as_chunks::<4>()
        .0
        .iter()
        .map(|b| f32::from_le_bytes(*b))
        .collect();
    golden.logits = values.chunks(golden.vocab).map(<[f32]>::to_vec).collect();
    golden
}

/// The case's model in this repository.
pub fn model_path(golden: &Golden) -> PathBuf {
    if golden.model.contains('/') {
        Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("..")
            .join(&golden.model)
    } else {
        golden_dir().join(&golden.model)
    }
}

/// sha256 of a file, lowercase hex.
pub fn sha256(path: &Path) -> String {
    let bytes = fs::read(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
    let digest = Sha256::digest(&bytes);
    digest.iter().fold(String::new(), |mut hex, byte| {
        write!(hex, "{byte:02x}").unwrap();
        hex
    })
}

/// Runs the case's tokens and compares.
pub fn compare(golden: &Golden, path: &Path, options: &LoadOptions) -> Distance {
    assert_eq!(
        sha256(path),
        golden.model_sha256,
        "{}: another file",
        path.display()
    );
    let model = LoadedModel::load(path, options).unwrap();
    let ours = model.logits(&golden.tokens).unwrap();
    let (mut relative, mut absolute) = (Vec::new(), 0.0f64);
    for (&position, theirs) in golden.positions.iter().zip(&golden.logits) {
        let (mut diff, mut norm) = (0.0f64, 0.0f64);
        for (&a, &b) in ours[position].iter().zip(theirs) {
            let d = f64::from(a) - f64::from(b);
            diff += d * d;
            norm += f64::from(b) * f64::from(b);
            absolute = absolute.max(d.abs());
        }
        relative.push((position, (diff / norm).sqrt()));
    }
    let best = |logits: &[f32]| {
        let order = |&a: &usize, &b: &usize| logits[a].total_cmp(&logits[b]).then(b.cmp(&a));
        (0..logits.len()).max_by(order).unwrap() as u32
    };
    let disagreements = (0..golden.tokens.len())
        .filter(|&i| best(&ours[i]) != golden.top1[i])
        .map(|i| (i, golden.margin[i]))
        .collect();
    Distance {
        relative,
        absolute,
        disagreements,
    }
}

impl Distance {
    /// The largest relative error, and where.
    pub fn worst(&self) -> (usize, f64) {
        self.relative
            .iter()
            .copied()
            .max_by(|a, b| a.1.total_cmp(&b.1))
            .unwrap()
    }

    /// The median relative error.
    pub fn median(&self) -> f64 {
        let mut errors: Vec<f64> = self.relative.iter().map(|r| r.1).collect();
        errors.sort_by(f64::total_cmp);
        errors[errors.len() / 2]
    }
}
