//! Figures of requests that a session had in flight together: one clock over all of them.

use super::book::Book;
use super::figure::{AnyFigure, Calculated, Fact, Figure, Measured, Unit};
use super::request::RequestFigures;
use super::worst::PERCENTS;
use super::{Formula, Metric};
use crate::archive::SessionFacts;
use crate::replay::RequestRecord;
use crate::study::{Level, Way};

/// One level of a session whose requests were in flight together.
pub(super) struct Group {
    pub(super) wall: Figure<Measured>,
    pub(super) tokens: Figure<Calculated>,
    rate: Figure<Calculated>,
    /// How many requests met the limits, and those a second; absent where there are no limits.
    good: Option<(Figure<Calculated>, Figure<Calculated>)>,
    /// How many requests, and how many were in flight on average; of levels alone.
    pub(super) load: Option<(Figure<Measured>, Figure<Calculated>)>,
}

impl Group {
    /// How many requests met the limits.
    pub(super) fn good(&self) -> Option<&dyn AnyFigure> {
        self.good.as_ref().map(|(count, _)| count as _)
    }

    /// The figure of a metric that a session has once.
    pub(super) fn metric(&self, metric: Metric) -> Option<&dyn AnyFigure> {
        match metric {
            Metric::CohortRate | Metric::Throughput => Some(&self.rate),
            Metric::CohortWall => Some(&self.wall),
            Metric::Goodput => self.good.as_ref().map(|(_, rate)| rate as _),
            Metric::DecodeRate
            | Metric::PromptRate
            | Metric::Ttft
            | Metric::Tpot
            | Metric::ClientWall => None,
        }
    }
}

/// A time of a request: the field's name and its value.
type Time = (&'static str, fn(&RequestRecord) -> Option<u64>);

const SENT: Time = ("sent_ns", |r| Some(r.sent_ns));
const FIRST_TOKEN: Time = ("first_token_ns", |r| r.first_token_ns);
const DUE: Time = ("due_ns", |r| r.due_ns);
const DONE: Time = ("done_ns", |r| Some(r.done_ns));

/// The records of a level, with a way to point at them.
struct Records<'a> {
    file: String,
    all: Vec<&'a RequestRecord>,
    /// Whether every request is there and none failed.
    whole: bool,
}

impl Records<'_> {
    /// The earliest or the latest of a time; absent if any request lacks it.
    fn edge(&self, (field, time): Time, latest: bool) -> Fact {
        let times = self.all.iter().map(|r| Some((time(r)?, r.index)));
        let times: Option<Vec<(u64, u32)>> = times.collect();
        let times = times.filter(|_| self.whole).unwrap_or_default();
        let edge = if latest {
            times.iter().max()
        } else {
            times.iter().min()
        };
        match edge {
            Some((ns, index)) => {
                Fact::new(&self.file, &format!("{index}/{field}"), Some(*ns as f64))
            }
            None => Fact::new(&self.file, &format!("*/{field}"), None),
        }
    }
}

/// Publishes the group of a session's level; absent where requests went one at a time.
pub(super) fn group(
    book: &mut Book,
    session: &SessionFacts,
    level: &Level,
    requests: &[&RequestFigures],
) -> Option<Group> {
    let records = session.requests.iter();
    let all: Vec<_> = records
        .filter(|r| level.indices.contains(&r.index))
        .collect();
    let records = Records {
        file: format!("sessions/{}/requests.jsonl", session.name()),
        whole: all.len() == level.indices.len() && all.iter().all(|r| r.error.is_none()),
        all,
    };
    let scope = level.scope(&format!("session/{}", session.name()));
    let (wall, tokens, rate) = match level.way {
        Way::OneByOne => return None,
        Way::Together => ("cohort_wall", "cohort_tokens", Metric::CohortRate),
        Way::Workers(_) | Way::Timed => ("level_wall", "level_tokens", Metric::Throughput),
    };
    let id = |name: &str| format!("{scope}/{name}");
    let first_sent = || records.edge(SENT, false);
    let mut between =
        |name: &str, from: Fact, to: Fact| book.add(Figure::interval(id(name), from, to));
    let begin = match level.way {
        Way::Timed => records.edge(DUE, false),
        _ => first_sent(),
    };
    let wall = between(wall, begin, records.edge(DONE, true));
    if level.way == Way::Together {
        between("cohort_send_spread", first_sent(), records.edge(SENT, true));
        let last = records.edge(FIRST_TOKEN, true);
        between("cohort_all_first_tokens", first_sent(), last);
    }
    let generated: Vec<&dyn AnyFigure> = requests.iter().map(|r| &r.generated as _).collect();
    let tokens = book.add(Figure::by(
        id(tokens),
        Unit::Tokens,
        &Formula::Sum,
        &generated,
    ));
    let rate = book.add(Figure::by(
        id(rate.key()),
        Unit::TokensPerSecond,
        &Formula::Quotient,
        &[&tokens, &wall],
    ));
    let load = (level.way != Way::Together).then(|| load(book, &scope, &records, requests, &wall));
    let good = good(book, &scope, requests, &wall);
    late(book, &scope, requests);
    Some(Group {
        wall,
        tokens,
        rate,
        good,
        load,
    })
}

