//! What a store does: for a person (`filing` to `searching`, on SQLite alone), and for a relay, a suite that each adapter runs.
//!
//! ```text
//! relay_suite!(make);       fn make() -> Relay: a new, empty store of a relay, behind its port
//! shared_suite!(make);      the same for one that a person uses as well
//! ```

pub(crate) mod carrying;
pub(crate) mod consenting;
pub(crate) mod delivering;
pub(crate) mod filing;
pub(crate) mod finding;
pub(crate) mod holding;
pub(crate) mod keeping;
pub(crate) mod knowing;
pub(crate) mod logging;
pub(crate) mod moving;
pub(crate) mod relay;
pub(crate) mod ruling;
pub(crate) mod searching;
pub(crate) mod settling;
pub(crate) mod taking;

use crate::letter::Letter;
use crosstalk_protocol::store::{StoreOutcome, Wait};
use crosstalk_store::SqliteStore;

/// Runs the suite of what a relay asks of its store.
macro_rules! relay_suite {
    ($make:path) => {
        relay_suite! { $make; taking:
            accepted_message_is_there_before_it_is_indexed
            what_is_filed_is_what_would_have_been_accepted
            the_same_again_is_known
            ten_thousand_replays_are_one_message
            without_an_id_the_content_tells
            another_content_under_an_id_is_refused
            a_verified_one_takes_the_id
            nobody_takes_the_id_of_somebody_else
            a_better_verdict_is_kept
            within_a_batch_later_messages_see_earlier_ones
            ids_never_change_when_they_are_filed
        }
        relay_suite! { $make; ruling:
            nothing_comes_into_a_closed_thread
            nothing_comes_into_a_closed_session
            nobody_slips_in_by_the_parent
            what_is_known_stays_known_after_the_end
            only_a_party_closes
            nobody_closes_what_has_not_begun
            a_broadcast_takes_no_answers
            only_the_steward_hands_on
            who_got_it_instead_is_a_party
        }
        relay_suite! { $make; delivering:
            an_inbox_has_what_is_not_acknowledged
            an_inbox_is_read_page_by_page
            states_never_go_back
            what_is_not_filed_can_be_marked
            a_mark_is_for_one_recipient
            acknowledgements_and_refusals_change_the_state
            a_stranger_acknowledges_nothing
            every_target_has_a_delivery
            only_cursors_that_were_given_out_are_known
            messages_that_were_handed_out_are_delivered
            a_change_of_a_mailbox_is_one
        }
        relay_suite! { $make; carrying:
            the_most_urgent_goes_first
            what_is_leased_is_not_given_out
            what_is_given_back_is_given_out_again
            only_the_holder_of_a_lease_changes_a_delivery
            each_lease_has_a_time_of_its_own
            a_lease_is_looked_at_before_it_is_used
            notices_come_with_results_that_count
            attempts_are_counted
            a_delivery_that_is_over_is_not_attempted
            dead_letters_are_queued_again
            failures_of_a_recipient_are_counted
            notices_are_owed_until_they_are_said
            answers_are_carried_to_chats_that_asked_back
            an_inbox_that_was_read_is_known
            a_person_carries_the_most_urgent_first
            questions_expire_once
            an_answer_in_time_ends_the_wait
        }
        relay_suite! { $make; consenting:
            a_consent_is_on_record
            revocation_erases_everything_under_it
            revocation_enqueues_notices
            revoked_consent_stays_revoked
            a_revoke_that_waited_counts
        }
        relay_suite! { $make; holding:
            what_waits_is_nowhere_else
            what_is_approved_comes_last
            what_is_approved_says_so_in_the_inbox
            a_decision_is_made_once
            a_decision_is_about_this_text
            what_has_ended_is_not_approved
            a_refusal_is_told
            what_waits_is_known
            a_verified_one_takes_the_id_of_one_that_waits
            what_waits_does_nothing
            attachments_wait_with_their_message
        }
        relay_suite! { $make; keeping:
            tokens_are_kept_and_revoked
            what_agents_can_do_is_kept
            references_grant_access_to_what_their_sender_has
            attachments_stay_as_long_as_messages_refer_to_them
            what_is_too_old_is_erased
            expired_messages_are_erased
            what_is_erased_is_known
            erasing_goes_on_where_it_ended
        }
        relay_suite! { $make; logging:
            what_happens_to_messages_is_written_down
            a_better_text_is_an_entry_of_its_own
            texts_are_shown_until_their_end
            entries_are_found
            entries_of_a_thread_are_found_whatever_became_of_its_messages
            proofs_are_those_of_the_tree
            a_checkpoint_that_comes_late_replaces_none
            the_first_relay_writes_the_first_chain
            details_are_kept_beside
        }
    };
    ($make:path; $module:ident: $($test:ident)*) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    crate::suite::$module::$test(&mut $make());
                }
            )*
        }
    };
}

/// Runs the suite of a store that a relay and a person share.
macro_rules! shared_suite {
    ($make:path) => {
        relay_suite! { $make; taking: a_person_and_a_relay_share_a_store }
        relay_suite! { $make; ruling:
            a_thread_that_a_person_closed_is_closed
            a_broadcast_of_a_person_takes_no_answers
        }
        relay_suite! { $make; delivering: what_is_forgotten_is_in_no_inbox }
        relay_suite! { $make; consenting: a_person_keeps_by_the_same_record }
        relay_suite! { $make; holding: what_waits_too_long_is_erased }
        relay_suite! { $make; keeping: what_a_person_keeps_is_not_erased }
        relay_suite! { $make; logging: what_is_forgotten_stays_in_the_log }
    };
}

pub(crate) fn put(store: &mut SqliteStore, letter: &Letter) -> StoreOutcome {
    let mut outcomes = store.accept(&[letter.arrival()]).unwrap();
    assert_eq!(outcomes.len(), 1);
    outcomes.remove(0)
}

/// Files a message and says where.
pub(crate) fn file(store: &mut SqliteStore, letter: &Letter) -> String {
    match put(store, letter) {
        StoreOutcome::Filed { thread, .. } => thread,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn settled(store: &mut SqliteStore, letter: &Letter) -> Option<String> {
    match put(store, letter) {
        StoreOutcome::Filed { settled, .. } => settled,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn wait(store: &SqliteStore, id: &str) -> Wait {
    store.message(id).unwrap().unwrap().wait
}

pub(crate) fn thread_of(store: &SqliteStore, id: &str) -> String {
    store.message(id).unwrap().unwrap().thread
}

pub(crate) fn ids(store: &SqliteStore, thread: &str) -> Vec<String> {
    let listing = store.messages(thread, None, 1000).unwrap();
    listing.items.into_iter().map(|r| r.id).collect()
}
