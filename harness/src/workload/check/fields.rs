//! Fields of request bodies: which servers read them, and what they do where they are missing.

/// Servers whose fields are known here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reader {
    /// The API that the others follow.
    OpenAi,
    /// llama.cpp's server.
    LlamaCpp,
    /// vLLM.
    Vllm,
    /// The bundled engine.
    Palindrome,
}

use Reader::{LlamaCpp, OpenAi, Palindrome, Vllm};

impl Reader {
    pub(super) fn name(self) -> &'static str {
        match self {
            OpenAi => "OpenAI",
            LlamaCpp => "llama-server",
            Vllm => "vLLM",
            Palindrome => "palindrome-engine",
        }
    }
}

const ALL: &[Reader] = &[OpenAi, LlamaCpp, Vllm, Palindrome];
const LOCAL: &[Reader] = &[LlamaCpp, Vllm, Palindrome];
const OURS: &[Reader] = &[LlamaCpp, Palindrome];

/// Every field known here, with who reads it. (llama.cpp: tools/server/README.md; vLLM:
/// docs/serving/openai_compatible_server.md; OpenAI: API reference; the engine: docs/api.md.)
pub(super) const FIELDS: &[(&str, &[Reader])] = &[
    ("model", ALL),
    ("messages", ALL),
    ("prompt", ALL),
    ("stream", ALL),
    ("stream_options", ALL),
    ("max_tokens", ALL),
    ("max_completion_tokens", ALL),
    ("n_predict", OURS),
    ("temperature", ALL),
    ("top_p", ALL),
    ("top_k", LOCAL),
    ("min_p", LOCAL),
    ("seed", ALL),
    ("presence_penalty", ALL),
    ("frequency_penalty", ALL),
    ("repeat_penalty", OURS),
    ("repetition_penalty", &[Vllm]),
    ("repeat_last_n", OURS),
    ("stop", ALL),
    ("logit_bias", ALL),
    ("logprobs", ALL),
    ("top_logprobs", ALL),
    ("n", ALL),
    ("best_of", ALL),
    ("echo", ALL),
    ("suffix", ALL),
    ("user", ALL),
    ("metadata", ALL),
    ("store", ALL),
    ("tools", ALL),
    ("tool_choice", ALL),
    ("parallel_tool_calls", ALL),
    ("response_format", ALL),
    ("reasoning_effort", ALL),
    ("service_tier", ALL),
    ("verbosity", ALL),
    ("chat_template_kwargs", LOCAL),
    ("add_generation_prompt", LOCAL),
    ("ignore_eos", LOCAL),
    ("min_tokens", &[Vllm]),
    ("stop_token_ids", &[Vllm]),
    ("cache_prompt", OURS),
    ("return_tokens", OURS),
    ("timings_per_token", OURS),
    ("typical_p", OURS),
    ("top_n_sigma", OURS),
    ("xtc_probability", OURS),
    ("xtc_threshold", OURS),
    ("dynatemp_range", OURS),
    ("dynatemp_exponent", OURS),
    ("dry_multiplier", OURS),
    ("dry_base", OURS),
    ("dry_allowed_length", OURS),
    ("dry_penalty_last_n", OURS),
    ("mirostat", OURS),
    ("mirostat_tau", OURS),
    ("mirostat_eta", OURS),
    ("samplers", OURS),
    ("grammar", OURS),
    ("json_schema", OURS),
    ("n_probs", OURS),
    ("min_keep", OURS),
    ("id_slot", OURS),
];

/// A field that must be there, and what servers do without it.
pub(super) struct Needed {
    pub(super) name: &'static str,
    pub(super) why: &'static str,
    /// Whether it changes nothing where the likeliest token is chosen (temperature 0).
    pub(super) of_chance: bool,
}

const fn needed(name: &'static str, why: &'static str) -> Needed {
    Needed {
        name,
        why,
        of_chance: false,
    }
}

const fn of_chance(name: &'static str, why: &'static str) -> Needed {
    Needed {
        name,
        why,
        of_chance: true,
    }
}

/// Sampling fields whose defaults differ from server to server.
pub(super) const NEEDED: &[Needed] = &[
    needed(
        "temperature",
        "0.8 in llama-server, 1 elsewhere, or what the model's files say",
    ),
    of_chance("top_k", "40 in llama-server, off elsewhere"),
    of_chance("top_p", "0.95 in llama-server, 1 elsewhere"),
    of_chance("min_p", "0.05 in llama-server, off elsewhere"),
    of_chance("seed", "random in most servers"),
    needed(
        "repeat_penalty",
        "1 in llama-server, 1.1 in others, or what the model's files say",
    ),
    needed(
        "presence_penalty",
        "0 mostly, or what a server was started with",
    ),
    needed(
        "frequency_penalty",
        "0 mostly, or what a server was started with",
    ),
    needed(
        "cache_prompt",
        "on or off by the server's version: whether prompts that begin alike are read once or each time",
    ),
];

/// Names of the answer's limit.
pub(super) const LIMITS: [&str; 3] = ["max_tokens", "max_completion_tokens", "n_predict"];

/// Samplers that only some servers have, with the value that switches each off.
pub(super) const OFF: &[(&str, f64)] = &[
    ("typical_p", 1.0),
    ("xtc_probability", 0.0),
    ("dynatemp_range", 0.0),
    ("dry_multiplier", 0.0),
    ("mirostat", 0.0),
    ("repeat_penalty", 1.0),
    ("repetition_penalty", 1.0),
];
