//! Gathering ballots: one for each voter, the last in time (POL-013, POL-020 to POL-023).

use super::ballot::{Says, Slip, carried_key, holds};
use super::call::PollCall;
use super::choice::BallotChoice;
use super::collation::{Corrected, NotCounted, Why};
use super::electorate::{Voter, is_human};
use super::proof::Proofs;
use crate::store::{is_same_party, party};
use crate::verdict::VerdictWord;
use crosstalk_envelope::{PublicKey, Timestamp};
use std::collections::{BTreeMap, BTreeSet};

/// A ballot that counts.
pub(super) struct Ballot<'p> {
    /// Whose: the place among those who are invited.
    pub(super) voter: usize,
    pub(super) choice: BallotChoice,
    pub(super) slip: Slip<'p>,
    pub(super) corrected: Option<Corrected>,
}

/// The ballots that count, and the reasons why others do not.
pub(super) struct Gathered<'p> {
    /// In the order of the invited.
    pub(super) ballots: Vec<Ballot<'p>>,
    pub(super) not_counted: Vec<NotCounted>,
    /// Voters that declined in time, or whose answer can't be counted.
    pub(super) answered: BTreeSet<usize>,
    /// Voters that declined.
    pub(super) declined: BTreeSet<usize>,
    /// The latest time of what was looked at.
    pub(super) latest: Option<Timestamp>,
    /// How many answers were looked at.
    pub(super) answers: usize,
}

/// Sorts the answers out. `known` are the ids of all envelopes that were handed in.
pub(super) fn gather<'p>(
    call: &PollCall,
    slips: Vec<Slip<'p>>,
    known: &BTreeSet<&str>,
    at: Option<Timestamp>,
    proofs: &Proofs,
) -> Gathered<'p> {
    let mut slips = distinct(slips);
    slips.retain(|s| match (at, s.time()) {
        (Some(at), Some(time)) => time < at,
        _ => true,
    });
    learn_keys(&mut slips, call, proofs);
    // An answer to something else in the same conversation is none of ours.
    slips.retain(|s| !s.other_parent.as_deref().is_some_and(|p| known.contains(p)));
    let mut gathered = Gathered {
        ballots: Vec::new(),
        not_counted: Vec::new(),
        answered: BTreeSet::new(),
        declined: BTreeSet::new(),
        latest: slips.iter().filter_map(Slip::time).max(),
        answers: slips.len(),
    };
    let mut out = |slip: &Slip<'_>, why: Why, detail: &str| {
        gathered.not_counted.push(NotCounted::of(slip, why, detail));
    };
    let mut eligible: BTreeMap<usize, Vec<Slip<'p>>> = BTreeMap::new();
    let mut corrections = Vec::new();
    for slip in slips {
        let is_late = match (call.deadline, slip.time()) {
            (Some(deadline), Some(time)) => time >= deadline,
            _ => false,
        };
        if slip.is_bad() {
            out(
                &slip,
                Why::NotBelieved,
                "its signature does not hold, or it was changed after it was signed",
            );
        } else if matches!(slip.says, Says::Correction { .. }) {
            corrections.push(slip);
        } else {
            match slip.voter {
                Voter::Uninvited => out(
                    &slip,
                    Why::Uninvited,
                    "its sender is not among those who are asked",
                ),
                Voter::Unclear => {
                    out(
                        &slip,
                        Why::UnclearSender,
                        "its sender could be several of those who are asked",
                    );
                }
                _ if is_late => out(&slip, Why::Late, "it came after the deadline"),
                Voter::Exact(place) | Voter::Alike(place) => {
                    eligible.entry(place).or_default().push(slip);
                }
            }
        }
    }
    gathered.answered.extend(eligible.keys());
    let mut own: Vec<(usize, Vec<Slip<'p>>)> = Vec::new();
    for (place, slips) in eligible {
        own.push((place, own_ballots(slips, &mut gathered.not_counted)));
    }
    let corrections = Corrections::of(call, corrections, &own, &mut gathered.not_counted);
    for (place, slips) in own {
        decide(place, slips, &corrections, &mut gathered, call);
    }
    corrections.report(&mut gathered.not_counted);
    gathered.not_counted.sort();
    gathered
}

/// The same message is one message, however often and on whatever way it came: what is known best about it counts.
fn distinct(mut slips: Vec<Slip<'_>>) -> Vec<Slip<'_>> {
    let rank = |s: &Slip<'_>| match (s.is_bad(), holds(s.word)) {
        (true, _) => 2,
        (_, true) => 0,
        _ => 1,
    };
    slips.sort_by(|a, b| {
        let key = |s: &Slip<'_>| {
            (
                s.digest.0,
                rank(s),
                s.pkid.clone(),
                s.verdict.map(|w| w.as_str()),
            )
        };
        key(a).cmp(&key(b))
    });
    let mut kept: Vec<Slip<'_>> = Vec::with_capacity(slips.len());
    for slip in slips {
        match kept.last_mut().filter(|last| last.digest == slip.digest) {
            // The earliest hop is the one closest to the author.
            Some(last) => last.hop = [last.hop, slip.hop].into_iter().flatten().min(),
            None => kept.push(slip),
        }
    }
    kept
}

