//! Chains: relays that share a store write a log each (AUD-060). The first chain of a store has the name of the relay as its
//! origin, each other one that name, `/` and its number.

use std::fmt;

/// The number of a chain in its store. That of the first one is 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChainId(pub u64);

impl ChainId {
    /// The first chain of a store, and the only one where one relay writes.
    pub const FIRST: Self = Self(0);

    /// The origin of its checkpoints at relays of a name.
    ///
    /// ```
    /// use crosstalk_protocol::audit::ChainId;
    /// assert_eq!(ChainId::FIRST.origin("relay.example"), "relay.example");
    /// assert_eq!(ChainId(2).origin("relay.example"), "relay.example/2");
    /// ```
    pub fn origin(self, relay: &str) -> String {
        match self {
            Self::FIRST => relay.to_owned(),
            Self(number) => format!("{relay}/{number}"),
        }
    }

    /// The number that a text is: without a sign, and without zeros in front.
    pub fn parse(text: &str) -> Option<Self> {
        let number: u64 = text.parse().ok()?;
        (number.to_string() == text).then_some(Self(number))
    }

    /// The relay and the chain that an origin names.
    ///
    /// ```
    /// use crosstalk_protocol::audit::ChainId;
    /// assert_eq!(ChainId::of_origin("relay.example"), ("relay.example", ChainId::FIRST));
    /// assert_eq!(ChainId::of_origin("relay.example/2"), ("relay.example", ChainId(2)));
    /// assert_eq!(ChainId::of_origin("relay.example/02"), ("relay.example/02", ChainId::FIRST));
    /// ```
    pub fn of_origin(origin: &str) -> (&str, Self) {
        let parts = origin.rsplit_once('/');
        let chain = parts.and_then(|(relay, number)| Some((relay, Self::parse(number)?)));
        match chain {
            Some((relay, chain)) if chain != Self::FIRST => (relay, chain),
            _ => (origin, Self::FIRST),
        }
    }
}

impl fmt::Display for ChainId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Where an entry is: in which chain, and at which index.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LogPlace {
    /// The chain.
    pub chain: ChainId,
    /// Its index there.
    pub index: u64,
}

impl LogPlace {
    /// A place in the first chain.
    pub const fn first(index: u64) -> Self {
        Self {
            chain: ChainId::FIRST,
            index,
        }
    }

    /// The place as hops and receipts of relays of a name write it (AUD-051): the origin of the chain, `#` and the index.
    pub fn at(self, relay: &str) -> String {
        format!("{}#{}", self.chain.origin(relay), self.index)
    }
}
