//! The ways to compute the same logits, and how a user names them.

use std::fmt;

use serde::Serialize;

use crate::kernels::Isa;
use crate::model::{ActivationFormat, LoadOptions};

/// How the weights lie.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Arrangement {
    /// As in the GGUF file.
    Plain,
    /// In a store's tiles.
    Store,
    /// In a store's tiles with packed scales.
    PackedScales,
}

/// What is done to the cache before a prompt's last part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Prefix {
    /// Nothing: every prompt begins with an empty cache.
    Cold,
    /// The prompt goes on from a cache that was taken back, or copied, after other tokens.
    Cached,
}

/// One way to compute a model's logits.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Way {
    /// Worker threads.
    pub threads: usize,
    /// Name of the instruction-set level.
    pub isa: String,
    /// Prompt tokens in a pass.
    pub block: usize,
    /// Where a prompt begins.
    pub prefix: Prefix,
    /// Sequences in a pass, the one that is looked at included.
    pub company: usize,
    /// How the weights lie.
    pub layout: Arrangement,
}

/// A way that differs from the base way in what its name says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct NamedWay {
    /// `KEY=VALUE`, joined by `+`.
    pub name: String,
    /// The way.
    #[serde(flatten)]
    pub way: Way,
}

/// What a user wrote that names no way.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}; expected {expected}")]
pub struct WayError {
    /// What is wrong, and where.
    pub what: String,
    /// What would be right.
    pub expected: String,
}

/// The arrangements that there are files of.
pub type Layouts<'a> = &'a [Arrangement];

/// What `all` stands for: each choice alone, each kernel of each arrangement, and two mixtures.
const ALL: [&str; 9] = [
    "threads=1,2,3",
    "isa=all",
    "block=1,17,512,4096",
    "prefix=cached",
    "company=16",
    "layout=all",
    "isa=all+layout=all",
    "threads=3+block=17+prefix=cached+company=16",
    "threads=3+block=17+prefix=cached+company=16+layout=all",
];

/// The keys, for messages.
const KEYS: &str = "threads=N, isa=LEVEL, block=N, prefix=cold|cached, company=N, \
                    layout=plain|store|packed-scales, with commas between several values, `all` as the value of \
                    isa and layout, `+` between keys of one way; or `all`";

impl Way {
    /// The options that load a model for this way.
    pub fn options(&self, activations: ActivationFormat, ctx: usize) -> LoadOptions {
        LoadOptions {
            threads: Some(self.threads),
            ctx: Some(ctx),
            activations,
            isa: Some(self.isa.clone()),
            block: Some(self.block),
            ..LoadOptions::default()
        }
    }

    /// The way with one thing changed.
    fn with(&self, key: &str, value: &str) -> Result<Self, WayError> {
        let wrong = |expected: String| WayError {
            what: format!("`{key}={value}`"),
            expected,
        };
        let count = |most: usize| match value.parse() {
            Ok(n) if (1..=most).contains(&n) => Ok(n),
            _ => Err(wrong(format!("a number from 1 to {most}"))),
        };
        let mut way = self.clone();
        match (key, value) {
            ("threads", _) => way.threads = count(1024)?,
            ("block", _) => way.block = count(65536)?,
            ("company", _) => way.company = count(256)?,
            ("isa", _) => match Isa::by_name(value) {
                Some(isa) => isa.name().clone_into(&mut way.isa),
                None => return Err(wrong(format!("one of {}", isa_names().join(", ")))),
            },
            ("prefix", "cold") => way.prefix = Prefix::Cold,
            ("prefix", "cached") => way.prefix = Prefix::Cached,
            ("prefix", _) => return Err(wrong("cold or cached".to_owned())),
            ("layout", "plain") => way.layout = Arrangement::Plain,
            ("layout", "store") => way.layout = Arrangement::Store,
            ("layout", "packed-scales") => way.layout = Arrangement::PackedScales,
            ("layout", _) => return Err(wrong("plain, store or packed-scales".to_owned())),
            _ => return Err(wrong(KEYS.to_owned())),
        }
        Ok(way)
    }
}

impl fmt::Display for Arrangement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Plain => "plain",
            Self::Store => "store",
            Self::PackedScales => "packed-scales",
        })
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let prefix = match self.prefix {
            Prefix::Cold => "cold",
            Prefix::Cached => "cached",
        };
        write!(
            f,
            "threads={}+isa={}+block={}+prefix={prefix}+company={}+layout={}",
            self.threads, self.isa, self.block, self.company, self.layout
        )
    }
}

fn isa_names() -> Vec<&'static str> {
    Isa::available().into_iter().map(Isa::name).collect()
}

/// The ways that `texts` name, in order, each once, without those that are the base way. Each text
/// is `all` or `KEY=VALUE,...`, or several of these joined by `+`: then it stands for every
/// combination.
pub fn parse_ways(
    texts: &[&str],
    base: &Way,
    layouts: Layouts<'_>,
) -> Result<Vec<NamedWay>, WayError> {
    let mut ways: Vec<NamedWay> = Vec::new();
    for text in texts {
        let parts: &[&str] = if *text == "all" { &ALL } else { &[text] };
        for part in parts {
            for way in combinations(part, base, layouts)? {
                if way.way != *base && ways.iter().all(|other| other.way != way.way) {
                    ways.push(way);
                }
            }
        }
    }
    Ok(ways)
}

