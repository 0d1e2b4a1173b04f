//! A fault that tests have to see: the answer goes out before anything is written. Not in what people run:
//! only in builds for tests.

use super::writer::Answer;
use crosstalk_protocol::relay::{Admission, Taken};
use std::time::Duration;
use tokio::sync::oneshot;

/// How much earlier the answers are than what is written.
const HEAD_START: Duration = Duration::from_millis(50);

/// Answers for messages that are not on disk, if the environment wants it.
pub(super) fn answer_early(
    batch: &[Admission],
    answers: &mut Vec<oneshot::Sender<Answer>>,
    last: u64,
) {
    if std::env::var_os("CROSSTALK_TEST_DURABILITY").is_none_or(|fault| fault != "early") {
        return;
    }
    for ((admission, answer), seq) in batch.iter().zip(answers.drain(..)).zip(last + 1..) {
        let _ = answer.send(Answer {
            taken: Ok(Taken::New {
                seq,
                index: seq,
                ids: admission.arrival.ids(),
                withdrawn: None,
            }),
            admission: Box::new(admission.clone()),
        });
    }
    // Until the answers are out, also on a busy machine.
    std::thread::sleep(HEAD_START);
}
