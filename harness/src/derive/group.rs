//! Figures of requests that a session had in flight together: one clock over all of them.

use super::Formula;
use super::book::Book;
use super::figure::{AnyFigure, Calculated, Fact, Figure, Measured, Unit};
use super::request::RequestFigures;
use crate::archive::SessionFacts;
use crate::replay::RequestRecord;
use crate::study::{Phase, Way};

/// One scored phase of a session whose requests were in flight together.
pub(super) struct Group {
    pub(super) wall: Figure<Measured>,
    pub(super) tokens: Figure<Calculated>,
    pub(super) rate: Figure<Calculated>,
}

/// A time of a request: the field's name and its value.
type Time = (&'static str, fn(&RequestRecord) -> Option<u64>);

const SENT: Time = ("sent_ns", |r| Some(r.sent_ns));
const FIRST_TOKEN: Time = ("first_token_ns", |r| r.first_token_ns);
const DONE: Time = ("done_ns", |r| Some(r.done_ns));

/// The records of a phase, with a way to point at them.
struct Records<'a> {
    file: String,
    all: &'a [RequestRecord],
    /// Whether every request is there and none failed.
    whole: bool,
}

impl Records<'_> {
    /// The earliest or the latest of a time; absent if any request lacks it.
    fn edge(&self, (field, time): Time, latest: bool) -> Fact {
        let times: Option<Vec<(u64, u32)>> =
            self.all.iter().map(|r| Some((time(r)?, r.index))).collect();
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

/// Publishes the groups of a session, in the order of its phases.
pub(super) fn groups(
    book: &mut Book,
    session: &SessionFacts,
    phases: &[Phase],
    requests: &[RequestFigures],
) -> Vec<Group> {
    let mut groups = Vec::new();
    let mut begin = 0;
    for phase in phases {
        let end = begin + phase.requests.len();
        let range = begin.min(session.requests.len())..end.min(session.requests.len());
        begin = end;
        if phase.scored && phase.way != Way::OneByOne {
            let all = &session.requests[range.clone()];
            let records = Records {
                file: format!("sessions/{}/requests.jsonl", session.name()),
                all,
                whole: all.len() == phase.requests.len() && all.iter().all(|r| r.error.is_none()),
            };
            let scope = format!("session/{}", session.name());
            groups.push(cohort(book, &scope, &records, &requests[range]));
        }
    }
    groups
}

fn cohort(
    book: &mut Book,
    scope: &str,
    records: &Records<'_>,
    requests: &[RequestFigures],
) -> Group {
    let mut between = |name: &str, from: Fact, to: Fact| {
        book.add(Figure::interval(format!("{scope}/{name}"), from, to))
    };
    let first_sent = || records.edge(SENT, false);
    let wall = between("cohort_wall", first_sent(), records.edge(DONE, true));
    between("cohort_send_spread", first_sent(), records.edge(SENT, true));
    between(
        "cohort_all_first_tokens",
        first_sent(),
        records.edge(FIRST_TOKEN, true),
    );
    let generated: Vec<&dyn AnyFigure> = requests
        .iter()
        .map(|r| &r.generated as &dyn AnyFigure)
        .collect();
    let tokens = book.add(Figure::by(
        format!("{scope}/cohort_tokens"),
        Unit::Tokens,
        &Formula::Sum,
        &generated,
    ));
    let rate = book.add(Figure::by(
        format!("{scope}/cohort_rate"),
        Unit::TokensPerSecond,
        &Formula::Quotient,
        &[&tokens, &wall],
    ));
    Group { wall, tokens, rate }
}

/// Publishes percentiles of the time to the first token and of client wall time: those that there
/// are observations for have a value.
pub(super) fn percentiles(book: &mut Book, scope: &str, requests: &[&RequestFigures]) {
    type Pick = fn(&RequestFigures) -> &dyn AnyFigure;
    let columns: [(&str, Pick); 2] = [("ttft", |r| &r.ttft), ("client_wall", |r| &r.wall)];
    for (name, pick) in columns {
        let inputs: Vec<&dyn AnyFigure> = requests.iter().map(|r| pick(r)).collect();
        for percent in [90, 95, 99] {
            book.add(Figure::by(
                format!("{scope}/{name}_p{percent}"),
                Unit::Seconds,
                &Formula::Percentile(percent),
                &inputs,
            ));
        }
    }
}
