//! JUnit XML: a test case for each demand on each arm, and for each set of tokens declared equal.

use super::text::{passes, range, title};
use super::{Judgement, Outcome};
use crate::derive::Figures;
use crate::stats::Decision;

/// One test suite. Ends with a newline.
pub fn junit(judgement: &Judgement, figures: &Figures) -> String {
    let suite = format!("palindrome.{}", figures.study());
    let mut cases: Vec<String> = Vec::new();
    let (mut failures, mut errors) = (0, 0);
    let mut case = |name: &str, failed: Option<(&str, &str)>, said: &str| {
        let inside = match failed {
            None => String::new(),
            Some((kind, why)) => {
                let element = if kind == "error" { "error" } else { "failure" };
                if element == "error" {
                    errors += 1;
                } else {
                    failures += 1;
                }
                format!("<{element} type=\"{kind}\" message=\"{}\"/>", xml(why))
            }
        };
        cases.push(format!(
            "    <testcase classname=\"{}\" name=\"{}\">{inside}<system-out>{}</system-out></testcase>\n",
            xml(&suite),
            xml(name),
            xml(said)
        ));
    };
    for j in &judgement.rules {
        let why = j.why.as_deref().unwrap_or_default();
        let failed = match j.decision {
            Decision::Pass => None,
            Decision::Regression => Some(("regression", why)),
            Decision::Inconclusive => Some(("inconclusive", why)),
        };
        let said = format!(
            "ratio {}, {} {}, passes {}",
            j.ratio.map_or_else(|| "none".to_owned(), |r| r.to_string()),
            figures.interval_title(),
            range(j),
            passes(&j.rule)
        );
        case(&title(j), failed, &said);
    }
    for (what, held) in &judgement.identity {
        let failed =
            (!held).then_some(("identity", "they differ, and the study declares them equal"));
        case(&format!("tokens of {what}"), failed, "");
    }
    // What is no demand of the study file is a case of its own.
    match judgement.outcome {
        Outcome::NothingMeasured => {
            let why = judgement.reason.as_deref().unwrap_or_default();
            case("something was measured", Some(("error", why)), "");
        }
        Outcome::NoRules => {
            let why = "the study declares no margin and no [gate]";
            case("something is demanded", Some(("error", why)), "");
        }
        _ => {}
    }
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failures}\" \
         errors=\"{errors}\">\n{}  </testsuite>\n</testsuites>\n",
        xml(&suite),
        cases.len(),
        cases.concat()
    )
}

/// Text in an attribute or element; characters that XML 1.0 does not have are left out.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\r' | '\t' => out.push(' '),
            c if c < ' ' || matches!(c, '\u{fffe}' | '\u{ffff}') => {}
            c => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn markup_in_a_name_is_text() {
        assert_eq!(xml("a < b & \"c\"\u{1}\n"), "a &lt; b &amp; &quot;c&quot; ");
    }
}
