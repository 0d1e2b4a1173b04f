//! The rules of the intents (INT-010 to INT-018): errors where a relay reads, warnings in a paste.

use crate::document::Document;
use crate::envelope::Envelope;
use crate::grammar::CoreHeader;
use crate::registry::{Intent, Rule, rule};

impl Document<'_> {
    /// Checks the rules of the intent and adds what it finds to the diagnostics.
    ///
    /// ```
    /// use crosstalk_envelope::{Document, Reading};
    /// let text = "[[A→B v1]]\nuser: u\nsession: s\ncontext: c\nintent: REVOKE\nbody: |\n  x\nsig: none\n[[END]]";
    /// let mut document = Document::parse(text, Reading::Strict);
    /// assert!(document.is_accepted());
    /// document.check();
    /// assert_eq!(document.diagnostics()[0].rule.id, "INT-012");
    /// ```
    pub fn check(&mut self) {
        if !self.is_accepted() {
            return;
        }
        let Some((rule, message)) = fault(&self.envelope()) else {
            return;
        };
        let intent = self.parts().core(CoreHeader::Intent);
        let span = intent.map_or(0..0, |entry| entry.value.range());
        self.report_fault(rule, span, message);
    }
}

fn fault(envelope: &Envelope<'_>) -> Option<(&'static Rule, &'static str)> {
    let document = envelope.document();
    let is_empty = || document.body_lines().next().is_none();
    match envelope.meaning()? {
        meaning
            if meaning.needs_parent()
                && envelope.message.is_some()
                && envelope.parent.is_none() =>
        {
            Some((
                &rule::PARENT_MISSING,
                "the message answers another one, but names no parent",
            ))
        }
        Intent::Error if envelope.error().and_then(|e| e.code).is_none() => Some((
            &rule::ERROR_CODE_MISSING,
            "the ERROR has no `meta: error` with a known code",
        )),
        Intent::Revoke if !envelope.signature.is_some_and(|s| s.is_signed()) => {
            Some((&rule::REVOKE_UNSIGNED, "the REVOKE is not signed"))
        }
        Intent::Poll if envelope.routing().target_list().is_empty() => Some((
            &rule::POLL_WITHOUT_TARGETS,
            "the POLL has no Targets in `meta: routing`",
        )),
        Intent::Escalate if is_empty() && envelope.reason("escalation").is_none() => Some((
            &rule::ESCALATE_WITHOUT_REASON,
            "the ESCALATE gives no reason",
        )),
        Intent::Handoff if is_empty() && envelope.routing().capability_list().is_empty() => Some((
            &rule::HANDOFF_WITHOUT_REQUIREMENTS,
            "the HANDOFF does not say what is needed",
        )),
        _ => None,
    }
}