/// A key that came with one message of a sender counts for the others under the same key id.
fn learn_keys(slips: &mut [Slip<'_>], call: &PollCall, proofs: &Proofs) {
    let mut keys: BTreeMap<(String, String), Option<PublicKey>> = BTreeMap::new();
    if let (Some(pkid), Some(key)) = (&call.pkid, &call.key) {
        keys.insert((party(&call.initiator), pkid.clone()), Some(*key));
    }
    for slip in slips.iter() {
        let pkid = slip.pkid.clone().filter(|_| holds(slip.word));
        if let (Some(pkid), Some(key)) = (pkid, carried_key(slip.document)) {
            let name = (party(&slip.from), pkid);
            let entry = keys.entry(name).or_insert(Some(key));
            // Two keys under one id: nobody can tell which is right.
            if entry.as_ref().is_some_and(|k| *k != key) {
                *entry = None;
            }
        }
    }
    for slip in slips
        .iter_mut()
        .filter(|s| s.word == VerdictWord::UnknownKey)
    {
        let name = (party(&slip.from), slip.pkid.clone().unwrap_or_default());
        if let Some(Some(key)) = keys.get(&name) {
            slip.check(key, proofs);
        }
    }
}

/// Of what came in the name of one voter, what is that voter's own as far as anybody can tell.
fn own_ballots<'p>(mut slips: Vec<Slip<'p>>, not_counted: &mut Vec<NotCounted>) -> Vec<Slip<'p>> {
    let mut drop =
        |slips: &mut Vec<Slip<'p>>, why: Why, detail: &str, is_out: &dyn Fn(&Slip<'p>) -> bool| {
            slips.retain(|slip| {
                let out = is_out(slip);
                if out {
                    not_counted.push(NotCounted::of(slip, why, detail));
                }
                !out
            });
        };
    drop(
        &mut slips,
        Why::NotBelieved,
        "its signature does not fit the key that its sender used before",
        &Slip::is_bad,
    );
    let is_exact = |s: &Slip<'_>| matches!(s.voter, Voter::Exact(_));
    let names: BTreeSet<String> = slips.iter().map(|s| party(&s.from)).collect();
    if slips.iter().any(is_exact) {
        let detail = "another answer came under the very address that is asked";
        drop(&mut slips, Why::UnclearSender, detail, &|s| !is_exact(s));
    } else if names.len() > 1 {
        let detail = "answers came from several senders that could be the one who is asked";
        drop(&mut slips, Why::UnclearSender, detail, &|_| true);
    }
    // An unsigned message, which anyone could have written, never displaces a signed one.
    let mut signers: BTreeSet<String> = slips.iter().filter_map(Slip::signer).collect();
    if signers.len() > 1 {
        let vouched = |s: &&Slip<'_>| s.verdict == Some(VerdictWord::Verified);
        let believed = slips.iter().filter(vouched).filter_map(Slip::signer);
        let believed: BTreeSet<String> = believed.collect();
        if believed.len() == 1 {
            signers = believed;
        } else {
            let detail = "answers in this name are signed with several keys, and nobody said which one is right";
            drop(&mut slips, Why::SeveralKeys, detail, &|_| true);
        }
    }
    if signers.len() == 1 {
        let detail = "it is not signed with the key that signed another answer of this sender";
        drop(&mut slips, Why::Unsigned, detail, &|s| {
            !s.signer().is_some_and(|k| signers.contains(&k))
        });
    }
    let mut ids: BTreeMap<String, usize> = BTreeMap::new();
    for id in slips.iter().filter_map(|s| s.message.clone()) {
        *ids.entry(id).or_default() += 1;
    }
    let is_twice = |s: &Slip<'p>| {
        s.message
            .as_ref()
            .and_then(|id| ids.get(id))
            .is_some_and(|n| *n > 1)
    };
    drop(
        &mut slips,
        Why::SameId,
        "another answer with other content has the same id",
        &is_twice,
    );
    slips
}

