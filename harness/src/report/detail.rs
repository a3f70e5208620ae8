//! The page's second half: requests, sessions, pairs, identity, methods, files.

use super::content::Source;
use super::format::bare;
use super::page::{Block, Table};
use super::terminal::leveled;
use super::usage;
use crate::derive::{Formula, Metric, PERCENTS, WORST};
use crate::study::{Protocol, Role, at_level, level_title};

/// Appends the detailed sections.
pub(super) fn push(source: &Source<'_>, blocks: &mut Vec<Block>) {
    blocks.push(Block::Heading("Requests, median over each arm's sessions"));
    blocks.push(Block::Table(requests(source)));
    blocks.extend(levels(source));
    blocks.extend(bounds(source));
    blocks.push(Block::Heading("Sessions in the order they ran"));
    blocks.push(Block::Table(sessions(source)));
    blocks.push(Block::Text(
        "Own decode is the server's own figure in its own convention, not compared. Host columns are means over the \
         session. A burn-in session is recorded and not scored."
            .into(),
    ));
    blocks.extend(usage::sections(source));
    if !source.figures.comparisons().is_empty() {
        blocks.push(Block::Heading("Pairs of sessions"));
        blocks.push(Block::Table(pairs(source)));
        blocks.push(Block::Text(
            "Each pair is the median over requests of the same request's ratio in the two sessions. Drift is the \
             factor that running second in a pair would have given had nothing else differed; mirrored pairs cancel \
             it. The sign-flip p is over quartets; beside it stands the smallest that this many quartets can give."
                .into(),
        ));
    }
    blocks.push(Block::Heading("Identity"));
    blocks.push(Block::Table(identity(source)));
    blocks.push(Block::Heading("Methods"));
    blocks.push(Block::List(methods(source)));
    blocks.push(Block::Heading("Evidence"));
    if let Some(sha256) = &source.manifest_sha256 {
        blocks.push(Block::Text(format!(
            "sha256 of manifest.json: {sha256}. Check with: palindrome audit ARCHIVE"
        )));
    }
    let mut files = Table::new(&["File", "sha256"], 2);
    files.rows = source
        .files
        .iter()
        .map(|(name, sha256)| vec![name.clone(), sha256.clone()])
        .collect();
    blocks.push(Block::Table(files));
}

fn requests(source: &Source<'_>) -> Table {
    let figures = source.figures;
    let metrics: Vec<Metric> = [
        Metric::Ttft,
        Metric::Tpot,
        Metric::PromptRate,
        Metric::DecodeRate,
        Metric::ClientWall,
    ]
    .into_iter()
    .filter(|m| figures.metrics().contains(m))
    .collect();
    let mut table = Table::new(&["#", "Body", "Arm", "Tokens"], 3);
    table.head.extend(metrics.iter().map(|m| column(*m)));
    let leveled = figures.protocol().primary_level().is_some();
    if leveled {
        table.head.insert(2, "Level".into());
        table.left += 1;
    }
    let Some(first) = source
        .facts
        .sessions
        .iter()
        .find(|s| s.planned.role == Role::Scored)
    else {
        return table;
    };
    for r in first.requests.iter().filter(|r| r.scored) {
        let place = first.place(r.index);
        for arm in figures.arms() {
            let at =
                |metric: &str| bare(figures.get(&format!("arm/{arm}/request/{place:03}/{metric}")));
            let mut row = vec![
                place.to_string(),
                figures.protocol().without_arm(&r.body),
                arm.clone(),
                at("generated_tokens"),
            ];
            row.extend(metrics.iter().map(|m| at(m.key())));
            if leveled {
                let level = r.phase.as_deref().map(level_title);
                row.insert(2, level.unwrap_or_default());
            }
            table.rows.push(row);
        }
    }
    table
}

/// Every level with every arm; the level is absent where there are none.
fn level_arms(source: &Source<'_>) -> Vec<(Option<String>, String)> {
    let names = source.figures.protocol().places();
    let arms = source.figures.arms();
    let all = names.iter().flat_map(|name| {
        let row = move |arm: &String| (name.clone(), arm.clone());
        arms.iter().map(row)
    });
    all.collect()
}

