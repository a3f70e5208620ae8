//! What is known of this machine from earlier studies: how much one server differs from itself.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::HostFacts;
use crate::archive::{replace_file, sha256_hex};
use crate::server::ServerKind;

/// Most A/A studies that are kept; older ones go.
const KEPT: usize = 20;

/// How much a metric differed between neighbouring sessions of one server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SpreadOf {
    /// The metric's name in `figures.json`.
    pub metric: String,
    /// Standard deviation of a pair's log-ratio.
    pub pair_deviation: f64,
}

/// One A/A study.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct AaRecord {
    /// When it started, UTC.
    pub utc: String,
    /// Its archive, as it lay then.
    pub archive: PathBuf,
    /// The server, for people.
    pub server: String,
    /// Its kind; absent in records of before this was kept.
    #[serde(default)]
    pub kind: Option<ServerKind>,
    /// Pairs of sessions.
    pub pairs: usize,
    /// Whether the machine had other work meanwhile, so that the spread is that of a busy machine.
    #[serde(default)]
    pub other_work: bool,
    /// By metric.
    pub spreads: Vec<SpreadOf>,
}

impl AaRecord {
    /// Whether it says something about the machine: a mock's spread is that of its script.
    fn is_of_a_server(&self) -> bool {
        self.kind != Some(ServerKind::Mock)
    }

    /// The pairs' deviation of a metric; absent where it was not measured.
    pub fn deviation(&self, metric: &str) -> Option<f64> {
        let found = self.spreads.iter().find(|s| s.metric == metric)?;
        Some(found.pair_deviation)
    }
}

/// The record of one machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct HostRecord {
    /// `major.minor`.
    pub schema: String,
    /// What the machine is recognised by.
    pub machine: Vec<(String, String)>,
    /// A/A studies, the newest last.
    pub aa: Vec<AaRecord>,
}

impl HostRecord {
    /// Where the record of a machine lies below the cache folder.
    pub fn place(cache: &Path, host: &HostFacts) -> PathBuf {
        let machine: Vec<String> = host
            .machine()
            .iter()
            .map(|(key, value)| format!("{key}={value}"))
            .collect();
        let hash = sha256_hex(machine.join("\n").as_bytes());
        cache.join("hosts").join(format!("{}.json", &hash[..16]))
    }

