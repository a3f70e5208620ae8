//! Every key of a study file: what it holds, what it means, what it is when it is absent.
//!
//! Mistakes ([`super::check`]) and the JSON Schema ([`super::schema`]) are both made of this list,
//! and a test compares it with the structs that are read: a key cannot be in one and not the other.

use super::keys::{Key, Kind, Table, key, table};

/// Ten days.
const SECONDS: Kind = Kind::Number(0.0, 864_000.0);
/// Enough for something to happen.
const SOME_SECONDS: Kind = Kind::Number(0.001, 864_000.0);
const COUNT: Kind = Kind::Whole(1, u32::MAX as u64);
const PERCENT: Kind = Kind::Number(0.0, 100.0);
const ANY_SIZE: Kind = Kind::Number(0.0, f64::MAX);
const TEXT: Kind = Kind::Text;
const METRIC: Kind = Kind::Choice(&[
    "decode_rate",
    "prompt_rate",
    "ttft",
    "client_wall",
    "cohort_rate",
    "cohort_wall",
    "throughput",
    "tpot",
    "goodput",
]);

/// The whole file.
pub(super) const STUDY: Table = table(
    "the study",
    &[&[
        key("name", TEXT, "Names the archive's folder.").required(),
        key("question", TEXT, "What the study asks, for people."),
        key(
            "seed",
            Kind::Whole(0, u64::MAX),
            "Seed of the coins that orient the quartets.",
        )
        .default("1"),
        key(
            "quartets",
            Kind::Whole(1, 1000),
            "Mirrored blocks (A B B A), each two sessions an arm. Two give an interval, three are usual.",
        )
        .default("3")
        .zero("measures nothing"),
        key(
            "burn_in",
            Kind::Flag,
            "Whether one unscored session comes first.",
        )
        .default("true"),
        key(
            "primary",
            METRIC,
            "The metric that verdict and gate are about; the protocol's own if absent.",
        ),
        key(
            "margin",
            Kind::Share,
            "Largest slowdown that passes the gate, as a share: 0.05 is 5%.",
        ),
        key(
            "gate",
            Kind::TableOrTables(&GATE),
            "What else a gate demands; several as [[gate]].",
        ),
        key(
            "assumed_spread",
            Kind::Share,
            "How much two neighbouring sessions of one arm are taken to differ before any has run, as a share.",
        ),
        key(
            "assumed_session_s",
            SOME_SECONDS,
            "How long one session is taken to last before any has run, seconds; for `--dry-run`.",
        ),
        key(
            "looks",
            Kind::Table(&LOOKS),
            "When the study may end early; only at its end if absent.",
        ),
        key(
            "identity",
            Kind::Choice(&["exact", "prompt-only", "none"]),
            "Which tokens must agree over the sessions of an arm.",
        )
        .default("\"prompt-only\""),
        key(
            "strict",
            Kind::Flag,
            "Whether a session fails whose server is not found set as the study says.",
        )
        .default("false"),
        key("base", Kind::Table(&BASE), "What all arms share."),
        key(
            "arm",
            Kind::Tables(&ARM, 2),
            "What is compared. The first arm is the denominator of every ratio.",
        )
        .required(),
        key("workload", Kind::Table(&WORKLOAD), "What is replayed.").required(),
        key(
            "protocol",
            Kind::Table(&PROTOCOL),
            "How it is replayed; one request at a time if absent.",
        ),
        key(
            "limits",
            Kind::Table(&LIMITS),
            "What a request of an open loop, or at recorded times, must meet to count as good.",
        ),
        key(
            "guards",
            Kind::Table(&GUARDS),
            "What the machine must be like before each session.",
        ),
        key("server", Kind::Table(&SERVER), "How long servers may take."),
    ]],
);

const LAUNCHED: &[&str] = &["llama-cpp", "palindrome-engine"];
const COMMAND: &[&str] = &["openai"];
const BUILDABLE: &[&str] = &["llama-cpp", "palindrome-engine", "openai"];