/// The ballot of one voter: the last that can be read.
fn decide<'p>(
    place: usize,
    mut slips: Vec<Slip<'p>>,
    corrections: &Corrections<'p>,
    gathered: &mut Gathered<'p>,
    call: &PollCall,
) {
    slips.sort_by(|a, b| a.order().cmp(&b.order()));
    let mut counted: Option<Ballot<'p>> = None;
    for slip in slips {
        let correction = corrections.of_slip(&slip);
        let (choice, corrected) = match (&slip.says, correction) {
            (Says::Declines, _) => {
                gathered.declined.insert(place);
                let detail = "it says that there will be no ballot (NACK)";
                gathered
                    .not_counted
                    .push(NotCounted::of(&slip, Why::Declined, detail));
                continue;
            }
            (_, Some((choice, by))) => (choice.clone(), Some(by.as_corrected(&slip, call))),
            (_, None) if slip.other_parent.is_some() => {
                let parent = slip.other_parent.as_deref().unwrap_or_default();
                let detail =
                    format!("it answers {parent}, which is not the poll and is not known here");
                gathered
                    .not_counted
                    .push(NotCounted::of(&slip, Why::OtherParent, &detail));
                continue;
            }
            (Says::Unreadable(why), None) => {
                gathered
                    .not_counted
                    .push(NotCounted::of(&slip, Why::Unreadable, why));
                continue;
            }
            (Says::Vote(choice) | Says::Prose(choice), None) => (choice.clone(), None),
            (Says::Correction { .. }, None) => continue,
        };
        let ballot = Ballot {
            voter: place,
            choice,
            slip,
            corrected,
        };
        if let Some(before) = counted.replace(ballot) {
            let detail = "a later ballot of the same voter counts";
            gathered
                .not_counted
                .push(NotCounted::of(&before.slip, Why::Superseded, detail));
        }
    }
    gathered.ballots.extend(counted);
}

/// What people said about how answers are to be read.
struct Corrections<'p> {
    /// Those that may be made, in their order: the answer that each is about, what it says, the correction.
    valid: Vec<(crosstalk_envelope::meta::Digest, BallotChoice, Slip<'p>)>,
}

impl<'p> Corrections<'p> {
    fn of(
        call: &PollCall,
        mut slips: Vec<Slip<'p>>,
        own: &[(usize, Vec<Slip<'p>>)],
        not_counted: &mut Vec<NotCounted>,
    ) -> Self {
        slips.sort_by(|a, b| a.order().cmp(&b.order()));
        let mut valid = Vec::new();
        for slip in slips {
            match judged(call, &slip, own) {
                Ok((digest, choice)) => valid.push((digest, choice, slip)),
                Err(detail) => not_counted.push(NotCounted::of(&slip, Why::Correction, &detail)),
            }
        }
        Self { valid }
    }

    /// The last correction of an answer.
    fn of_slip(&self, slip: &Slip<'_>) -> Option<(&BallotChoice, &Slip<'p>)> {
        let mut of = self
            .valid
            .iter()
            .rev()
            .filter(|(digest, ..)| *digest == slip.digest);
        of.next().map(|(_, choice, by)| (choice, by))
    }

    /// Those that a later one replaces are listed.
    fn report(&self, not_counted: &mut Vec<NotCounted>) {
        for (place, (digest, _, slip)) in self.valid.iter().enumerate() {
            if self
                .valid
                .iter()
                .skip(place + 1)
                .any(|(later, ..)| later == digest)
            {
                let detail = "a later correction of the same answer counts";
                not_counted.push(NotCounted::of(slip, Why::Superseded, detail));
            }
        }
    }
}

/// Whether somebody may correct an answer: which one, and what it says then.
fn judged(
    call: &PollCall,
    slip: &Slip<'_>,
    own: &[(usize, Vec<Slip<'_>>)],
) -> Result<(crosstalk_envelope::meta::Digest, BallotChoice), String> {
    let Says::Correction {
        message,
        of,
        choice,
    } = &slip.says
    else {
        return Err("it is no correction".into());
    };
    let key = match (is_same_party(&slip.from, &call.initiator), slip.voter) {
        (true, _) => call.signer(),
        (_, Voter::Exact(place)) if is_human(&slip.from) => own
            .iter()
            .find(|(voter, _)| *voter == place)
            .and_then(|(_, slips)| slips.iter().find_map(Slip::signer)),
        _ => {
            return Err(
                "only who asks, or a person who is asked under a human:// address, corrects".into(),
            );
        }
    };
    if key.is_some() && slip.signer() != key {
        return Err("it is not signed with the key of whom it comes from".into());
    }
    let mut answers = own
        .iter()
        .flat_map(|(place, slips)| slips.iter().map(move |s| (*place, s)));
    let Some((place, answer)) = answers.find(|(_, s)| s.is_named(message)) else {
        return Err(format!("{message} is no answer that could count"));
    };
    let fits = of
        .as_ref()
        .is_none_or(|of| match call.electorate.voter(of) {
            Voter::Exact(named) | Voter::Alike(named) => named == place,
            _ => false,
        });
    if !fits {
        return Err(format!(
            "{message} is not an answer of whom it names in For"
        ));
    }
    match answer.says {
        Says::Vote(_) => return Err(format!("{message} says in meta: vote what it chooses")),
        Says::Declines => return Err(format!("{message} says that there will be no ballot")),
        _ => {}
    }
    let choice = choice
        .clone()
        .map_err(|why| format!("its choice can't be read: {why}"))?;
    Ok((answer.digest, choice))
}

impl Slip<'_> {
    fn as_corrected(&self, answer: &Slip<'_>, call: &PollCall) -> Corrected {
        let read = match &answer.says {
            Says::Prose(choice) => choice.to_text(call),
            _ => None,
        };
        Corrected {
            by: self.from.clone(),
            message: self.message.clone(),
            read_as: read,
        }
    }
}
