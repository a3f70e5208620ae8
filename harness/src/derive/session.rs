//! Figures of one session and of one arm.

use super::book::Book;
use super::energy::{SessionEnergy, arm_energy, session_energy};
use super::figure::{AnyFigure, Calculated, Fact, Figure, Measured, Unit};
use super::group::{Group, client_cost, group, late, loads, percentiles};
use super::request::{LimitFigures, RequestFigures, engine_decode_name, request_figures};
use super::{Formula, Metric};
use crate::archive::SessionFacts;
use crate::host::HostSample;
use crate::study::{ALONE, Level, Plan, PlannedSession, Protocol};

/// One session's figures, kept typed.
pub(super) struct SessionFigures<'a> {
    pub(super) planned: &'a PlannedSession,
    pub(super) requests: Vec<RequestFigures>,
    /// In the order of the plan's levels; absent where requests went one at a time.
    groups: Vec<Option<Group>>,
    process: Process,
    /// Absent in older archives, as all that is newer than them, and of a half of a session.
    energy: Option<SessionEnergy>,
    /// Whether its server was read back, which older archives do not know.
    read_back: bool,
    /// What ids of figures over its requests begin with.
    pub(super) scope: String,
    /// Its folder.
    folder: String,
}

/// Figures of a session's process: one, whichever arms used it.
#[derive(Clone)]
struct Process {
    ready: Figure<Measured>,
    peak_rss: Figure<Measured>,
    cpu: Figure<Calculated>,
}

impl SessionFigures<'_> {
    /// Scored requests.
    pub(super) fn scored(&self) -> impl Iterator<Item = &RequestFigures> {
        self.requests.iter().filter(|r| r.scored)
    }

    /// Requests replayed alone after a cohort.
    pub(super) fn alone(&self) -> impl Iterator<Item = &RequestFigures> {
        let alone = |r: &&RequestFigures| r.phase.as_deref() == Some(ALONE);
        self.requests.iter().filter(alone)
    }

    /// Scored requests of a level.
    pub(super) fn at(&self, level: &Level) -> impl Iterator<Item = &RequestFigures> {
        let indices = level.indices.clone();
        self.scored().filter(move |r| indices.contains(&r.index))
    }

    /// The figure of a metric that a session has once at the plan's nth level.
    pub(super) fn metric(&self, nth: usize, metric: Metric) -> Option<&dyn AnyFigure> {
        self.groups.get(nth)?.as_ref()?.metric(metric)
    }
}

type PickSession = for<'r> fn(&'r SessionFigures<'_>) -> &'r dyn AnyFigure;
type Pick = fn(&RequestFigures) -> &dyn AnyFigure;

/// Amounts first, then seconds: the inputs of a weighted rate.
fn halves<'a>(requests: &[&'a RequestFigures], amount: Pick, time: Pick) -> Vec<&'a dyn AnyFigure> {
    let mut inputs: Vec<&dyn AnyFigure> = Vec::with_capacity(requests.len() * 2);
    for pick in [amount, time] {
        for request in requests {
            inputs.push(pick(request));
        }
    }
    inputs
}

/// The compared metrics over all requests of a session or of an arm: sums over sums for rates,
/// medians for times.
pub(super) struct Totals(Vec<(Metric, Figure<Calculated>)>);

impl Totals {
    /// The figure of a compared metric.
    pub(super) fn metric(&self, metric: Metric) -> Option<&Figure<Calculated>> {
        let found = self.0.iter().find(|(m, _)| *m == metric);
        found.map(|(_, figure)| figure)
    }
}

