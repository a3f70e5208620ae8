//! From a source's requests to a folder: all of it or nothing.

use std::fs;
use std::path::Path;
use std::time::SystemTime;

use serde_json::{Map, Value, json};

use super::super::folder::{INDEX, Lines, body_name, refuse_full, write_whole};
use super::super::{IndexHead, IndexLine, SCHEMA, WorkloadError, write_starter};
use super::plan::{Bad, Choice, Format, Imported, Options, Prompt, Request};
use super::{mooncake, sharegpt, transcript};
use crate::archive::{sha256_hex, utc_rfc3339};
use crate::study::SplitMix64;

/// More bodies than anybody means to replay.
const MOST_BODIES: usize = 10_000;

/// Imports a file. Nothing is left behind where it fails.
pub fn import(options: &Options) -> Result<Imported, WorkloadError> {
    refuse_full(&options.out)?;
    let file = &options.file;
    let text = fs::read_to_string(file).map_err(WorkloadError::io("read", file))?;
    let read = match options.format {
        Format::Sharegpt => sharegpt::read(&text, options),
        Format::Mooncake => mooncake::read(&text, options),
        Format::Jsonl => transcript::read(&text, options),
    };
    let mut imported = Imported {
        assumed: assumed(options),
        ..Imported::default()
    };
    let mut requests = Vec::new();
    for item in read {
        match item {
            Ok(found) => requests.extend(found),
            Err(Bad { line, message }) if options.skip_bad => {
                imported.skipped.push(format!("line {line}: {message}"));
            }
            Err(Bad { line, message }) => {
                return Err(WorkloadError::Line {
                    path: file.clone(),
                    line,
                    message: format!("{message}; `--skip-bad` leaves such lines out"),
                });
            }
        }
    }
    imported.seen = requests.len();
    let mut requests = chosen(requests, options.choice);
    let out_of_order = |w: &[Request]| w[0].at_ms > w[1].at_ms;
    if requests.windows(2).any(out_of_order) {
        // Stable: of requests at one time, the file's order stands.
        requests.sort_by(|a, b| {
            a.at_ms
                .partial_cmp(&b.at_ms)
                .unwrap_or(std::cmp::Ordering::Equal)
        });
    }
    if requests.is_empty() {
        let message = format!(
            "{}: none of its {} requests is left; look at --min-tokens, --max-tokens, --first and --choose",
            file.display(),
            imported.seen
        );
        return Err(WorkloadError::Wrong(message));
    }
    if requests.len() > MOST_BODIES {
        let message = format!(
            "{}: {} requests would be as many files; give --first N or --choose N, {MOST_BODIES} at most",
            file.display(),
            requests.len()
        );
        return Err(WorkloadError::Wrong(message));
    }
    imported.bodies = requests.len();
    write(&requests, options, &imported)?;
    Ok(imported)
}

/// What the source does not say and is taken to be so.
fn assumed(options: &Options) -> Vec<String> {
    match options.format {
        Format::Mooncake => vec![
            format!(
                "ASSUMED: {} tokens a word of the made text; `workload check --server` or `--model` counts them",
                options.tokens_per_word
            ),
            format!("ASSUMED: blocks of {} tokens", options.block_tokens),
        ],
        Format::Sharegpt | Format::Jsonl => vec![format!(
            "ASSUMED: {} bytes a token, for --min-tokens and --max-tokens",
            options.bytes_per_token
        )],
    }
}

fn chosen(requests: Vec<Request>, choice: Choice) -> Vec<Request> {
    let fits = |r: &Request| {
        choice.min_tokens.is_none_or(|least| r.tokens >= least)
            && choice.max_tokens.is_none_or(|most| r.tokens <= most)
    };
    let mut left: Vec<Request> = requests.into_iter().filter(fits).collect();
    if let Some(n) = choice.choose.filter(|n| *n < left.len()) {
        // The first n places of a shuffle, then the file's order again.
        let mut random = SplitMix64::new(choice.choose_seed);
        let mut places: Vec<usize> = (0..left.len()).collect();
        for at in 0..n {
            let span = places.len() - at;
            let other = at + ((random.unit() * span as f64) as usize).min(span - 1);
            places.swap(at, other);
        }
        places.truncate(n);
        places.sort_unstable();
        left = places.into_iter().map(|at| left[at].clone()).collect();
    }
    left.truncate(choice.first.unwrap_or(usize::MAX));
    left
}

