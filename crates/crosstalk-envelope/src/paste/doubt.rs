//! Envelopes that a later `[[END]]` can still put in doubt.
//!
//! An envelope that stands deeper than the rest, or one that has no `sig:` before its `[[END]]`, may be part
//! of a message that has lost its beginning, or may have lost its own end. An `[[END]]` without beginning
//! tells so. Until the next message begins at column 0, such envelopes wait (SCN-003, SCN-006).

use super::find::{Each, RegionResult, inside_error};
use super::line::PasteLines;
use super::region::Region;
use std::collections::HashMap;

/// How many findings wait at most; a prefix that is longer is not compared.
const ROOM: usize = 256;

/// The outcomes that wait, in the order of the text.
pub(super) struct DoubtfulRegions<'e, 't> {
    outcomes: Vec<RegionResult>,
    /// For each prefix of an `[[END]]` without beginning, how many outcomes came before the last one.
    strays: HashMap<String, usize>,
    findings: usize,
    each: Each<'e>,
    lines: PasteLines<'t>,
}

impl<'e, 't> DoubtfulRegions<'e, 't> {
    pub(super) fn new(lines: PasteLines<'t>, each: Each<'e>) -> Self {
        Self {
            outcomes: Vec::new(),
            strays: HashMap::new(),
            findings: 0,
            each,
            lines,
        }
    }

    /// Takes the next outcome.
    pub(super) fn push(&mut self, outcome: RegionResult) {
        let waits = match &outcome {
            Ok(region) if region.frame.prefix().is_empty() => {
                self.settle();
                !region.signed_off || region.after_open_body
            }
            Ok(_) => true,
            Err(_) => !self.outcomes.is_empty(),
        };
        if !waits {
            (self.each)(outcome);
            return;
        }
        self.findings += usize::from(outcome.is_err());
        if outcome.is_ok() || self.findings <= ROOM {
            self.outcomes.push(outcome);
        }
    }

    /// An `[[END]]` without beginning, behind a prefix.
    pub(super) fn stray_end(&mut self, prefix: String) {
        if !self.outcomes.is_empty() {
            self.strays.insert(prefix, self.outcomes.len());
        }
    }

    /// Judges the ones that wait.
    pub(super) fn settle(&mut self) {
        for (index, outcome) in self.outcomes.drain(..).enumerate() {
            let outcome = match outcome {
                Ok(region) if is_inside(&region, index, &self.strays) => {
                    Err(vec![inside_error(&self.lines, region.span.start)].into())
                }
                Err(mut refusal) if !self.strays.is_empty() => {
                    refusal.cut = None;
                    Err(refusal)
                }
                other => other,
            };
            (self.each)(outcome);
        }
        self.strays.clear();
        self.findings = 0;
    }
}

/// Whether an `[[END]]` behind the envelope, at its prefix or at a shorter one, puts it in doubt.
fn is_inside(region: &Region, index: usize, strays: &HashMap<String, usize>) -> bool {
    let prefix = region.frame.prefix();
    if strays.is_empty() || prefix.len() > ROOM {
        return !strays.is_empty();
    }
    let is_behind = |end: &str| strays.get(end).is_some_and(|before| *before > index);
    let is_complete = region.signed_off && !region.after_open_body;
    (0..prefix.len())
        .filter_map(|length| prefix.get(..length))
        .any(is_behind)
        || (!is_complete && is_behind(prefix))
}
