//! Who gets a message, and how, in columns.

use crosstalk_envelope::registry::Intent;
use crosstalk_protocol::relay::{Admission, Handler, Priority, Recipient};
use crosstalk_protocol::store::{Arrival, is_same_party};

use crate::sqlite::derive::unknown;
use crate::sqlite::fault::Step;

/// Who gets a message; nothing where that is the receiver by its inbox.
pub(super) fn written(admission: &Admission) -> String {
    if let [one] = admission.recipients.as_slice()
        && one.by == Handler::Inbox
        && one.address == admission.arrival.receiver
    {
        return String::new();
    }
    lines(&admission.recipients)
}

/// The same, a line each, whoever it is.
pub(super) fn lines(recipients: &[Recipient]) -> String {
    let line = |r: &Recipient| format!("{} {}", r.by.as_str(), r.address);
    let lines: Vec<String> = recipients.iter().map(line).collect();
    lines.join("\n")
}

/// The addresses and handlers that were written.
pub(super) fn read<'r>(routes: &'r str, receiver: &'r str) -> Step<Vec<(&'r str, Handler)>> {
    if routes.is_empty() {
        return Ok(vec![(receiver, Handler::Inbox)]);
    }
    let one = |line: &'r str| {
        let (word, address) = line.split_once(' ').unwrap_or((line, ""));
        let handler = Handler::parse(word).ok_or_else(|| unknown("handler", word))?;
        Ok((address, handler))
    };
    routes.lines().map(one).collect()
}

/// Who got a message in place of its receiver takes part like one whom it names: may answer it, and is in its thread.
pub(in crate::sqlite) fn widen(arrival: &mut Arrival, routes: &str) {
    // Those have the recipients as targets, and wait for as many answers.
    if routes.is_empty() || matches!(arrival.meaning, Some(Intent::Poll | Intent::Broadcast)) {
        return;
    }
    for line in routes.lines() {
        let address = line.split_once(' ').map_or("", |(_, address)| address);
        let is_named = |named: &String| is_same_party(named, address);
        let is_known = is_named(&arrival.receiver) || arrival.targets.iter().any(is_named);
        if !address.is_empty() && !is_known {
            arrival.targets.push(address.to_owned());
        }
    }
}

/// The number of a handler in its column.
pub(super) fn handler_number(handler: Handler) -> i64 {
    place(&Handler::ALL, handler)
}

pub(super) fn handler_of(number: i64) -> Step<Handler> {
    at_place(&Handler::ALL, number).ok_or_else(|| unknown("handler", &number.to_string()))
}

/// The number of a priority in its column: the most urgent is 0.
pub(super) fn priority_number(priority: Priority) -> i64 {
    place(&Priority::ALL, priority)
}

/// The place of one among all.
pub(super) fn place<T: PartialEq>(all: &[T], one: T) -> i64 {
    let place = all.iter().position(|other| *other == one);
    place.and_then(|p| i64::try_from(p).ok()).unwrap_or(0)
}

pub(super) fn at_place<T: Copy>(all: &[T], number: i64) -> Option<T> {
    let place = usize::try_from(number).ok()?;
    all.get(place).copied()
}