/// How many requests met the limits, and those a second.
fn good(
    book: &mut Book,
    scope: &str,
    requests: &[&RequestFigures],
    wall: &Figure<Measured>,
) -> Option<(Figure<Calculated>, Figure<Calculated>)> {
    let within: Vec<&dyn AnyFigure> = requests
        .iter()
        .filter_map(|r| r.within.as_ref().map(|f| f as _))
        .collect();
    if within.is_empty() {
        return None;
    }
    let count = book.add(Figure::by(
        format!("{scope}/good_requests"),
        Unit::Count,
        &Formula::Sum,
        &within,
    ));
    let rate = book.add(Figure::by(
        format!("{scope}/{}", Metric::Goodput.key()),
        Metric::Goodput.unit(),
        &Formula::Quotient,
        &[&count, wall],
    ));
    Some((count, rate))
}

/// How late the client was to send: the median and the largest, where requests have their times.
pub(super) fn late(book: &mut Book, scope: &str, requests: &[&RequestFigures]) {
    let late: Vec<&dyn AnyFigure> = requests
        .iter()
        .filter_map(|r| r.late.as_ref().map(|f| f as _))
        .collect();
    if late.is_empty() {
        return;
    }
    for (name, formula) in [("late", Formula::Median), ("late_most", Formula::Largest)] {
        let id = format!("{scope}/{name}");
        book.add(Figure::by(id, Unit::Seconds, &formula, &late));
    }
}

/// What the client itself cost: the share of the time between tokens that its own threads were at
/// work, a stream on average, and, of requests in flight together, the processors that all of it took.
pub(super) fn client_cost(
    book: &mut Book,
    scope: &str,
    requests: &[&RequestFigures],
    wall: Option<&Figure<Measured>>,
) {
    let costs: Vec<&dyn AnyFigure> = requests
        .iter()
        .filter_map(|r| r.client_cpu.as_ref().map(|f| f as _))
        .collect();
    if costs.is_empty() || costs.len() < requests.len() {
        return;
    }
    let id = |name: &str| format!("{scope}/{name}");
    let streams = requests.iter().map(|r| &r.decode_seconds as &dyn AnyFigure);
    let inputs: Vec<&dyn AnyFigure> = costs.iter().copied().chain(streams).collect();
    book.add(Figure::by(
        id("client_cost_share"),
        Unit::Ratio,
        &Formula::SumOverSum,
        &inputs,
    ));
    if let Some(wall) = wall {
        let all = Figure::by(id("client_cpu"), Unit::Seconds, &Formula::Sum, &costs);
        let all = book.add(all);
        book.add(Figure::by(
            id("client_cores"),
            Unit::Count,
            &Formula::Quotient,
            &[&all, wall],
        ));
    }
}