fn combinations(text: &str, base: &Way, layouts: Layouts<'_>) -> Result<Vec<NamedWay>, WayError> {
    let mut ways = vec![NamedWay {
        name: String::new(),
        way: base.clone(),
    }];
    for part in text.split('+') {
        let Some((key, values)) = part.split_once('=') else {
            return Err(WayError {
                what: format!("`{part}` names no way"),
                expected: KEYS.to_owned(),
            });
        };
        let values: Vec<String> = match (key, values) {
            ("isa", "all") => isa_names().iter().map(ToString::to_string).collect(),
            ("layout", "all") => {
                let others = layouts.iter().filter(|layout| **layout != base.layout);
                others.map(ToString::to_string).collect()
            }
            _ => values.split(',').map(str::to_owned).collect(),
        };
        let mut next = Vec::new();
        for NamedWay { name, way } in &ways {
            let name = if name.is_empty() {
                String::new()
            } else {
                format!("{name}+")
            };
            for value in &values {
                let way = way.with(key, value)?;
                if !layouts.contains(&way.layout) {
                    let there: Vec<String> = layouts.iter().map(ToString::to_string).collect();
                    return Err(WayError {
                        what: format!("`{key}={value}`: this model has no such layout here"),
                        expected: format!(
                            "one of {} (store needs a GGUF file as the model and no --no-store, \
                             packed-scales also MXFP4 weights)",
                            there.join(", ")
                        ),
                    });
                }
                next.push(NamedWay {
                    name: format!("{name}{key}={value}"),
                    way,
                });
            }
        }
        ways = next;
    }
    Ok(ways)
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOTH: Layouts<'static> = &[Arrangement::Plain, Arrangement::Store];

    fn base() -> Way {
        Way {
            threads: 2,
            isa: "scalar".to_owned(),
            block: 128,
            prefix: Prefix::Cold,
            company: 1,
            layout: Arrangement::Store,
        }
    }

    fn names(texts: &[&str]) -> Vec<String> {
        let ways = parse_ways(texts, &base(), BOTH).unwrap();
        ways.into_iter().map(|way| way.name).collect()
    }

    #[test]
    fn values_are_ways_and_plus_combines() {
        let found = names(&["threads=1,2,3", "block=17+prefix=cached", "company=16"]);
        let expected = [
            "threads=1",
            "threads=3",
            "block=17+prefix=cached",
            "company=16",
        ];
        assert_eq!(found, expected);
        let found = names(&["threads=1,3+block=1,17", "threads=3+block=1"]);
        let expected = [
            "threads=1+block=1",
            "threads=1+block=17",
            "threads=3+block=1",
            "threads=3+block=17",
        ];
        assert_eq!(found, expected);
        let ways = parse_ways(&["threads=3+block=17"], &base(), BOTH).unwrap();
        assert_eq!((ways[0].way.threads, ways[0].way.block), (3, 17));
        assert!(names(&[&base().to_string()]).is_empty());
    }

    #[test]
    fn all_names_every_choice_once() {
        let found = names(&["all"]);
        for name in [
            "threads=1",
            "block=4096",
            "prefix=cached",
            "company=16",
            "layout=plain",
            "threads=3+block=17+prefix=cached+company=16+layout=plain",
        ] {
            assert!(found.iter().any(|found| found == name), "{name}: {found:?}");
        }
        let mut distinct = found.clone();
        distinct.sort();
        distinct.dedup();
        assert_eq!(distinct.len(), found.len());
        let levels = Isa::available().len();
        // Of the levels, `scalar` alone is the base way, and `layout=plain` with it.
        assert_eq!(
            found.len(),
            2 + (levels - 1) + 4 + 1 + 1 + 1 + (levels - 1) + 2
        );
        let plain = Way {
            layout: Arrangement::Plain,
            ..base()
        };
        let found = parse_ways(&["all"], &plain, &[Arrangement::Plain]).unwrap();
        assert!(found.iter().all(|w| w.way.layout == Arrangement::Plain));
    }

    #[test]
    fn mistakes_are_told() {
        let told = |text: &str| parse_ways(&[text], &base(), BOTH).unwrap_err().to_string();
        assert_eq!(
            told("threads=0"),
            "`threads=0`; expected a number from 1 to 1024"
        );
        assert!(told("isa=abacus").starts_with("`isa=abacus`; expected one of scalar"));
        assert!(told("thread=1").starts_with("`thread=1`; expected threads=N"));
        assert!(told("cached").starts_with("`cached` names no way; expected threads=N"));
        assert!(told("threads=1+").starts_with("`` names no way"));
        let none = parse_ways(&["layout=plain"], &base(), &[Arrangement::Store]);
        assert!(
            none.unwrap_err()
                .to_string()
                .contains("one of store (store needs")
        );
    }
}