/// A body with every field spelled out.
fn body(request: &Request, options: &Options) -> Vec<u8> {
    let mut body = Map::new();
    body.insert("model".to_owned(), json!(options.model));
    let chat = options.path.ends_with("/chat/completions");
    match &request.prompt {
        Prompt::Chat { messages, tools } => {
            body.insert("messages".to_owned(), json!(messages));
            if let Some(tools) = tools {
                body.insert("tools".to_owned(), tools.clone());
            }
        }
        Prompt::Text(text) if chat => {
            body.insert(
                "messages".to_owned(),
                json!([{ "role": "user", "content": text }]),
            );
        }
        Prompt::Text(text) => {
            body.insert("prompt".to_owned(), json!(text));
        }
    }
    // A length in the source is that of the answer that was given: it is reached, not only allowed.
    let stated = request.answer_tokens;
    let limit = stated.unwrap_or(options.answer_tokens);
    options
        .sampling
        .spell_out(&mut body, limit, stated.is_some());
    let mut text = serde_json::to_vec_pretty(&Value::Object(body)).unwrap_or_default();
    text.push(b'\n');
    text
}

/// Writes the folder beside its place and moves it there when it is whole.
fn write(
    requests: &[Request],
    options: &Options,
    imported: &Imported,
) -> Result<(), WorkloadError> {
    let out = &options.out;
    let name = out.file_name().and_then(|n| n.to_str()).ok_or_else(|| {
        WorkloadError::Wrong(format!(
            "{} does not name a folder to make; give --out NEW-FOLDER",
            out.display()
        ))
    })?;
    let partial = out.with_file_name(format!(".{name}.partial"));
    if partial.exists() {
        fs::remove_dir_all(&partial).map_err(WorkloadError::io("remove", &partial))?;
    }
    let written = fill(&partial, requests, options, imported).and_then(|()| {
        fs::rename(&partial, out).map_err(WorkloadError::io("move into place", out))
    });
    if written.is_err() {
        // The error before is the one that matters.
        let _ = fs::remove_dir_all(&partial);
    }
    written
}

fn fill(
    folder: &Path,
    requests: &[Request],
    options: &Options,
    imported: &Imported,
) -> Result<(), WorkloadError> {
    fs::create_dir_all(folder).map_err(WorkloadError::io("make the folder", folder))?;
    let mut index = Lines::create(folder.join(INDEX))?;
    let named = options
        .file
        .file_name()
        .map(|n| n.to_string_lossy().into_owned());
    index.add(&IndexHead {
        schema: SCHEMA.to_owned(),
        made_by: format!("import {}", options.format.name()),
        utc: utc_rfc3339(SystemTime::now()),
        from: named.unwrap_or_default(),
        assumed: imported.assumed.clone(),
    })?;
    let first = requests.first().and_then(|r| r.at_ms);
    for (number, request) in (1..).zip(requests) {
        let bytes = body(request, options);
        let file = body_name(number);
        write_whole(&folder.join(&file), &bytes)?;
        index.add(&IndexLine {
            number,
            at_s: request
                .at_ms
                .zip(first)
                .map(|(at, first)| (at - first) / 1000.0),
            path: options.path.clone(),
            bytes: bytes.len() as u64,
            sha256: Some(sha256_hex(&bytes)),
            file: Some(file),
            source_line: Some(request.line),
            ..IndexLine::default()
        })?;
    }
    write_starter(folder).map(drop)
}
