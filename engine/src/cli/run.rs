//! `run`: one prompt on the terminal.

use std::io::{Read, Write};
use std::process::ExitCode;

use clap::Args;
use serde_json::json;

use super::args::{ModelArgs, SamplingArgs};
use super::failure::Failure;
use crate::chat::{Delta, HarmonyParser, RenderInput};
use crate::scheduler::{Engine, GenEvent, GenRequest, GenSummary};
use crate::tokenizer::{Specials, Utf8Stream};

/// Flags of `run`.
#[derive(Debug, Args)]
pub struct RunArgs {
    #[command(flatten)]
    model: ModelArgs,
    /// The prompt; `-` reads it from standard input
    #[arg(long, short = 'p', value_name = "TEXT")]
    prompt: String,
    /// Treat the prompt as a user's message and apply the model's chat template
    #[arg(long)]
    chat: bool,
    /// A system message, with --chat
    #[arg(long, value_name = "TEXT", requires = "chat")]
    system: Option<String>,
    /// Most tokens to generate [default: until the model stops or the context is full]
    #[arg(long, short = 'n', visible_alias = "n-predict", value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    max_tokens: Option<u32>,
    #[command(flatten)]
    sampling: SamplingArgs,
}

/// Streams the answer to standard output and the figures to standard error.
pub fn run(args: &RunArgs) -> Result<ExitCode, Failure> {
    let sampling = args.sampling.params()?;
    let text = read_prompt(&args.prompt)?;
    let engine = args.model.load()?;
    let prompt = if args.chat {
        render(&engine, args.system.as_deref(), &text)?
    } else {
        text
    };
    let tokenizer = engine.tokenizer();
    let mut ids = tokenizer.encode(&prompt, Specials::Parse);
    if let Some(bos) = tokenizer.bos_to_add()
        && ids.first() != Some(&bos)
    {
        ids.insert(0, bos);
    }
    if ids.is_empty() {
        return Err(Failure::new("the prompt is empty").hint("give some text with -p"));
    }
    let request = GenRequest {
        prompt: ids,
        max_tokens: args.max_tokens.map(|limit| limit as usize),
        sampling,
        stop_tokens: tokenizer.end_of_generation().to_vec(),
        cache_prompt: false,
        logprobs: None,
    };
    let harmony = args.chat
        && engine
            .template()
            .is_some_and(crate::chat::ChatTemplate::is_harmony);
    let summary = stream(&engine, request, harmony)?;
    report(&summary);
    engine.shut_down();
    Ok(ExitCode::SUCCESS)
}

fn read_prompt(given: &str) -> Result<String, Failure> {
    if given != "-" {
        return Ok(given.to_owned());
    }
    let mut text = String::new();
    std::io::stdin()
        .read_to_string(&mut text)
        .map_err(|error| Failure::new(format!("cannot read the prompt: {error}")))?;
    Ok(text)
}

fn render(engine: &Engine, system: Option<&str>, text: &str) -> Result<String, Failure> {
    let template = engine.template().ok_or_else(|| {
        Failure::new("the model file has no chat template").hint("leave out --chat")
    })?;
    let mut messages = Vec::new();
    if let Some(system) = system {
        messages.push(json!({ "role": "system", "content": system }));
    }
    messages.push(json!({ "role": "user", "content": text }));
    let input = RenderInput {
        messages: &messages,
        add_generation_prompt: true,
        ..RenderInput::default()
    };
    template.render(&input).map_err(Failure::new)
}

fn stream(engine: &Engine, request: GenRequest, harmony: bool) -> Result<GenSummary, Failure> {
    let tokenizer = engine.tokenizer();
    let mut parser = harmony.then(|| HarmonyParser::new(tokenizer));
    let mut utf8 = Utf8Stream::default();
    let mut out = Screen::default();
    let mut events = engine.submit(request).map_err(Failure::new)?;
    loop {
        match events.next_blocking() {
            Some(GenEvent::Started { .. }) => {}
            Some(GenEvent::Token(token)) => match &mut parser {
                Some(parser) => out.deltas(parser.push(tokenizer, token.id))?,
                None if tokenizer.is_special(token.id) => {}
                None => show(&utf8.push(tokenizer.token_bytes(token.id)))?,
            },
            Some(GenEvent::Done(summary)) => {
                match &mut parser {
                    Some(parser) => out.deltas(parser.finish())?,
                    None => show(&utf8.finish())?,
                }
                show("\n")?;
                return Ok(summary);
            }
            Some(GenEvent::Failed(error)) => return Err(Failure::new(error)),
            None => {
                return Err(Failure::new(
                    "the engine stopped before the answer was complete",
                ));
            }
        }
    }
}

fn show(text: &str) -> Result<(), Failure> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Standard output: reasoning, answer and tool calls one below the other.
#[derive(Default)]
struct Screen {
    section: Option<&'static str>,
}

impl Screen {
    fn section(&mut self, name: &'static str, heading: &str) -> Result<(), Failure> {
        if self.section != Some(name) {
            let gap = if self.section.is_some() { "\n" } else { "" };
            self.section = Some(name);
            show(&format!("{gap}{heading}"))?;
        }
        Ok(())
    }
    fn deltas(&mut self, deltas: Vec<Delta>) -> Result<(), Failure> {
        for delta in deltas {
            match delta {
                Delta::Reasoning(text) => {
                    self.section("reasoning", "[reasoning] ")?;
                    show(&text)?;
                }
                Delta::Content(text) => {
                    self.section("content", "")?;
                    show(&text)?;
                }
                Delta::ToolCallStart { name, .. } => {
                    self.section = Some("call");
                    show(&format!("\n[tool call] {name} "))?;
                }
                Delta::ToolCallArguments { fragment, .. } => show(&fragment)?,
            }
        }
        Ok(())
    }
}

fn report(summary: &GenSummary) {
    let intervals = summary.predicted_n.saturating_sub(1);
    eprintln!(
        "prompt: {} tokens in {:.1} ms; answer: {} tokens, {intervals} intervals in {:.1} ms{}; seed {}; tokens sha256 {}",
        summary.prompt_n,
        summary.prompt_ms,
        summary.predicted_n,
        summary.predicted_ms,
        rate(intervals, summary.predicted_ms),
        summary.seed,
        summary.generated_hash,
    );
}

fn rate(intervals: usize, millis: f64) -> String {
    if intervals == 0 || millis <= 0.0 {
        return String::new();
    }
    format!(" ({:.2} tok/s)", intervals as f64 * 1e3 / millis)
}
