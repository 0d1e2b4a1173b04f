//! Moving a message that was filed with the wrong question.
//!
//! A move is knowledge of one store beside the message: what its sender wrote, and perhaps signed, stays as it is. What
//! answers the message goes along, so that a conversation is not torn apart.

use std::collections::BTreeSet;

/// A message of the thread that another one is moved out of, and what it answers here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Link<'l> {
    /// Its id.
    pub id: &'l str,
    /// The message that it answers.
    pub parent: Option<&'l str>,
}

/// Where a message is filed: its thread, and the message that it answers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Placement {
    /// The thread.
    pub thread: String,
    /// The message that it is taken to answer, else the one that its envelope says it answers.
    pub answers: Option<String>,
}

/// The changes of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Relocation {
    /// The message goes, and these with it, because they answer it: the ids, each after the one that it answers.
    Moves(Vec<String>),
    /// It is there already.
    Stays,
    /// It would answer itself, or something that answers it.
    AnswersItself,
}

/// Decides about a move. `thread` has all messages of the thread that the message is in now.
///
/// ```
/// use crosstalk_protocol::store::{Link, Placement, Relocation, plan_relocation};
/// let placement = |thread: &str, answers: &str| Placement { thread: thread.into(), answers: Some(answers.into()) };
/// let thread = [Link { id: "A1", parent: Some("M1") }, Link { id: "M2", parent: Some("A1") }];
/// let now = placement("T1", "M1");
/// assert_eq!(plan_relocation("A1", &thread, (&now, &placement("T2", "M9"))), Relocation::Moves(vec!["M2".into()]));
/// assert_eq!(plan_relocation("A1", &thread, (&now, &placement("T1", "M2"))), Relocation::AnswersItself);
/// assert_eq!(plan_relocation("A1", &thread, (&now, &now)), Relocation::Stays);
/// ```
pub fn plan_relocation(
    moved: &str,
    thread: &[Link<'_>],
    (now, then): (&Placement, &Placement),
) -> Relocation {
    if now == then {
        return Relocation::Stays;
    }
    let mut seen = BTreeSet::from([moved]);
    let mut along: Vec<&str> = Vec::new();
    let mut parents = vec![moved];
    while let Some(parent) = parents.pop() {
        let answers = thread.iter().filter(|l| l.parent == Some(parent));
        for answer in answers.filter(|l| l.id != parent) {
            if seen.insert(answer.id) {
                along.push(answer.id);
                parents.push(answer.id);
            }
        }
    }
    if then.answers.as_deref().is_some_and(|id| seen.contains(id)) {
        return Relocation::AnswersItself;
    }
    // Within one thread, what answers it stays below it by itself.
    if now.thread == then.thread {
        along.clear();
    }
    Relocation::Moves(along.into_iter().map(str::to_owned).collect())
}

/// The result of a move.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Moved {
    /// The message is filed elsewhere now.
    Done {
        /// The thread that it was in.
        from: String,
        /// Where it is now.
        to: Placement,
        /// How many messages went along, because they answer it.
        along: usize,
        /// The message that it settles now.
        settled: Option<String>,
        /// The message that waits again, because nothing else answers it.
        reopened: Option<String>,
    },
    /// It was there already.
    Stays,
    /// It would answer itself, or something that answers it. Nothing was changed.
    AnswersItself,
    /// One of the two messages is not here. Nothing was changed.
    Unknown,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_move_along_and_a_circle_ends() {
        let link = |id, parent| Link { id, parent };
        let thread = [
            link("Q", None),
            link("A", Some("Q")),
            link("B", Some("A")),
            link("C", Some("B")),
            link("D", Some("Q")),
            link("E", Some("E")),
            // A circle that somebody made up.
            link("A", Some("C")),
        ];
        let placement = |thread: &str, answers: &str| Placement {
            thread: thread.into(),
            answers: Some(answers.into()),
        };
        let now = placement("T1", "Q");
        let plan = |then: &Placement| plan_relocation("A", &thread, (&now, then));
        let along = Relocation::Moves(vec!["B".into(), "C".into()]);
        assert_eq!(plan(&placement("T2", "X")), along);
        assert_eq!(plan(&placement("T1", "D")), Relocation::Moves(vec![]));
        for itself in ["A", "B", "C"] {
            assert_eq!(plan(&placement("T1", itself)), Relocation::AnswersItself);
        }
    }
}