/// Weighted rates, medians and sums over requests, the same for a session and for an arm.
fn summarise(
    book: &mut Book,
    scope: &str,
    protocol: &Protocol,
    requests: &[&RequestFigures],
) -> Totals {
    let id = |metric: &str| format!("{scope}/{metric}");
    let column = |pick: Pick| requests.iter().map(|r| pick(r)).collect::<Vec<_>>();
    let mut totals = Vec::new();
    for &metric in Metric::of(protocol) {
        let (formula, inputs) = match metric {
            Metric::DecodeRate => (
                Formula::SumOverSum,
                halves(requests, |r| &r.decode_tokens, |r| &r.decode_seconds),
            ),
            Metric::PromptRate => (
                Formula::SumOverSum,
                halves(requests, |r| &r.fresh_prompt_tokens, |r| &r.ttft),
            ),
            Metric::Ttft => (Formula::Median, column(|r| &r.ttft)),
            Metric::ClientWall => (Formula::Median, column(|r| &r.wall)),
            Metric::Tpot => {
                let all = requests.iter().filter_map(|r| r.metric(metric));
                (Formula::Median, all.collect())
            }
            // A session's own, published with its groups.
            Metric::CohortRate | Metric::CohortWall | Metric::Throughput | Metric::Goodput => {
                continue;
            }
        };
        let figure = Figure::by(id(metric.key()), metric.unit(), &formula, &inputs);
        totals.push((metric, book.add(figure)));
    }
    if protocol.is_sequential() {
        // Walls of requests in flight together overlap: their sum is no time.
        let wall = column(|r| &r.wall);
        book.add(Figure::by(
            id("client_wall_total"),
            Unit::Seconds,
            &Formula::Sum,
            &wall,
        ));
    }
    if !protocol.is_fresh() {
        percentiles(book, scope, Metric::of(protocol), requests);
        let picks: [(&str, Pick); 2] = [
            ("prompt_tokens", |r| &r.prompt),
            ("cached_tokens", |r| &r.cached),
        ];
        for (name, pick) in picks {
            let inputs = column(pick);
            book.add(Figure::by(id(name), Unit::Tokens, &Formula::Sum, &inputs));
        }
    }
    let generated = column(|r| &r.generated);
    book.add(Figure::by(
        id("generated_tokens"),
        Unit::Tokens,
        &Formula::Sum,
        &generated,
    ));
    Totals(totals)
}

/// What an arm's groups at the plan's nth level come to: sums over seconds, and the median wall.
fn summarise_groups(
    book: &mut Book,
    scope: &str,
    metrics: &[Metric],
    groups: &[&Group],
) -> Vec<(Metric, Figure<Calculated>)> {
    let walls = || groups.iter().map(|g| &g.wall as &dyn AnyFigure);
    let own = metrics.iter().filter(|m| m.of_session());
    own.map(|&metric| {
        let amounts: Vec<&dyn AnyFigure> = match metric {
            Metric::Goodput => groups.iter().filter_map(|g| g.good()).collect(),
            Metric::CohortRate | Metric::Throughput => {
                groups.iter().map(|g| &g.tokens as &dyn AnyFigure).collect()
            }
            _ => Vec::new(),
        };
        let formula = match metric {
            Metric::CohortWall => Formula::Median,
            _ => Formula::SumOverSum,
        };
        let inputs: Vec<&dyn AnyFigure> = amounts.into_iter().chain(walls()).collect();
        let id = format!("{scope}/{}", metric.key());
        let figure = Figure::by(id, metric.unit(), &formula, &inputs);
        (metric, book.add(figure))
    })
    .collect()
}

/// The server's own rates over a session or an arm: weighted, in its own convention.
fn summarise_engine(book: &mut Book, scope: &str, decode_name: &str, requests: &[&RequestFigures]) {
    let totals: [(&str, Pick, Pick); 2] = [
        (
            "engine_prompt",
            |r| &r.engine_prompt_tokens,
            |r| &r.engine_prompt_ms,
        ),
        (
            decode_name,
            |r| r.engine_decode_tokens.as_ref(),
            |r| &r.engine_decode_ms,
        ),
    ];
    for (name, amount, time) in totals {
        let stem = name
            .trim_start_matches("engine_")
            .split("_rate")
            .next()
            .unwrap_or(name);
        let column = |pick: Pick| requests.iter().map(|r| pick(r)).collect::<Vec<_>>();
        let tokens_id = format!("{scope}/engine_{stem}_tokens");
        let tokens = book.add(Figure::by(
            tokens_id,
            Unit::Tokens,
            &Formula::Sum,
            &column(amount),
        ));
        let ms_id = format!("{scope}/engine_{stem}_ms");
        let ms = book.add(Figure::by(
            ms_id,
            Unit::Milliseconds,
            &Formula::Sum,
            &column(time),
        ));
        let rate = if stem == "prompt" {
            "engine_prompt_rate"
        } else {
            name
        };
        let id = format!("{scope}/{rate}");
        book.add(Figure::by(
            id,
            Unit::TokensPerSecond,
            &Formula::PerMillisecond,
            &[&tokens, &ms],
        ));
    }
}