/// What each arm's levels come to, beyond the compared metrics.
fn levels(source: &Source<'_>) -> Vec<Block> {
    let figures = source.figures;
    if figures.protocol().is_fresh() {
        return Vec::new();
    }
    let named = figures.protocol().primary_level().is_some();
    let tokens = ["Prompt tokens", "from a cache", "Generated"];
    let mut loads = Table::new(&["Level", "Arm"], 2);
    loads.head.extend(tokens.map(String::from));
    let mut more = vec!["prompt_tokens", "cached_tokens", "generated_tokens"];
    if named {
        loads
            .head
            .extend(["Requests/s", "In flight, mean"].map(String::from));
        more.extend(["requests_per_second", "in_flight"]);
    } else {
        loads.head.remove(0);
        loads.left = 1;
    }
    if matches!(
        figures.protocol(),
        Protocol::OpenLoop { .. } | Protocol::Arrivals { .. }
    ) {
        loads
            .head
            .extend(["Client late, median s", "most, s"].map(String::from));
        more.extend(["late", "late_most"]);
        if figures.protocol().limits().is_some() {
            loads.head.push("Within limits".into());
            more.push("good_share");
        }
    }
    let mut times = Table::new(&["Time", "Arm", "Median, s", "p90", "p95", "p99"], 2);
    for (name, arm) in level_arms(source) {
        let scope = at_level(&format!("arm/{arm}"), name.as_deref());
        let at = |metric: &str| bare(figures.get(&format!("{scope}/{metric}")));
        let title = name.as_deref().map(level_title).unwrap_or_default();
        let mut row = vec![title, arm.clone()];
        row.extend(more.iter().map(|metric| at(metric)));
        row.drain(..usize::from(!named));
        loads.rows.push(row);
        for (key, title) in [
            ("ttft", "Time to first token"),
            ("tpot", "Time per output token"),
            ("itl", "Between events with tokens"),
            ("client_wall", "Client wall"),
        ] {
            let ends = ["", "_p90", "_p95", "_p99"].map(|end| at(&format!("{key}{end}")));
            let title = leveled(title, name.as_deref());
            times
                .rows
                .push([vec![title, arm.clone()], ends.into()].concat());
        }
    }
    let note = "Percentiles are over all requests of an arm's scored sessions, and stand where enough requests bound them: \
                29 for p90, 59 for p95, 299 for p99. Requests of a session share its luck, so these describe what was \
                seen and have no interval.";
    vec![
        Block::Heading("Load and times, over all scored requests of an arm"),
        Block::Table(loads),
        Block::Table(times),
        Block::Text(note.into()),
    ]
}

/// Bounds of percentiles over sessions, where there are sessions for any.
fn bounds(source: &Source<'_>) -> Vec<Block> {
    let figures = source.figures;
    let heads = [
        "Worst request of a session",
        "Arm",
        "p90 below",
        "p95 below",
        "p99 below",
    ];
    let mut table = Table::new(&heads, 2);
    for (name, title) in WORST
        .into_iter()
        .zip(["Time to first token, s", "Client wall, s"])
    {
        for (level, arm) in level_arms(source) {
            let scope = at_level(&format!("arm/{arm}"), level.as_deref());
            let at = |p: u8| figures.get(&format!("{scope}/{name}_p{p}_bound"));
            if at(90).is_some_and(|f| f.value().is_some()) {
                let mut row = vec![leveled(title, level.as_deref()), arm];
                row.extend(PERCENTS.map(|p| bare(at(p))));
                table.rows.push(row);
            }
        }
    }
    if table.rows.is_empty() {
        return Vec::new();
    }
    let note = "Upper 95% bounds over sessions: 9 sessions in 10 keep all their requests below that of p90. They need 29 \
                sessions an arm for p90, 59 for p95, 299 for p99; a dash where there are fewer.";
    vec![Block::Table(table), Block::Text(note.into())]
}

/// A metric as the head of a column.
fn column(metric: Metric) -> String {
    match metric {
        Metric::DecodeRate => "Decode, tok/s",
        Metric::PromptRate => "Prompt, tok/s",
        Metric::Ttft => "TTFT, s",
        Metric::ClientWall => "Wall, s",
        Metric::CohortRate => "Cohort, tok/s",
        Metric::CohortWall => "Cohort wall, s",
        Metric::Throughput => "Throughput, tok/s",
        Metric::Tpot => "TPOT, s",
        Metric::Goodput => "Goodput, req/s",
    }
    .to_owned()
}

