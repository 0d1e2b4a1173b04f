//! What a command gets on its standard input.

use crate::config::ExecInput;
use crate::delivery::Job;
use crosstalk_envelope::unicode::visible;
use crosstalk_envelope::{Document, Reading};
use crosstalk_protocol::relay::report::speaker;
use crosstalk_protocol::store::Record;
use crosstalk_protocol::{follow_up_prompt, program_prompt};

/// The input for a command.
pub(super) fn input(job: &Job, form: ExecInput) -> String {
    let record = &job.record;
    match (form, &job.follow_up) {
        (ExecInput::Envelope, _) => record.text.clone(),
        (ExecInput::Body, _) => {
            let body = Document::parse(&record.text, Reading::Strict).body_text();
            let mut body = visible(&body).into_owned();
            body.push('\n');
            body
        }
        (ExecInput::Prompt, Some(follow_up)) => follow_up_prompt(&job.to, follow_up),
        (ExecInput::Prompt, None) => {
            let sender = speaker(&record.sender, &record.text, 0).into_owned();
            let record = Record {
                sender,
                ..record.clone()
            };
            program_prompt(&job.to, &record)
        }
    }
}
