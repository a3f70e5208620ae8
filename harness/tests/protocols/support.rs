//! What every protocol's test needs.

use std::path::PathBuf;

use palindrome_harness::archive::{Archive, Facts};
use palindrome_harness::audit::audit;
use palindrome_harness::derive::{Figures, derive};
use palindrome_harness::study::Study;

use crate::common::Bench;

/// A study that was run, sealed, and holds.
pub struct Done {
    pub bench: Bench,
    pub path: PathBuf,
    pub facts: Facts,
    pub figures: Figures,
}

/// Runs a study to its seal and audits it.
pub fn done(head: &str, tail: &str, scripts: &[&str]) -> Done {
    let bench = Bench::new(head, tail, scripts);
    let writer = bench.run().unwrap();
    let facts = Archive::open(writer.path()).unwrap().facts().unwrap();
    let figures = derive(&facts);
    let path = writer.seal(&figures).unwrap();
    let found = audit(&path).unwrap();
    assert_eq!(found.mismatches, [], "{found}");
    Done {
        bench,
        path,
        facts,
        figures,
    }
}

/// The error of a study file with this `[protocol]` table and this line above all tables.
pub fn refused(head: &str, protocol: &str) -> String {
    let bench = Bench::new(
        head,
        &format!("[protocol]\n{protocol}\n"),
        &["[[reply]]\n", "[[reply]]\n"],
    );
    match Study::load(&bench.folder.path().join("study.toml")) {
        Ok(_) => panic!("{protocol:?} was accepted"),
        Err(error) => error.to_string(),
    }
}

impl Done {
    /// A figure's value.
    #[track_caller]
    pub fn value(&self, id: &str) -> f64 {
        let found = self.figures.get(id);
        found
            .unwrap_or_else(|| panic!("no figure {id}"))
            .value()
            .unwrap_or_else(|| panic!("{id} has no value"))
    }
}
