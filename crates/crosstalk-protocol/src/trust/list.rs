//! The keys of a trust store in the order in which they came, found by id, by key and by sender without a look at all of
//! them: a relay asks about every signed message, and may know thousands.

use super::{KnownKey, Origin};
use crosstalk_envelope::PublicKey;
use crosstalk_envelope::name::{NameLooks, name_key};
use std::collections::HashMap;
use std::ops::Deref;
use std::sync::{Arc, OnceLock};

/// The keys, and where they stand. Whatever changes a key through this list forgets the places, so that none is stale; they
/// are made again when they are asked for, and copies of a list share them.
#[derive(Clone, Debug, Default)]
pub(super) struct KeyList {
    keys: Vec<KnownKey>,
    places: OnceLock<Arc<Places>>,
    /// Apart, since a relay does not ask for them.
    looks: OnceLock<Arc<HashMap<String, SenderPlace>>>,
}

/// The place of a key, and of one of its senders.
type SenderPlace = (usize, usize);

#[derive(Clone, Debug, Default)]
struct Places {
    of_id: HashMap<String, Vec<usize>>,
    of_key: HashMap<PublicKey, Vec<usize>>,
    /// By the form in which the same senders are equal texts.
    of_sender: HashMap<String, Vec<usize>>,
}

impl Places {
    fn add(&mut self, place: usize, key: &KnownKey) {
        self.of_id.entry(key.id.clone()).or_default().push(place);
        self.of_key.entry(key.key).or_default().push(place);
        for sender in &key.senders {
            let places = self.of_sender.entry(name_key(sender)).or_default();
            if places.last() != Some(&place) {
                places.push(place);
            }
        }
    }
}

impl KeyList {
    /// Adds a key behind the others.
    pub(super) fn push(&mut self, key: KnownKey) {
        // Keys come one by one: the places of the others stay.
        if let Some(places) = self.places.get_mut() {
            Arc::make_mut(places).add(self.keys.len(), &key);
        }
        self.looks.take();
        self.keys.push(key);
    }

    /// The entry of a key under an id, to be changed.
    pub(super) fn entry_mut(&mut self, id: &str, key: &PublicKey) -> Option<&mut KnownKey> {
        let mut places = self.places().of_id.get(id)?.iter().copied();
        let place = places.find(|place| self.keys.get(*place).is_some_and(|k| k.key == *key))?;
        self.forget_places();
        self.keys.get_mut(place)
    }

    /// The keys, to be changed.
    pub(super) fn iter_mut(&mut self) -> impl Iterator<Item = &mut KnownKey> {
        self.forget_places();
        self.keys.iter_mut()
    }

    /// Keeps the keys that are to be kept.
    pub(super) fn retain(&mut self, is_kept: impl FnMut(&KnownKey) -> bool) {
        self.forget_places();
        self.keys.retain(is_kept);
    }

    fn forget_places(&mut self) {
        self.places.take();
        self.looks.take();
    }

    /// The keys of an id, in the order in which they came.
    pub(super) fn of_id(&self, id: &str) -> impl Iterator<Item = &KnownKey> {
        self.at(self.places().of_id.get(id))
    }

    /// The entries of a key, whatever their id.
    pub(super) fn of_key(&self, key: &PublicKey) -> impl Iterator<Item = &KnownKey> {
        self.at(self.places().of_key.get(key))
    }

    /// The keys that a sender is bound to.
    pub(super) fn of_sender(&self, sender: &str) -> impl Iterator<Item = &KnownKey> {
        self.at(self.places().of_sender.get(&name_key(sender)))
    }

    /// The first sender of a pinned key that looks like a name, and the id of that key. The name is none of these senders.
    pub(super) fn look_alike(&self, name: &str) -> Option<(&str, &str)> {
        let looks = self.looks.get_or_init(|| Arc::new(looks(&self.keys)));
        let forms = NameLooks::of(name);
        let places = forms.forms().iter().filter_map(|form| looks.get(form));
        let (key, sender) = places.min()?;
        let key = self.keys.get(*key)?;
        Some((key.senders.get(*sender)?, &key.id))
    }

    fn places(&self) -> &Places {
        self.places.get_or_init(|| {
            let mut places = Places::default();
            for (place, key) in self.keys.iter().enumerate() {
                places.add(place, key);
            }
            Arc::new(places)
        })
    }

    fn at(&self, places: Option<&Vec<usize>>) -> impl Iterator<Item = &KnownKey> {
        let places = places.map_or(&[][..], Vec::as_slice);
        places.iter().filter_map(|place| self.keys.get(*place))
    }
}

