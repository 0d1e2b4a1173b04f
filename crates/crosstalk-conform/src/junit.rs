//! Results as JUnit XML, for build servers: one suite, one test case for each case, the rule as its class.

use crosstalk_envelope::unicode::escape;
use std::fmt::Write as _;
use std::time::Duration;

/// How a case ended.
pub(crate) enum JunitOutcome {
    Passed,
    Skipped(String),
    Failed { message: String, details: String },
}

/// A case and how it ended.
pub(crate) struct JunitCase<'r> {
    pub(crate) rule: &'r str,
    pub(crate) name: String,
    pub(crate) time: Duration,
    pub(crate) outcome: JunitOutcome,
}

/// The document; `host` is what was tested.
pub(crate) fn junit(suite: &str, host: &str, time: Duration, cases: &[JunitCase<'_>]) -> String {
    let count = |is: fn(&JunitOutcome) -> bool| cases.iter().filter(|c| is(&c.outcome)).count();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let _ = writeln!(
        out,
        "<testsuites>\n<testsuite name=\"{}\" hostname=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\" \
         skipped=\"{}\" time=\"{:.3}\">",
        xml(suite),
        xml(host),
        cases.len(),
        count(|o| matches!(o, JunitOutcome::Failed { .. })),
        count(|o| matches!(o, JunitOutcome::Skipped(_))),
        time.as_secs_f64(),
    );
    for case in cases {
        let _ = write!(
            out,
            "<testcase classname=\"{}\" name=\"{}\" time=\"{:.3}\"",
            xml(case.rule),
            xml(&case.name),
            case.time.as_secs_f64()
        );
        let _ = match &case.outcome {
            JunitOutcome::Passed => writeln!(out, "/>"),
            JunitOutcome::Skipped(reason) => {
                writeln!(out, "><skipped message=\"{}\"/></testcase>", xml(reason))
            }
            JunitOutcome::Failed { message, details } => writeln!(
                out,
                "><failure type=\"{}\" message=\"{}\">{}</failure></testcase>",
                xml(case.rule),
                xml(message),
                xml(details)
            ),
        };
    }
    out.push_str("</testsuite>\n</testsuites>\n");
    out
}

/// A time in seconds, to the millisecond.
pub(crate) fn seconds(time: Duration) -> f64 {
    (time.as_secs_f64() * 1000.0).round() / 1000.0
}

/// Text for XML: what was tested may answer anything.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in escape(text).chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => out.push('?'),
            c => out.push(c),
        }
    }
    out
}
