//! `info`: what a model file holds.

use std::io::Write;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value as Json, json};

use super::failure::Failure;
use crate::chat::ChatTemplate;
use crate::formats::gguf::{GgufFile, TensorInfo, Value};
use crate::formats::store;
use crate::tokenizer::Tokenizer;

/// Flags of `info`.
#[derive(Debug, Args)]
pub struct InfoArgs {
    /// The model file (GGUF; for a split one, its first part)
    #[arg(value_name = "MODEL.gguf")]
    model: PathBuf,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Prints the facts.
pub fn run(args: &InfoArgs) -> Result<ExitCode, Failure> {
    let at =
        |error: &dyn std::fmt::Display| Failure::new(format!("{}: {error}", args.model.display()));
    let file = store::open_model(&args.model).map_err(|error| at(&error))?;
    let facts = facts(&file).map_err(|error| at(&error))?;
    let text = if args.json {
        let mut text = serde_json::to_string_pretty(&facts).map_err(|error| at(&error))?;
        text.push('\n');
        text
    } else {
        human(&facts)
    };
    match std::io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => Err(at(&error)),
        _ => Ok(ExitCode::SUCCESS),
    }
}

fn facts(file: &GgufFile) -> Result<Json, String> {
    let metadata = file.metadata();
    let architecture = metadata
        .str("general.architecture")
        .map_err(|error| error.to_string())?;
    if file.tensor("token_embd.weight").is_none() {
        return Err(format!(
            "the file holds no language model: it has no tensor `token_embd.weight` (architecture {architecture:?})"
        ));
    }
    let tokenizer = Tokenizer::from_metadata(metadata).map_err(|error| error.to_string())?;
    let template = ChatTemplate::from_metadata(metadata).map_err(|error| error.to_string())?;
    let entries: serde_json::Map<String, Json> = metadata
        .iter()
        .map(|(key, value)| (key.to_owned(), brief(value)))
        .collect();
    let tensors: Vec<Json> = file.tensors().iter().map(tensor).collect();
    let weights: u64 = file.tensors().iter().map(weights).sum();
    let bytes: u64 = file.tensors().iter().map(|tensor| tensor.len as u64).sum();
    let end_of_generation = tokenizer.end_of_generation();
    Ok(json!({
        "architecture": architecture,
        "name": metadata.opt_str("general.name").map_err(|error| error.to_string())?,
        "weights": weights,
        "tensor_bytes": bytes,
        "by_type": by_type(file.tensors()),
        "vocabulary": {
            "tokens": tokenizer.vocab_size(),
            "adds_bos": tokenizer.bos_to_add(),
            "end_of_generation": end_of_generation,
        },
        "chat_template": template.as_ref().map(|template| if template.is_harmony() { "harmony" } else { "jinja" }),
        "metadata": entries,
        "tensors": tensors,
    }))
}

fn weights(tensor: &TensorInfo) -> u64 {
    tensor.dims.iter().product()
}

fn tensor(tensor: &TensorInfo) -> Json {
    json!({
        "name": tensor.name,
        "type": tensor.ty.name(),
        "dims": tensor.dims,
        "bytes": tensor.len,
        "part": tensor.part,
        "offset": tensor.offset,
    })
}

fn by_type(tensors: &[TensorInfo]) -> Json {
    let mut out: Vec<(&str, u64, u64, u64)> = Vec::new();
    for tensor in tensors {
        let name = tensor.ty.name();
        let at = out.iter().position(|row| row.0 == name).unwrap_or_else(|| {
            out.push((name, 0, 0, 0));
            out.len() - 1
        });
        out[at].1 += 1;
        out[at].2 += weights(tensor);
        out[at].3 += tensor.len as u64;
    }
    out.into_iter()
        .map(|(name, tensors, weights, bytes)| {
            json!({ "type": name, "tensors": tensors, "weights": weights, "bytes": bytes })
        })
        .collect()
}

/// Long arrays are cut to their first elements, long strings too.
fn brief(value: &Value) -> Json {
    match value {
        Value::U8(v) => json!(v),
        Value::I8(v) => json!(v),
        Value::U16(v) => json!(v),
        Value::I16(v) => json!(v),
        Value::U32(v) => json!(v),
        Value::I32(v) => json!(v),
        Value::U64(v) => json!(v),
        Value::I64(v) => json!(v),
        Value::F32(v) => json!(v),
        Value::F64(v) => json!(v),
        Value::Bool(v) => json!(v),
        Value::String(text) if text.chars().count() <= 200 => json!(text),
        Value::String(text) => {
            let head: String = text.chars().take(60).collect();
            json!({ "characters": text.chars().count(), "begins": head })
        }
        Value::Array(items) if items.len() <= 16 => items.iter().map(brief).collect(),
        Value::Array(items) => {
            let head: Vec<Json> = items.iter().take(4).map(brief).collect();
            json!({ "elements": items.len(), "begins": head })
        }
    }
}

fn human(facts: &Json) -> String {
    use std::fmt::Write as _;
    let mut out = String::new();
    // Writing to a string cannot fail.
    let mut line = |text: String| {
        let _ = writeln!(out, "{text}");
    };
    let text = |value: &Json| value.as_str().unwrap_or("none").to_owned();
    let bytes = facts["tensor_bytes"].as_u64().unwrap_or(0);
    line(format!("architecture   {}", text(&facts["architecture"])));
    line(format!("name           {}", text(&facts["name"])));
    line(format!(
        "weights        {} in {:.1} MiB",
        facts["weights"],
        bytes as f64 / (1 << 20) as f64
    ));
    line(format!(
        "vocabulary     {} tokens",
        facts["vocabulary"]["tokens"]
    ));
    line(format!("chat template  {}", text(&facts["chat_template"])));
    line("\nsizes by type".into());
    for row in facts["by_type"].as_array().into_iter().flatten() {
        line(format!(
            "  {:<6} {:>5} tensors {:>14} weights {:>14} bytes",
            text(&row["type"]),
            row["tensors"],
            row["weights"],
            row["bytes"]
        ));
    }
    line("\nmetadata".into());
    for (key, value) in facts["metadata"].as_object().into_iter().flatten() {
        line(format!("  {key} = {value}"));
    }
    line("\ntensors".into());
    for row in facts["tensors"].as_array().into_iter().flatten() {
        line(format!(
            "  {:<40} {:<6} {}",
            text(&row["name"]),
            text(&row["type"]),
            row["dims"]
        ));
    }
    out
}
