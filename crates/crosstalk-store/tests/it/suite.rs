//! What every store has to do, whatever it is made of: one suite that each adapter runs.
//!
//! ```text
//! store_suite!(make);       fn make() -> impl Made: a new, empty store
//! ```

pub(crate) mod filing;
pub(crate) mod finding;
pub(crate) mod knowing;
pub(crate) mod searching;
pub(crate) mod settling;

use crate::letter::Letter;
use crosstalk_protocol::store::{Outcome, Store, Wait};

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

/// A store that was made for a test, with what it stands on.
pub(crate) trait Made {
    /// The store.
    fn store(&mut self) -> &mut dyn Store;
}

pub(crate) fn put(store: &mut dyn Store, letter: &Letter) -> Outcome {
    let mut outcomes = store.accept(&[letter.arrival()]).unwrap();
    assert_eq!(outcomes.len(), 1);
    outcomes.remove(0)
}

/// Files a message and says where.
pub(crate) fn file(store: &mut dyn Store, letter: &Letter) -> String {
    match put(store, letter) {
        Outcome::Filed { thread, .. } => thread,
        other => panic!("{other:?}"),
    }
}

pub(crate) fn settled(store: &mut dyn Store, letter: &Letter) -> Option<String> {
    match put(store, letter) {
        Outcome::Filed { settled, .. } => settled,
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