/// Requests a second, and how many were in flight on average (their walls over the level's).
fn load(
    book: &mut Book,
    scope: &str,
    records: &Records<'_>,
    requests: &[&RequestFigures],
    wall: &Figure<Measured>,
) -> (Figure<Measured>, Figure<Calculated>) {
    let id = |name: &str| format!("{scope}/{name}");
    let answered = Fact::new(&records.file, "*/done_ns", None);
    let count = records.whole.then_some(records.all.len() as f64);
    let count = book.add(Figure::counted(
        id("level_requests"),
        Unit::Count,
        count,
        &[answered],
    ));
    book.add(Figure::by(
        id("requests_per_second"),
        Unit::RequestsPerSecond,
        &Formula::Quotient,
        &[&count, wall],
    ));
    let walls: Vec<&dyn AnyFigure> = requests.iter().map(|r| &r.wall as _).collect();
    let busy = book.add(Figure::by(
        id("client_wall_total"),
        Unit::Seconds,
        &Formula::Sum,
        &walls,
    ));
    let in_flight = book.add(Figure::by(
        id("in_flight"),
        Unit::Count,
        &Formula::Quotient,
        &[&busy, wall],
    ));
    (count, in_flight)
}

/// Publishes what an arm's levels come to: requests over seconds, and the median of how many were
/// in flight.
pub(super) fn loads(book: &mut Book, scope: &str, groups: &[&Group]) {
    let loads = || groups.iter().filter_map(|g| g.load.as_ref());
    if loads().next().is_none() {
        return;
    }
    let mut inputs: Vec<&dyn AnyFigure> = loads().map(|(count, _)| count as _).collect();
    inputs.extend(groups.iter().map(|g| &g.wall as &dyn AnyFigure));
    book.add(Figure::by(
        format!("{scope}/requests_per_second"),
        Unit::RequestsPerSecond,
        &Formula::SumOverSum,
        &inputs,
    ));
    let good: Vec<&dyn AnyFigure> = groups.iter().filter_map(|g| g.good()).collect();
    if !good.is_empty() {
        let counts = loads().map(|(count, _)| count as &dyn AnyFigure);
        let inputs: Vec<&dyn AnyFigure> = good.into_iter().chain(counts).collect();
        book.add(Figure::by(
            format!("{scope}/good_share"),
            Unit::Ratio,
            &Formula::SumOverSum,
            &inputs,
        ));
    }
    let inputs: Vec<&dyn AnyFigure> = loads().map(|(_, in_flight)| in_flight as _).collect();
    book.add(Figure::by(
        format!("{scope}/in_flight"),
        Unit::Count,
        &Formula::Median,
        &inputs,
    ));
}

/// Publishes percentiles of times of requests, and of the gaps between their events: those that
/// there are observations for have a value.
pub(super) fn percentiles(
    book: &mut Book,
    scope: &str,
    metrics: &[Metric],
    requests: &[&RequestFigures],
) {
    type Pick = fn(&RequestFigures) -> Option<&dyn AnyFigure>;
    let columns: [(&str, Pick); 3] = [
        ("ttft", |r| Some(&r.ttft)),
        ("tpot", |r| r.tpot.as_ref().map(|f| f as _)),
        ("client_wall", |r| Some(&r.wall)),
    ];
    for (name, pick) in columns {
        let inputs: Vec<&dyn AnyFigure> = requests.iter().filter_map(|r| pick(r)).collect();
        if !metrics.iter().any(|m| m.key() == name) {
            let id = format!("{scope}/{name}");
            book.add(Figure::by(id, Unit::Seconds, &Formula::Median, &inputs));
        }
        for percent in PERCENTS {
            book.add(Figure::by(
                format!("{scope}/{name}_p{percent}"),
                Unit::Seconds,
                &Formula::Percentile(percent),
                &inputs,
            ));
        }
    }
    let gaps: Vec<Fact> = requests.iter().flat_map(|r| r.gaps.clone()).collect();
    let with_gaps = requests.iter().filter(|r| !r.gaps.is_empty()).count();
    book.add(Figure::over_column(
        format!("{scope}/itl"),
        Unit::Seconds,
        &Formula::Median,
        &gaps,
    ));
    for percent in PERCENTS {
        book.add(Figure::over_column(
            format!("{scope}/itl_p{percent}"),
            Unit::Seconds,
            &Formula::PooledPercentile(percent, with_gaps),
            &gaps,
        ));
    }
}
