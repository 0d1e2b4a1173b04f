//! The cases, by what they are about. Each names its rule as `&rule::NAME`.

mod batch;
mod blob;
mod consent;
mod delivery;
mod hold;
mod hop;
mod inbox;
mod intent;
mod lookup;
mod party;
mod poll;
mod receipt;
mod receive;
mod refusal;
mod state;
mod who;

use super::Case;

/// All cases.
pub(super) const ALL: &[&[Case]] = &[
    receive::CASES,
    refusal::CASES,
    receipt::CASES,
    batch::CASES,
    intent::CASES,
    party::CASES,
    inbox::CASES,
    state::CASES,
    lookup::CASES,
    delivery::CASES,
    blob::CASES,
    who::CASES,
    hop::CASES,
    hold::CASES,
    consent::CASES,
    poll::CASES,
];

/// A case from its name, its rule, what it shows and the function that runs it.
macro_rules! case {
    ($id:literal, $rule:expr, $title:literal, $run:ident) => {
        $crate::relay::Case {
            id: $id,
            rule: $rule,
            title: $title,
            is_heavy: false,
            run: |probe| Box::pin($run(probe)),
        }
    };
    (heavy $id:literal, $rule:expr, $title:literal, $run:ident) => {
        $crate::relay::Case {
            is_heavy: true,
            ..case!($id, $rule, $title, $run)
        }
    };
}
use case;
