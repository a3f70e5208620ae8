//! Figures of one request.

use super::book::Book;
use super::figure::{AnyFigure, Assumed, Calculated, Fact, Figure, Measured, Unit};
use super::{Formula, Metric};
use crate::archive::SessionFacts;
use crate::replay::{RequestRecord, TokenSource};
use crate::server::ServerKind;
use crate::study::Protocol;

/// One request's figures, kept typed for what is computed from them.
pub(super) struct RequestFigures {
    pub(super) index: u32,
    /// See [`SessionFacts::place`].
    pub(super) place: u32,
    pub(super) scored: bool,
    pub(super) decode_tokens: Figure<Calculated>,
    pub(super) decode_seconds: Figure<Measured>,
    pub(super) decode_rate: Figure<Calculated>,
    pub(super) fresh_prompt_tokens: Figure<Calculated>,
    pub(super) prompt_rate: Figure<Calculated>,
    pub(super) first_byte: Figure<Measured>,
    pub(super) ttft: Figure<Measured>,
    pub(super) first_content: Figure<Measured>,
    pub(super) wall: Figure<Measured>,
    pub(super) engine_prompt_tokens: Figure<Measured>,
    pub(super) engine_prompt_ms: Figure<Measured>,
    pub(super) engine_decode_tokens: Box<dyn AnyFigure>,
    pub(super) engine_decode_ms: Figure<Measured>,
    pub(super) generated: Figure<Measured>,
    pub(super) prompt: Figure<Measured>,
    pub(super) cached: Figure<Measured>,
    /// Seconds a token after the first event; absent in older archives where the protocol is the
    /// default.
    pub(super) tpot: Option<Figure<Calculated>>,
    /// From when it was due to when it was sent; absent where requests have no times.
    pub(super) late: Option<Figure<Measured>>,
    /// 1 where it met the study's limits, else 0; absent where there are none.
    pub(super) within: Option<Figure<Calculated>>,
    /// CPU time of the client's own thread; absent before it was kept.
    pub(super) client_cpu: Option<Figure<Measured>>,
    /// Seconds between events with tokens.
    pub(super) gaps: Vec<Fact>,
    /// See [`RequestRecord::phase`].
    pub(super) phase: Option<String>,
}

impl RequestFigures {
    /// The figure of a compared metric; absent for those that a session has once.
    pub(super) fn metric(&self, metric: Metric) -> Option<&dyn AnyFigure> {
        match metric {
            Metric::DecodeRate => Some(&self.decode_rate),
            Metric::PromptRate => Some(&self.prompt_rate),
            Metric::Ttft => Some(&self.ttft),
            Metric::ClientWall => Some(&self.wall),
            Metric::Tpot => self.tpot.as_ref().map(|f| f as _),
            Metric::CohortRate | Metric::CohortWall | Metric::Throughput | Metric::Goodput => None,
        }
    }
}

/// The study's limits, published once.
pub(super) struct LimitFigures {
    ttft: Option<Figure<Assumed>>,
    tpot: Option<Figure<Assumed>>,
}

impl LimitFigures {
    /// Publishes them; absent where the protocol has none.
    pub(super) fn of(book: &mut Book, protocol: &Protocol) -> Option<Self> {
        let limits = protocol.limits()?;
        let mut declared = |key: &str, value: Option<f64>| {
            let fact = Fact::new("study.toml", &format!("limits/{key}"), value);
            let id = format!("study/limit_{}", key.trim_end_matches("_s"));
            value.map(|_| book.add(Figure::declared(id, Unit::Seconds, fact)))
        };
        Some(Self {
            ttft: declared("ttft_s", limits.ttft_s),
            tpot: declared("tpot_s", limits.tpot_s),
        })
    }
}

/// The convention of the server's own decode count: llama.cpp counts every token over its decode
/// time, palindrome-engine those after the first.
pub(super) fn engine_decode_name(kind: ServerKind) -> &'static str {
    match kind {
        ServerKind::LlamaCpp => "engine_decode_rate_n",
        ServerKind::PalindromeEngine | ServerKind::Mock => "engine_decode_rate_n_minus_1",
        ServerKind::Openai => "engine_decode_rate_as_stated",
    }
}

/// Publishes how many tokens the first event stands for: read, or assumed and labelled so.
fn first_event_tokens(
    book: &mut Book,
    id: String,
    fact: Fact,
    source: Option<TokenSource>,
) -> Box<dyn AnyFigure> {
    match source {
        Some(TokenSource::Events) => Box::new(book.add(Figure::assumed(id, Unit::Tokens, fact))),
        _ => Box::new(book.add(Figure::reading(id, Unit::Tokens, fact))),
    }
}

