//! Looking through a file: values, and the tokenizer.

use super::progress::progress;
use crate::formats::gguf::GgufFile;
use crate::tokenizer::{Specials, Tokenizer};

/// Texts that must survive encoding and decoding.
pub(super) const TEXTS: [&str; 6] = [
    "def mean(values):\n    return sum(values) / len(values)\n",
    "  two spaces,\ttabs\r\nand 12345 digits",
    "Grüße aus Köln – naïve café, œuvre",
    "数学と物理 한국어 Привет مرحبا",
    "👩‍💻🏳️‍🌈 emoji \u{0}\u{1}\u{7f}",
    "don't won't I'll we've DON'T",
];

/// Scales and weights that nothing can be computed with.
pub(super) fn values(file: &GgufFile) -> Vec<String> {
    let total: u64 = file.tensors().iter().map(|tensor| tensor.len as u64).sum();
    let bar = progress(total, "values");
    let mut out = Vec::new();
    for tensor in file.tensors() {
        if let Some(fault) = file.first_fault(tensor) {
            out.push(format!(
                "tensor `{}`, row {}, block {}: {}",
                tensor.name, fault.row, fault.block, fault.what
            ));
        }
        bar.inc(tensor.len as u64);
    }
    bar.finish_and_clear();
    out
}

/// Texts that the tokenizer loses.
pub(super) fn round_trips(tokenizer: &Tokenizer) -> Vec<String> {
    TEXTS
        .iter()
        .filter(|text| {
            let ids = tokenizer.encode(text, Specials::AsText);
            tokenizer.decode(&ids) != text.as_bytes()
        })
        .map(|text| format!("tokenizer: {text:?} does not come back as it went in"))
        .collect()
}