fn sessions(source: &Source<'_>) -> Table {
    let figures = source.figures;
    let metrics = figures.metrics();
    // Of several levels, the one that the study is about.
    let level = figures.protocol().primary_level();
    let mut table = Table::new(&["Session", "Role"], 2);
    let heads = metrics
        .iter()
        .map(|m| leveled(&column(*m), level.as_deref()));
    table.head.extend(heads);
    let others = [
        "Own decode, tok/s",
        "Ready, s",
        "RSS, MiB",
        "CPU, ms",
        "Major faults",
        "Host busy",
        "Load",
    ];
    table.head.extend(others.map(String::from));
    for session in &source.facts.sessions {
        let (name, scope) = (session.name(), session.scope());
        // What a half of a session does not have of its own is the whole one's.
        let find = |metric: &str| {
            let own = figures.get(&format!("{scope}/{metric}"));
            own.or_else(|| figures.get(&format!("session/{name}/{metric}")))
        };
        let at = |metric: &str| bare(find(metric));
        let own = [
            "engine_decode_rate_n",
            "engine_decode_rate_n_minus_1",
            "engine_decode_rate_as_stated",
        ]
        .iter()
        .find_map(|m| find(m));
        let role = match session.planned.role {
            Role::BurnIn => "burn-in",
            Role::Scored => "scored",
        };
        let half = session.half.as_ref().map(|half| format!(" {}", half.arm));
        let mut row = vec![format!("{name}{}", half.unwrap_or_default()), role.into()];
        let below = level.as_deref().map(|level| format!("{level}/"));
        let below = below.unwrap_or_default();
        row.extend(metrics.iter().map(|m| at(&format!("{below}{}", m.key()))));
        row.push(bare(own));
        row.extend(
            [
                "launch_to_ready",
                "peak_rss",
                "cpu",
                "major_faults",
                "host_cpu_busy",
                "host_load1",
            ]
            .map(at),
        );
        table.rows.push(row);
    }
    table
}

fn pairs(source: &Source<'_>) -> Table {
    let figures = source.figures;
    let mut table = Table::new(
        &[
            "Metric",
            "Ratio",
            "Pairs in order",
            "Estimate",
            "Drift",
            "Sign-flip p",
            "smallest p",
        ],
        3,
    );
    for c in figures.comparisons() {
        let at = |metric: &str| bare(figures.get(&format!("{}/{metric}", c.prefix)));
        let ratios: Vec<String> = c.pair_ratios(figures).map(|f| bare(Some(f))).collect();
        table.rows.push(vec![
            leveled(c.metric.title(), c.level.as_deref()),
            format!("{} / {}", c.other, c.base),
            ratios.join(", "),
            at("ratio"),
            at("drift"),
            at("sign_flip_p"),
            at("sign_flip_smallest_p"),
        ]);
    }
    table
}

fn identity(source: &Source<'_>) -> Table {
    let mut table = Table::new(
        &[
            "Across",
            "What",
            "Equal",
            "Requests compared",
            "Not shown",
            "Differ",
        ],
        3,
    );
    for i in source.figures.identity() {
        let across = match i.arms.as_slice() {
            [arm] => format!("the {} sessions of {arm}", i.sessions),
            arms => format!("arms {}", arms.join(", ")),
        };
        let equal = match i.equal() {
            Some(true) => "yes",
            Some(false) => "no",
            None => "not shown",
        };
        let differing: Vec<String> = i.differing.iter().map(ToString::to_string).collect();
        table.rows.push(vec![
            across,
            i.kind.title().into(),
            equal.into(),
            i.compared.to_string(),
            i.unseen.to_string(),
            if differing.is_empty() {
                "none".into()
            } else {
                differing.join(", ")
            },
        ]);
    }
    table
}

fn methods(source: &Source<'_>) -> Vec<String> {
    let plan = &source.facts.plan;
    let order: Vec<&str> = plan
        .sessions
        .iter()
        .filter(|s| s.role == Role::Scored)
        .map(|s| s.arm.as_str())
        .collect();
    let mut out = vec![
        format!("Order of scored sessions, fixed before the first started (seed {}): {}", plan.seed, order.join(" ")),
        "The unit is a session: one fresh server process. Requests inside a session are not independent and are never \
         counted as if they were."
            .into(),
        "All times are the client's monotonic clock, taken when bytes leave the socket's read.".into(),
        "Decode rate: tokens after those of the first event, over the time from first to last token; sums over sums, \
         never a mean of rates. Prompt rate: prompt tokens not taken from a cache, over the time to the first token. \
         Both are the client's convention, the same for every engine."
            .into(),
    ];
    let used: Vec<&str> = source
        .figures
        .all()
        .iter()
        .map(|f| f.formula().split('(').next().unwrap_or_default())
        .collect();
    for (name, words) in Formula::explained() {
        if used.contains(name) {
            out.push(format!("{name}: {words}"));
        }
    }
    out
}