/// Publishes a session's figures; those of its process once, so not again where `before` is the other
/// half of the same session.
pub(super) fn session_figures<'a>(
    book: &mut Book,
    plan: &Plan,
    limits: Option<&LimitFigures>,
    session: &'a SessionFacts,
    before: Option<&SessionFigures<'_>>,
) -> SessionFigures<'a> {
    let scope = session.scope();
    let requests: Vec<RequestFigures> = session
        .requests
        .iter()
        .map(|r| request_figures(book, limits, session, r))
        .collect();
    let scored: Vec<&RequestFigures> = requests.iter().filter(|r| r.scored).collect();
    let mut groups = Vec::new();
    for level in plan.levels() {
        let here = scored.iter().filter(|r| level.indices.contains(&r.index));
        let here: Vec<&RequestFigures> = here.copied().collect();
        summarise(book, &level.scope(&scope), &plan.protocol, &here);
        let group = group(book, session, &level, &here);
        let wall = group.as_ref().map(|g| &g.wall);
        client_cost(book, &level.scope(&scope), &here, wall);
        groups.push(group);
    }
    summarise_engine(
        book,
        &scope,
        engine_decode_name(session.launch.kind),
        &scored,
    );
    let folder = session.name();
    let known = before.filter(|before| before.folder == folder);
    let process = known.map_or_else(|| process(book, session), |other| other.process.clone());
    // Energy is the machine's, so of neither half.
    let whole = session.half.is_none();
    let energy = whole.then(|| session_energy(book, session, &requests));
    let read_back = session.readback.is_some();
    if read_back {
        times(book, &scope, plan, &scored);
    }
    SessionFigures {
        planned: &session.planned,
        energy: energy.flatten(),
        read_back,
        requests,
        groups,
        process,
        scope,
        folder,
    }
}

/// Publishes the figures of a session's process and of the machine meanwhile.
fn process(book: &mut Book, session: &SessionFacts) -> Process {
    let name = session.name();
    let scope = format!("session/{name}");
    let launch = format!("sessions/{name}/launch.json");
    let end = format!("sessions/{name}/end.json");
    let id = |metric: &str| format!("{scope}/{metric}");
    let launched = Fact::new(
        &launch,
        "launched_ns",
        Some(session.launch.launched_ns as f64),
    );
    let is_ready = Fact::new(&launch, "ready_ns", Some(session.launch.ready_ns as f64));
    let ready = book.add(Figure::interval(id("launch_to_ready"), launched, is_ready));
    let usage = &session.end.stop.usage;
    let mut counter = |metric: &str, unit, field: &str, value: Option<u64>| {
        let fact = Fact::new(
            &end,
            &format!("stop/usage/{field}"),
            value.map(|v| v as f64),
        );
        book.add(Figure::reading(id(metric), unit, fact))
    };
    let peak_rss = counter(
        "peak_rss",
        Unit::Bytes,
        "peak_rss_bytes",
        usage.peak_rss_bytes,
    );
    counter(
        "major_faults",
        Unit::Count,
        "major_faults",
        usage.major_faults,
    );
    counter(
        "minor_faults",
        Unit::Count,
        "minor_faults",
        usage.minor_faults,
    );
    counter("read_bytes", Unit::Bytes, "read_bytes", usage.read_bytes);
    let user = counter("cpu_user", Unit::Milliseconds, "user_ms", usage.user_ms);
    let system = counter(
        "cpu_system",
        Unit::Milliseconds,
        "system_ms",
        usage.system_ms,
    );
    let cpu = book.add(Figure::by(
        id("cpu"),
        Unit::Milliseconds,
        &Formula::Sum,
        &[&user, &system],
    ));
    telemetry(book, &scope, &name, &session.samples);
    Process {
        ready,
        peak_rss,
        cpu,
    }
}

/// Publishes the times of answers beyond the compared ones: first byte and first content, and where
/// levels do not show them, percentiles of times of requests and of gaps between tokens.
fn times(book: &mut Book, scope: &str, plan: &Plan, requests: &[&RequestFigures]) {
    let picks: [(&str, Pick); 2] = [
        ("first_byte", |r| &r.first_byte),
        ("first_content", |r| &r.first_content),
    ];
    for (name, pick) in picks {
        let inputs: Vec<&dyn AnyFigure> = requests.iter().map(|r| pick(r)).collect();
        let id = format!("{scope}/{name}");
        book.add(Figure::by(id, Unit::Seconds, &Formula::Median, &inputs));
    }
    if plan.protocol.is_fresh() {
        percentiles(book, scope, Metric::of(&plan.protocol), requests);
    }
}