    /// Reads the record of this machine; an empty one where there is none.
    pub fn load(cache: &Path, host: &HostFacts) -> io::Result<Self> {
        let machine = host
            .machine()
            .into_iter()
            .map(|(key, value)| (key.to_owned(), value))
            .collect();
        match fs::read(Self::place(cache, host)) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(io::Error::other),
            Err(e) if e.kind() == io::ErrorKind::NotFound => Ok(Self {
                schema: "1.0".to_owned(),
                machine,
                aa: Vec::new(),
            }),
            Err(e) => Err(e),
        }
    }

    /// The newest A/A study of a server that measured a metric; mocks are none.
    pub fn newest(&self, metric: &str) -> Option<(&AaRecord, f64)> {
        let mut real = self.aa.iter().rev().filter(|aa| aa.is_of_a_server());
        real.find_map(|aa| Some((aa, aa.deviation(metric)?)))
    }

    /// The newest A/A study of a kind of server that measured a metric.
    pub fn newest_of(&self, metric: &str, kind: ServerKind) -> Option<(&AaRecord, f64)> {
        let mut same = self.aa.iter().rev().filter(|aa| aa.kind == Some(kind));
        same.find_map(|aa| Some((aa, aa.deviation(metric)?)))
    }

    /// The newest A/A study of each kind of server that measured a metric, mocks left out.
    pub fn newest_by_kind(&self, metric: &str) -> Vec<(&AaRecord, f64)> {
        let mut kinds = Vec::new();
        let real = self.aa.iter().rev().filter(|aa| aa.is_of_a_server());
        let newest = real.filter_map(|aa| {
            let deviation = aa.deviation(metric)?;
            let first = !kinds.contains(&aa.kind);
            kinds.push(aa.kind);
            first.then_some((aa, deviation))
        });
        newest.collect()
    }

    /// Adds an A/A study and writes the record, whole or not at all.
    pub fn add(&mut self, cache: &Path, host: &HostFacts, aa: AaRecord) -> io::Result<PathBuf> {
        self.aa.push(aa);
        let surplus = self.aa.len().saturating_sub(KEPT);
        self.aa.drain(..surplus);
        let place = Self::place(cache, host);
        let bytes = serde_json::to_vec_pretty(self).map_err(io::Error::other)?;
        replace_file(&place, &bytes)?;
        Ok(place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_study_of_a_metric_counts_and_another_machine_has_its_own() {
        let cache = tempfile::tempdir().unwrap();
        let host = |cpu: &str| HostFacts {
            cpu_model: Some(cpu.to_owned()),
            ..HostFacts::default()
        };
        let aa = |utc: &str, metric: &str, pair_deviation| AaRecord {
            utc: utc.to_owned(),
            archive: PathBuf::from("x"),
            server: "s".to_owned(),
            kind: None,
            pairs: 6,
            other_work: false,
            spreads: vec![SpreadOf {
                metric: metric.to_owned(),
                pair_deviation,
            }],
        };
        let this = host("this");
        let mut record = HostRecord::load(cache.path(), &this).unwrap();
        assert_eq!(record.newest("ttft"), None);
        for (utc, metric, deviation) in
            [("1", "ttft", 0.1), ("2", "ttft", 0.2), ("3", "other", 0.3)]
        {
            record
                .add(cache.path(), &this, aa(utc, metric, deviation))
                .unwrap();
        }
        let read = HostRecord::load(cache.path(), &this).unwrap();
        assert_eq!(read, record);
        let (newest, deviation) = read.newest("ttft").unwrap();
        assert_eq!((newest.utc.as_str(), deviation), ("2", 0.2));
        for i in 0..KEPT {
            record
                .add(cache.path(), &this, aa(&i.to_string(), "ttft", 0.1))
                .unwrap();
        }
        assert_eq!(record.aa.len(), KEPT);
        let other = HostRecord::load(cache.path(), &host("other")).unwrap();
        assert_eq!(other.aa, []);
    }

    #[test]
    fn kinds_of_servers_are_kept_apart_and_a_mock_says_nothing_of_the_machine() {
        let aa = |kind, pair_deviation| AaRecord {
            utc: String::new(),
            archive: PathBuf::new(),
            server: String::new(),
            kind,
            pairs: 6,
            other_work: false,
            spreads: vec![SpreadOf {
                metric: "ttft".to_owned(),
                pair_deviation,
            }],
        };
        let (engine, llama) = (ServerKind::PalindromeEngine, ServerKind::LlamaCpp);
        let record = HostRecord {
            schema: "1.0".to_owned(),
            machine: Vec::new(),
            aa: vec![
                aa(Some(engine), 0.1),
                aa(Some(llama), 0.2),
                aa(Some(engine), 0.3),
                aa(Some(ServerKind::Mock), 0.4),
            ],
        };
        let deviation = |found: Option<(&AaRecord, f64)>| found.map(|(_, d)| d);
        assert_eq!(deviation(record.newest("ttft")), Some(0.3));
        assert_eq!(deviation(record.newest_of("ttft", llama)), Some(0.2));
        assert_eq!(
            deviation(record.newest_of("ttft", ServerKind::Openai)),
            None
        );
        let mock = record.newest_of("ttft", ServerKind::Mock);
        assert_eq!(deviation(mock), Some(0.4));
        let all = record.newest_by_kind("ttft");
        assert_eq!(all.iter().map(|(_, d)| *d).collect::<Vec<_>>(), [0.3, 0.2]);
    }
}
