//! What a gate demands: `margin`, and `[gate]` for more. Declared before the first session.

use std::fmt;
use std::ops::Range;

use serde::de::value::MapAccessDeserializer;
use serde::de::{MapAccess, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};
use toml::Spanned;

use super::StudyFile;
use crate::derive::Metric;

/// What counts as too much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Slower than the first arm: a lower rate, or a longer time.
    #[default]
    Slower,
    /// A change of either sign: for what should change nothing.
    Either,
}

/// One demand as it is written.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RuleFile {
    /// A metric of the protocol.
    pub metric: Spanned<Metric>,
    /// Largest change that passes, as a share (0.05 is 5%).
    pub margin: Spanned<f64>,
    /// Of which sign.
    #[serde(default)]
    pub direction: Direction,
    /// Which level of load, from 0, in protocols that have levels; the primary one if absent.
    #[serde(default)]
    pub level: Option<Spanned<usize>>,
}

/// `[gate]`, or `[[gate]]` for several.
#[derive(Clone, Debug, Default)]
pub struct RulesFile(pub Vec<RuleFile>);

impl<'de> Deserialize<'de> for RulesFile {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrMore)
    }
}

struct OneOrMore;

impl<'de> Visitor<'de> for OneOrMore {
    type Value = RulesFile;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a table `[gate]` with `metric` and `margin`, or several as `[[gate]]`")
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<RulesFile, A::Error> {
        let one = RuleFile::deserialize(MapAccessDeserializer::new(map))?;
        Ok(RulesFile(vec![one]))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<RulesFile, A::Error> {
        let mut rules = Vec::new();
        while let Some(rule) = seq.next_element()? {
            rules.push(rule);
        }
        Ok(RulesFile(rules))
    }
}

/// One demand: every arm but the first is held to it.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Rule {
    /// Of what.
    pub metric: Metric,
    /// At which level; absent where there are none.
    pub level: Option<String>,
    /// Largest change that passes, as a share.
    pub margin: f64,
    /// Of which sign.
    pub direction: Direction,
    /// Where it is declared, as a path in the study file: `margin`, `gate/0/margin`.
    pub declared: String,
}

impl Rule {
    fn is_about(&self, other: &Self) -> bool {
        (self.metric, &self.level, self.direction) == (other.metric, &other.level, other.direction)
    }
}

impl StudyFile {
    /// What the gate demands, or what is wrong with it and where.
    pub(super) fn resolve_rules(&self) -> Result<Vec<Rule>, (Range<usize>, String)> {
        let protocol = &self.protocol;
        let (primary, primary_level) = (self.primary, protocol.primary_level());
        let mut rules: Vec<Rule> = Vec::new();
        if let Some(margin) = &self.margin {
            rules.push(Rule {
                metric: primary,
                level: primary_level.clone(),
                margin: *margin.as_ref(),
                direction: Direction::Slower,
                declared: "margin".to_owned(),
            });
        }
        let metrics = Metric::of(protocol);
        let levels = protocol.levels();
        for (number, written) in self.gate.0.iter().enumerate() {
            let (metric, margin) = (*written.metric.as_ref(), *written.margin.as_ref());
            if !metrics.contains(&metric) {
                let known: Vec<&str> = metrics.iter().map(|m| m.key()).collect();
                let what = format!(
                    "metric = {:?} is not a metric of this protocol; give one of {}",
                    metric.key(),
                    known.join(", ")
                );
                return Err((written.metric.span(), what));
            }
            if !(margin > 0.0 && margin < 1.0) {
                let what = format!("margin = {margin} is no share; 0.05 means 5%");
                return Err((written.margin.span(), what));
            }
            let level = match &written.level {
                None => primary_level.clone(),
                Some(nth) => {
                    let Some(level) = levels.get(*nth.as_ref()) else {
                        let what = format!(
                            "level = {}: this protocol has {} levels, counted from 0",
                            nth.as_ref(),
                            levels.len()
                        );
                        return Err((nth.span(), what));
                    };
                    Some(level.clone())
                }
            };
            let rule = Rule {
                metric,
                level,
                margin,
                direction: written.direction,
                declared: format!("gate/{number}/margin"),
            };
            if let Some(twin) = rules.iter().find(|r| r.is_about(&rule)) {
                let what = format!(
                    "`{}` already limits {} in this direction: leave one of the two out",
                    twin.declared,
                    metric.key()
                );
                return Err((written.metric.span(), what));
            }
            rules.push(rule);
        }
        Ok(rules)
    }

    /// The demand on what the study is about, by which it is planned; absent where there is none.
    pub fn primary_rule(&self) -> Option<&Rule> {
        let (primary, level) = (self.primary, self.protocol.primary_level());
        let mut rules = self.rules.iter();
        rules.find(|r| r.metric == primary && r.level == level && r.direction == Direction::Slower)
    }
}