/// For each form that a sender of a pinned key looks like, the first one of them.
fn looks(keys: &[KnownKey]) -> HashMap<String, SenderPlace> {
    let mut looks = HashMap::new();
    let pins = keys.iter().enumerate();
    for (place, key) in pins.filter(|(_, k)| k.how != Origin::Revocation) {
        for (number, sender) in key.senders.iter().enumerate() {
            for form in NameLooks::of(sender).into_forms() {
                looks.entry(form).or_insert((place, number));
            }
        }
    }
    looks
}

impl Deref for KeyList {
    type Target = [KnownKey];

    fn deref(&self) -> &[KnownKey] {
        &self.keys
    }
}

impl PartialEq for KeyList {
    fn eq(&self, other: &Self) -> bool {
        self.keys == other.keys
    }
}

impl FromIterator<KnownKey> for KeyList {
    fn from_iter<I: IntoIterator<Item = KnownKey>>(keys: I) -> Self {
        Self {
            keys: keys.into_iter().collect(),
            ..Self::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trust::KeyStanding;
    use crosstalk_envelope::{Algorithm, PrivateKey, Timestamp};

    const IDS: [&str; 3] = ["a@x.example", "b@x.example", "c"];
    const SENDERS: [&str; 7] = [
        "ANN",
        "ann",
        "ANИ",
        "Straße",
        "STRASSE",
        "human://X.example/ann",
        "human://x.example/ANN",
    ];
    const NOW: Timestamp = Timestamp::from_millis(0);

    fn key(number: u8) -> PublicKey {
        let algorithm = Algorithm::ALL[usize::from(number) % 2];
        let key = PrivateKey::from_seed(algorithm, &[number + 1; 32]).unwrap();
        key.public()
    }

    fn known(number: usize) -> KnownKey {
        KnownKey {
            id: IDS[number % 3].to_owned(),
            key: key((number % 5) as u8),
            since: NOW,
            how: Origin::ALL[number % 4],
            by: None,
            senders: [number, number + 1, number / 2]
                .iter()
                .take(number % 4)
                .map(|n| SENDERS[n % 7].to_owned())
                .collect(),
            standing: KeyStanding::Active,
            credential: None,
        }
    }

    /// What a look at every key finds, and what the places say.
    fn compare(list: &KeyList) {
        let scan = |is_meant: &dyn Fn(&KnownKey) -> bool| -> Vec<&KnownKey> {
            list.iter().filter(|k| is_meant(k)).collect()
        };
        for id in IDS {
            assert_eq!(list.of_id(id).collect::<Vec<_>>(), scan(&|k| k.id == id));
        }
        for number in 0..5 {
            let key = key(number);
            let found: Vec<_> = list.of_key(&key).collect();
            assert_eq!(found, scan(&|k| k.key == key));
        }
        for name in SENDERS {
            let found: Vec<_> = list.of_sender(name).collect();
            assert_eq!(found, scan(&|k| k.binds(name)), "{name}");
        }
        let pins = || list.iter().filter(|k| k.how != Origin::Revocation);
        for name in ["ANN", "АNN", "AИИ", "5TRASSE", "straẞe", "BOB"] {
            if pins().any(|k| k.binds(name)) {
                continue;
            }
            let looks = NameLooks::of(name);
            let mut senders = pins().flat_map(|k| k.senders.iter().map(|s| (&**s, &*k.id)));
            let first = senders.find(|(sender, _)| looks.are_of(sender));
            assert_eq!(list.look_alike(name), first, "{name}");
        }
    }

    #[test]
    fn places_say_what_a_look_at_every_key_finds() {
        let mut list = KeyList::default();
        let (mut state, mut most) = (7_usize, 0);
        for step in 0..300 {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            let number = (state >> 33) % 1000;
            match number % 7 {
                0 => list.retain(|k| k.id != IDS[number % 3] || step % 4 > 0),
                1 => {
                    if let Some(known) = list.entry_mut(IDS[number % 3], &key((number % 5) as u8)) {
                        known.senders.push(SENDERS[number % 7].to_owned());
                    }
                }
                2 => list.iter_mut().take(1).for_each(|k| k.senders.clear()),
                _ => list.push(known(number)),
            }
            most = most.max(list.len());
            compare(&list);
            assert_eq!(list.clone(), list);
            compare(&list.clone());
        }
        assert!(most > 10, "{most}");
    }
}