/// Means of the host's telemetry over a session.
fn telemetry(book: &mut Book, scope: &str, name: &str, samples: &[HostSample]) {
    type Column = fn(&HostSample) -> Option<f64>;
    let file = format!("sessions/{name}/host.jsonl");
    let columns: [(&str, &str, Unit, Column); 4] = [
        ("host_cpu_busy", "*/cpu_busy", Unit::Ratio, |s| s.cpu_busy),
        ("host_load1", "*/load1", Unit::Count, |s| s.load1),
        (
            "host_psi_cpu_percent",
            "*/psi_cpu_some10",
            Unit::Count,
            |s| s.psi_cpu_some10,
        ),
        ("host_cpu_mhz", "*/cpu_mhz", Unit::Count, |s| s.cpu_mhz),
    ];
    for (metric, field, unit, pick) in columns {
        let column: Vec<Fact> = samples
            .iter()
            .map(|s| Fact::new(&file, field, pick(s)))
            .collect();
        book.add(Figure::over_column(
            format!("{scope}/{metric}"),
            unit,
            &Formula::Mean,
            &column,
        ));
    }
}

/// Publishes an arm's figures over its scored sessions; hands back those of the compared metrics.
pub(super) fn arm_figures(
    book: &mut Book,
    plan: &Plan,
    arm: &str,
    kind_name: Option<&str>,
    sessions: &[&SessionFigures],
) -> Vec<Totals> {
    let scope = format!("arm/{arm}");
    let requests: Vec<&RequestFigures> = sessions.iter().flat_map(|s| s.scored()).collect();
    let protocol = &plan.protocol;
    let mut totals = Vec::new();
    for (nth, level) in plan.levels().iter().enumerate() {
        let scope = level.scope(&scope);
        let here: Vec<&RequestFigures> = sessions.iter().flat_map(|s| s.at(level)).collect();
        let mut all = summarise(book, &scope, protocol, &here);
        let groups = sessions.iter().filter_map(|s| s.groups.get(nth)?.as_ref());
        let groups: Vec<&Group> = groups.collect();
        let metrics = Metric::of(protocol);
        all.0
            .extend(summarise_groups(book, &scope, metrics, &groups));
        loads(book, &scope, &groups);
        late(book, &scope, &here);
        client_cost(book, &scope, &here, None);
        totals.push(all);
    }
    if let Some(decode_name) = kind_name {
        summarise_engine(book, &scope, decode_name, &requests);
    }
    let mut over = |metric: &str, unit, formula: &Formula, pick: PickSession| {
        let inputs: Vec<&dyn AnyFigure> = sessions.iter().map(|s| pick(s)).collect();
        book.add(Figure::by(
            format!("{scope}/{metric}"),
            unit,
            formula,
            &inputs,
        ));
    };
    // A process that both arms used is not one arm's.
    if !matches!(protocol, Protocol::Paired { .. }) {
        over("launch_to_ready", Unit::Seconds, &Formula::Median, |s| {
            &s.process.ready
        });
        over("peak_rss", Unit::Bytes, &Formula::Largest, |s| {
            &s.process.peak_rss
        });
        over("cpu", Unit::Milliseconds, &Formula::Median, |s| {
            &s.process.cpu
        });
        let energies: Vec<&SessionEnergy> =
            sessions.iter().filter_map(|s| s.energy.as_ref()).collect();
        if !energies.is_empty() {
            arm_energy(book, arm, &energies);
        }
    }
    if sessions.iter().any(|s| s.read_back) {
        times(book, &scope, plan, &requests);
    }
    let mut indices: Vec<u32> = requests.iter().map(|r| r.place).collect();
    indices.sort_unstable();
    indices.dedup();
    for index in indices {
        for metric in Metric::of(protocol).iter().filter(|m| !m.of_session()) {
            let inputs: Vec<&dyn AnyFigure> = requests
                .iter()
                .filter(|r| r.place == index)
                .filter_map(|r| r.metric(*metric))
                .collect();
            let id = format!("{scope}/request/{index:03}/{}", metric.key());
            book.add(Figure::by(id, metric.unit(), &Formula::Median, &inputs));
        }
        let generated: Vec<&dyn AnyFigure> = requests
            .iter()
            .filter(|r| r.place == index)
            .map(|r| &r.generated as &dyn AnyFigure)
            .collect();
        let id = format!("{scope}/request/{index:03}/generated_tokens");
        book.add(Figure::by(id, Unit::Tokens, &Formula::Median, &generated));
    }
    totals
}