/// Publishes a request's figures. A failed request's are all absent: its times are of a failure.
pub(super) fn request_figures(
    book: &mut Book,
    limits: Option<&LimitFigures>,
    session: &SessionFacts,
    r: &RequestRecord,
) -> RequestFigures {
    let name = session.name();
    let file = format!("sessions/{name}/requests.jsonl");
    let id = |metric: &str| format!("request/{name}/{:03}/{metric}", r.index);
    let fact = |field: &str, value: Option<f64>| {
        Fact::new(
            &file,
            &format!("{}/{field}", r.index),
            value.filter(|_| r.error.is_none()),
        )
    };
    let whole = |field: &str, value: Option<u64>| fact(field, value.map(|v| v as f64));
    // Latencies run from when a request was due, where it was.
    let sent = || match r.due_ns {
        Some(due) => whole("due_ns", Some(due)),
        None => whole("sent_ns", Some(r.sent_ns)),
    };
    let mut reading = |metric: &str, field: &str, value: Option<u64>| {
        book.add(Figure::reading(
            id(metric),
            Unit::Tokens,
            whole(field, value),
        ))
    };

    let generated = reading("generated_tokens", "generated_tokens", r.generated_tokens);
    let prompt = reading("prompt_tokens", "prompt_tokens", r.prompt_tokens);
    let cached = reading("cached_tokens", "cached_tokens", r.cached_tokens);
    let engine = r.engine.clone().unwrap_or_default();
    let engine_prompt_tokens = reading("engine_prompt_tokens", "engine/prompt_n", engine.prompt_n);
    let predicted = reading(
        "engine_decode_tokens",
        "engine/predicted_n",
        engine.predicted_n,
    );
    let engine_decode_tokens: Box<dyn AnyFigure> = match session.launch.kind {
        ServerKind::LlamaCpp | ServerKind::Openai => Box::new(predicted),
        // Its time starts at the first token, so one token is not in it.
        ServerKind::PalindromeEngine | ServerKind::Mock => Box::new(book.add(Figure::by(
            id("engine_decode_tokens_after_first"),
            Unit::Tokens,
            &Formula::AfterFirst,
            &[&predicted],
        ))),
    };

    let first_event = first_event_tokens(
        book,
        id("first_event_tokens"),
        whole("first_event_tokens", r.first_event_tokens),
        r.first_event_source,
    );

    let mut timer = |metric: &str, from: Fact, field: &str, to: Option<u64>| {
        book.add(Figure::interval(id(metric), from, whole(field, to)))
    };
    let first_byte = timer("first_byte", sent(), "first_byte_ns", r.first_byte_ns);
    let ttft = timer("ttft", sent(), "first_token_ns", r.first_token_ns);
    let first_content = timer(
        "first_content",
        sent(),
        "first_content_ns",
        r.first_content_ns,
    );
    let wall = timer("client_wall", sent(), "done_ns", Some(r.done_ns));
    let late = r
        .due_ns
        .map(|_| timer("late", sent(), "sent_ns", Some(r.sent_ns)));
    let first = whole("first_token_ns", r.first_token_ns);
    let decode_seconds = timer("decode_seconds", first, "last_token_ns", r.last_token_ns);

    let mut millis = |metric: &str, field: &str, value: Option<f64>| {
        book.add(Figure::reading(
            id(metric),
            Unit::Milliseconds,
            fact(field, value),
        ))
    };
    let engine_prompt_ms = millis("engine_prompt_ms", "engine/prompt_ms", engine.prompt_ms);
    let engine_decode_ms = millis(
        "engine_decode_ms",
        "engine/predicted_ms",
        engine.predicted_ms,
    );

    let mut by = |metric: &str, unit, formula: &Formula, inputs: &[&dyn AnyFigure]| {
        book.add(Figure::by(id(metric), unit, formula, inputs))
    };
    let decode_tokens = by(
        "decode_tokens",
        Unit::Tokens,
        &Formula::Difference,
        &[&generated, first_event.as_ref()],
    );
    let rate = Unit::TokensPerSecond;
    let decode_rate = by(
        "decode_rate",
        rate,
        &Formula::Quotient,
        &[&decode_tokens, &decode_seconds],
    );
    let tpot = (r.phase.is_some() || session.readback.is_some()).then(|| {
        let inputs: [&dyn AnyFigure; 2] = [&decode_seconds, &decode_tokens];
        by("tpot", Unit::Seconds, &Formula::Quotient, &inputs)
    });
    let within = limits.map(|limits| {
        let mut inputs: Vec<&dyn AnyFigure> = Vec::new();
        if let Some(limit) = &limits.ttft {
            inputs.extend([&ttft as &dyn AnyFigure, limit]);
        }
        let one_event = r.generated_tokens.is_some() && r.generated_tokens == r.first_event_tokens;
        if let (Some(limit), Some(tpot), false) = (&limits.tpot, &tpot, one_event) {
            inputs.extend([tpot as &dyn AnyFigure, limit]);
        }
        by("within_limits", Unit::Count, &Formula::Within, &inputs)
    });
    let fresh_prompt_tokens = by(
        "fresh_prompt_tokens",
        Unit::Tokens,
        &Formula::Difference,
        &[&prompt, &cached],
    );
    let prompt_rate = by(
        "prompt_rate",
        rate,
        &Formula::Quotient,
        &[&fresh_prompt_tokens, &ttft],
    );
    by(
        "engine_prompt_rate",
        rate,
        &Formula::PerMillisecond,
        &[&engine_prompt_tokens, &engine_prompt_ms],
    );
    let own = engine_decode_name(session.launch.kind);
    by(
        own,
        rate,
        &Formula::PerMillisecond,
        &[engine_decode_tokens.as_ref(), &engine_decode_ms],
    );

    let client_cpu = r.client_cpu_ns.map(|ns| {
        let fact = fact("client_cpu_ns", Some(ns as f64 / 1e9));
        book.add(Figure::reading(id("client_cpu"), Unit::Seconds, fact))
    });
    let gaps = r.token_gaps_ns.iter();
    let gaps = gaps.map(|ns| fact("token_gaps_ns", Some(*ns as f64 / 1e9)));
    let gaps: Vec<Fact> = gaps.collect();
    RequestFigures {
        index: r.index,
        place: session.place(r.index),
        scored: r.scored,
        decode_tokens,
        decode_seconds,
        decode_rate,
        fresh_prompt_tokens,
        prompt_rate,
        first_byte,
        ttft,
        first_content,
        wall,
        engine_prompt_tokens,
        engine_prompt_ms,
        engine_decode_tokens,
        engine_decode_ms,
        generated,
        prompt,
        cached,
        tpot,
        late,
        within,
        client_cpu,
        gaps,
        phase: r.phase.clone(),
    }
}
