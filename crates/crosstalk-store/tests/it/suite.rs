//! What every store has to do, whatever it is made of: one suite that each adapter runs.
//!
//! ```text
//! store_suite!(make);       fn make() -> impl Made: a new, empty store
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
use crosstalk_protocol::store::{Store, StoreOutcome, Wait};

/// Runs the suite: a test for each of its functions, with a store of its own.
macro_rules! store_suite {
    ($make:path) => {
        store_suite! { $make; filing:
            a_message_is_kept_with_all_that_is_known
            a_person_says_what_it_answers
            made_up_threads_of_answers_give_way_to_the_session
            made_up_parents_are_none
            a_message_belongs_to_the_thread_of_its_parent
            sessions_join_a_thread
            a_message_that_does_not_count_leads_no_session_away
            within_a_batch_later_messages_see_earlier_ones
            a_batch_has_an_outcome_for_each
            answers_that_came_first_join_their_message
            answers_that_came_first_bring_their_own_answers
            answers_stay_in_the_thread_that_they_name
            nobody_moves_answers_who_must_not
            what_nobody_signed_moves_nothing_that_is_verified
            a_thread_is_counted_and_dated
            parties_are_named_once_and_sixteen_at_most
            a_thread_with_many_parties_keeps_the_first
            ids_are_bytes
        }
        store_suite! { $make; moving:
            unknown_ids_mean_the_only_open_question
            several_open_questions_are_told
            ids_in_the_wrong_place_are_understood
            signed_ids_say_what_they_say
            an_answer_moves_and_moves_back
            what_answers_it_moves_along
            nothing_answers_itself
            a_moved_message_can_be_forgotten
            an_answer_to_the_copy_of_somebody_else_means_the_own_copy
            an_answer_without_a_known_intent_settles
            a_message_that_a_person_files_as_the_answer_is_the_answer
            a_message_that_comes_back_from_an_inbox_waits_for_me
            a_corrected_message_takes_the_place_of_the_one_before
            a_whole_message_takes_the_place_of_a_truncated_one
            only_its_sender_completes_a_truncated_message
            a_whole_message_without_an_id_takes_the_place_of_a_truncated_one
            the_same_words_with_the_ids_of_the_example_answer_the_next_question
            a_poll_waits_no_more_for_those_who_have_answered
            an_empty_answer_settles_nothing
        }
        store_suite! { $make; knowing:
            the_same_again_is_known
            another_content_under_an_id_is_refused
            a_copy_that_nobody_signed_is_in_nobodys_way
            answers_stay_with_the_id
            what_is_mine_keeps_its_id
            a_message_stays_under_an_id_of_its_own
            placeholders_are_no_ids
            more_is_known_when_the_signature_comes
            a_stripped_copy_does_not_replace_a_signed_one
            one_key_signs_one_message_under_an_id
            messages_without_an_id_are_known_by_their_content
        }
        store_suite! { $make; settling:
            a_request_waits_by_its_side
            an_answer_settles
            an_answer_that_came_first_settles
            what_must_not_be_acted_on_settles_nothing
            an_acknowledgement_settles_nothing
            a_poll_waits_for_all_whom_it_asks
            a_poll_to_me_waits_for_me_alone
            an_answer_without_a_parent_settles_the_only_one
            an_answer_without_a_parent_settles_none_of_two
            only_who_was_asked_settles
            an_answer_counts_when_its_verdict_does
            only_a_party_closes_a_thread
            a_message_of_mine_opens_a_thread_again
            a_close_settles_the_thread
            a_batch_settles_as_its_messages_would_one_by_one
            what_comes_after_a_close_waits
            a_better_verdict_takes_effect
            what_is_put_aside_stays_aside
            what_is_forgotten_settles_nothing_any_more
        }
        store_suite! { $make; finding:
            an_id_is_found_by_its_beginning
            a_beginning_of_thread_and_its_messages_means_the_thread
            several_are_at_most_ten
            short_beginnings_find_nothing
            lower_case_finds_capitals
            the_shortest_beginning_tells_neighbours_apart
            an_id_is_there_once
            threads_are_listed_latest_first
            threads_are_filtered
            pages_go_through_everything_once
            the_inbox_has_what_waits_here
            who_was_met_is_known
            what_is_forgotten_is_gone
            one_message_is_forgotten_alone
        }
        store_suite! { $make; searching:
            words_phrases_and_beginnings_are_found
            fields_are_searched_alone
            accents_case_and_scripts
            nothing_that_is_typed_is_an_operator
            the_latest_comes_first
            what_is_forgotten_is_not_found
            a_better_text_is_searched
        }
    };
    ($make:path; $module:ident: $($test:ident)*) => {
        mod $module {
            $(
                #[test]
                fn $test() {
                    let mut made = $make();
                    crate::suite::$module::$test(crate::suite::Made::store(&mut made));
                }
            )*
        }
    };
}

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

/// A store that was made for a test, with what it stands on.
pub(crate) trait Made {
    /// The store.
    fn store(&mut self) -> &mut dyn Store;
}

pub(crate) fn put(store: &mut dyn Store, letter: &Letter) -> StoreOutcome {
    let mut outcomes = store.accept(&[letter.arrival()]).unwrap();
    assert_eq!(outcomes.len(), 1);
    outcomes.remove(0)
}

/// Files a message and says where.
pub(crate) fn file(store: &mut dyn Store, letter: &Letter) -> String {
    match put(store, letter) {
        StoreOutcome::Filed { thread, .. } => thread,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn settled(store: &mut dyn Store, letter: &Letter) -> Option<String> {
    match put(store, letter) {
        StoreOutcome::Filed { settled, .. } => settled,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn wait(store: &dyn Store, id: &str) -> Wait {
    store.message(id).unwrap().unwrap().wait
}

pub(crate) fn thread_of(store: &dyn Store, id: &str) -> String {
    store.message(id).unwrap().unwrap().thread
}

pub(crate) fn ids(store: &dyn Store, thread: &str) -> Vec<String> {
    let listing = store.messages(thread, None, 1000).unwrap();
    listing.items.into_iter().map(|r| r.id).collect()
}