/// What `[base]` gives to all arms and an arm may override.
const SETTINGS: &[Key] = &[
    key(
        "kind",
        Kind::Choice(&["llama-cpp", "palindrome-engine", "openai", "mock"]),
        "How the server is launched; `openai` is any other one, by its command line.",
    ),
    key("model", TEXT, "Model file, relative to the study file."),
    key("threads", COUNT, "Worker threads."),
    key("ctx", COUNT, "Context length in tokens."),
    key(
        "args",
        Kind::List(&TEXT, 0),
        "Further arguments; those of [base] come first.",
    ),
    key(
        "env",
        Kind::Texts,
        "Environment variables added to the inherited ones.",
    ),
    key(
        "expect",
        Kind::Table(&EXPECT),
        "What servers must be found to have done, whatever their flags asked for.",
    ),
    key(
        "program",
        TEXT,
        "Another binary than the one found, relative to the study file; of a built arm, relative to the folder that it \
         is built in.",
    )
    .only(LAUNCHED),
    key(
        "command",
        Kind::List(&TEXT, 1),
        "Program and arguments, with {port}, {model}, {threads}, {ctx} and, of a built arm, {tree}.",
    )
    .only(COMMAND),
    key(
        "health",
        TEXT,
        "The route that answers 200 once the server is ready.",
    )
    .default("\"/health\"")
    .only(COMMAND),
    key(
        "script",
        TEXT,
        "Timeline of the scripted server, relative to the study file.",
    )
    .only(&["mock"]),
    key(
        "build",
        Kind::List(&TEXT, 1),
        "The command that builds the server before the first session: program and arguments.",
    )
    .only(BUILDABLE),
    key(
        "rev",
        TEXT,
        "The git revision to build, in a folder of its own; the repository as it lies there if absent.",
    )
    .only(BUILDABLE),
    key(
        "repo",
        TEXT,
        "The repository of a built arm, relative to the study file; the one that the study file is in if absent.",
    )
    .only(BUILDABLE),
];

const BASE: Table = table("[base]", &[SETTINGS]);

const ARM: Table = table(
    "[[arm]]",
    &[
        &[
            key(
                "name",
                TEXT,
                "Short name, used in folders: letters, digits, `-` and `_`.",
            )
            .required(),
            key("label", TEXT, "For people; the name if absent."),
            key(
                "switch",
                Kind::Table(&SWITCH),
                "In a paired protocol: how the server is told to use this arm's settings.",
            ),
        ],
        SETTINGS,
    ],
);

const EXPECT: Table = table(
    "[expect]",
    &[&[
        key(
            "backend",
            TEXT,
            "What computes: `cpu`, `cuda`, `vulkan`, `rocm`, `sycl`, `metal`.",
        ),
        key(
            "gpu_layers",
            Kind::Whole(0, u32::MAX as u64),
            "Layers on a GPU.",
        ),
        key("ctx", COUNT, "Context in tokens that one request may use."),
        key("slots", COUNT, "Requests that can be worked on at once."),
        key("threads", COUNT, "Threads that decode."),
        key("threads_batch", COUNT, "Threads that read prompts."),
        key("batch", COUNT, "Logical batch size in tokens."),
        key("ubatch", COUNT, "Physical batch size in tokens."),
        key(
            "cpu_features",
            Kind::List(&TEXT, 0),
            "Instruction sets that the server must use, by the names that it prints.",
        ),
        key(
            "cpus",
            TEXT,
            "CPUs that it may run on, as the kernel lists them: `0-3,8`.",
        ),
        key(
            "model_sha256",
            TEXT,
            "sha256 of the model file, or at least its first 12 digits.",
        ),
        key(
            "flash_attention",
            Kind::Flag,
            "Whether attention is computed by the flash kernels.",
        ),
        key(
            "kv_type",
            TEXT,
            "Type of the cache of keys and values: `f16`.",
        ),
        key("mmap", Kind::Flag, "Whether the model file is mapped."),
        key(
            "version",
            TEXT,
            "A part of what the server says of its version.",
        ),
    ]],
);

const SWITCH: Table = table(
    "switch",
    &[&[
        key(
            "fields",
            Kind::Free,
            "Fields that are added to each of the arm's bodies.",
        ),
        key(
            "post",
            TEXT,
            "Path that is posted to before each of the arm's requests.",
        ),
        key("json", Kind::Free, "What is posted."),
    ]],
);

const WORKLOAD: Table = table(
    "[workload]",
    &[&[
        key(
            "bodies",
            Kind::List(&TEXT, 1),
            "Request bodies (JSON files with `\"stream\": true`) in replay order, relative to the study file.",
        )
        .required()
        .zero("has no bodies, so nothing is measured"),
        key(
            "warmups",
            Kind::List(&TEXT, 0),
            "Bodies replayed first in every session, unscored.",
        ),
        key("path", TEXT, "Where bodies are posted.").default("\"/v1/chat/completions\""),
        key(
            "expect_cached",
            Kind::Choice(&["none", "prefix", "any"]),
            "Prompt tokens that may come from the server's cache: none, none in a session's first request, or any.",
        )
        .default("\"none\""),
        key(
            "timeout_s",
            SOME_SECONDS,
            "Longest one request may take, seconds.",
        )
        .default("300"),
    ]],
);

const CLOSED: &[&str] = &["closed-loop"];
const OPEN: &[&str] = &["open-loop"];
const ARRIVALS: &[&str] = &["arrivals"];
const COHORT: &[&str] = &["cohort"];
const LOOPS: &[&str] = &["closed-loop", "open-loop"];

const PROTOCOL: Table = Table {
    ranges_elsewhere: true,
    ..table(
        "[protocol]",
        &[&[
            key(
                "kind",
                Kind::Choice(&["fresh", "warm", "paired", "cohort", "closed-loop", "open-loop", "arrivals"]),
                "How bodies are replayed: one at a time, the same after warm-ups, under both arms' settings in turn, all at once, by workers, on schedule, at \
                 recorded times.",
            )
            .required(),
            key(
                "copies",
                Kind::Whole(1, 1024),
                "How often each body is in the cohort.",
            )
            .default("1")
            .only(COHORT),
            key(
                "compare_alone",
                Kind::Flag,
                "Whether each body is replayed alone afterwards, unscored, to compare answers.",
            )
            .default("false")
            .only(COHORT),
            key(
                "concurrency",
                Kind::List(&Kind::Whole(1, 1024), 1),
                "Workers of each level.",
            )
            .only(CLOSED)
            .needed(CLOSED),
            key(
                "rates_rps",
                Kind::List(&Kind::Number(0.001, 10_000.0), 1),
                "Requests a second of each level, on average.",
            )
            .only(OPEN)
            .needed(OPEN),
            key(
                "seed",
                Kind::Whole(0, u64::MAX),
                "Seed of the arrival times.",
            )
            .default("1")
            .only(OPEN),
            key(
                "requests",
                Kind::WholeOrList(1, 100_000),
                "Requests of each level; one number is for all.",
            )
            .only(LOOPS)
            .needed(LOOPS),
            key(
                "arrivals_s",
                Kind::List(&SECONDS, 1),
                "When each body came, seconds from the start, ascending.",
            )
            .only(ARRIVALS)
            .needed(ARRIVALS),
            key(
                "speed",
                Kind::Number(0.001, 1000.0),
                "How many times faster than recorded.",
            )
            .default("1")
            .only(ARRIVALS),
            key(
                "primary_level",
                ANY_SIZE,
                "The level that verdict and gate are about; the last if absent.",
            )
            .only(LOOPS),
        ]],
    )
};

const GATE: Table = table(
    "[gate]",
    &[&[
        key("metric", METRIC, "A metric of the protocol.").required(),
        key(
            "margin",
            Kind::Share,
            "Largest change that passes, as a share: 0.05 is 5%.",
        )
        .required(),
        key(
            "direction",
            Kind::Choice(&["slower", "either"]),
            "What counts as too much: slower than the first arm, or a change of either sign.",
        )
        .default("\"slower\""),
        key(
            "level",
            Kind::Whole(0, u32::MAX as u64),
            "Which level of load, from 0; the primary one if absent.",
        ),
    ]],
);

const LOOKS: Table = Table {
    ranges_elsewhere: true,
    ..table(
        "[looks]",
        &[&[
            key(
                "at",
                Kind::List(&Kind::Whole(2, 1000), 1),
                "After how many quartets the study may end: rising, the last one is `quartets`.",
            )
            .required(),
            key(
                "spending",
                Kind::Choice(&["obrien-fleming", "pocock"]),
                "How the 5% level is spread over the looks.",
            )
            .default("\"obrien-fleming\""),
        ]],
    )
};

const LIMITS: Table = Table {
    ranges_elsewhere: true,
    ..table(
        "[limits]",
        &[&[
            key(
                "ttft_s",
                Kind::Above0(864_000.0),
                "Longest time to the first token, from the scheduled time, seconds.",
            ),
            key(
                "tpot_s",
                Kind::Above0(864_000.0),
                "Longest time per output token, seconds.",
            ),
        ]],
    )
};

const GUARDS: Table = table(
    "[guards]",
    &[&[
        key(
            "min_free_ram_mb",
            Kind::Whole(0, u64::MAX),
            "Least available memory, megabytes.",
        ),
        key("max_load", ANY_SIZE, "Highest one-minute load."),
        key(
            "max_psi_cpu_some10",
            PERCENT,
            "Highest pressure of the CPU (PSI `some avg10`), percent.",
        ),
        key(
            "max_psi_memory_some10",
            PERCENT,
            "Highest pressure of memory (PSI `some avg10`), percent.",
        ),
        key(
            "allow_other_servers",
            Kind::Flag,
            "Whether other inference servers may run.",
        )
        .default("false"),
        key(
            "wait_s",
            SECONDS,
            "How long to wait for the machine to settle, seconds.",
        )
        .default("60"),
    ]],
);

const SERVER: Table = table(
    "[server]",
    &[&[
        key(
            "ready_timeout_s",
            SOME_SECONDS,
            "Longest from launch to ready, seconds.",
        )
        .default("300"),
        key("stop_grace_s", SECONDS, "From SIGTERM to SIGKILL, seconds.").default("10"),
    ]],
);

/// Every table, for messages about a key that stands in the wrong one.
pub(super) const TABLES: [&Table; 12] = [
    &STUDY, &GATE, &BASE, &ARM, &EXPECT, &SWITCH, &WORKLOAD, &PROTOCOL, &LOOKS, &LIMITS, &GUARDS,
    &SERVER,
];
