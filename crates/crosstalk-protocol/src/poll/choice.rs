//! Choices, in the forms of each type of poll (POL-010, POL-011).

use super::call::{PollCall, PollKind};
use crosstalk_envelope::meta;

/// The choice of a voter. Options are named by their position in the poll.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum BallotChoice {
    /// Nothing, and says so.
    Abstain,
    /// One option.
    One(usize),
    /// Some options, in the order of the poll.
    Some(Vec<usize>),
    /// Options from the best to the worst; those that are equal stand together. Those that are not named are last.
    Ranking(Vec<Vec<usize>>),
    /// Points for options, in the order of the poll.
    Points(Vec<(usize, u64)>),
    /// A text, where there are no options.
    Text(String),
}

impl BallotChoice {
    /// Reads the `Choice` of a ballot.
    ///
    /// # Errors
    /// Why it can't be read: a part of a sentence.
    pub fn parse(text: &str, call: &PollCall) -> Result<Self, String> {
        let text = text.trim();
        if text.is_empty() {
            return Err("it names no option".into());
        }
        if !call.has_options() {
            return Ok(Self::Text(text.to_owned()));
        }
        match call.kind {
            PollKind::Approval => {
                if let Some(place) = option(text, call) {
                    return Ok(Self::Some(vec![place]));
                }
                let mut places = meta::options(text)
                    .iter()
                    .map(|part| named(part, call))
                    .collect::<Result<Vec<usize>, String>>()?;
                places.sort_unstable();
                places.dedup();
                match places.is_empty() {
                    true => Err("it names no option".into()),
                    false => Ok(Self::Some(places)),
                }
            }
            PollKind::Ranked => ranking(text, call),
            PollKind::Score => points(text, call),
            _ => named(text, call).map(Self::One),
        }
    }

    /// The choice as a ballot writes it, with the options as the poll spells them; nothing for an abstention.
    pub fn to_text(&self, call: &PollCall) -> Option<String> {
        let name = |place: &usize| call.options.get(*place).map_or("", String::as_str);
        let names = |places: &[usize], mark: &str| {
            let names: Vec<&str> = places.iter().map(name).collect();
            names.join(mark)
        };
        match self {
            Self::Abstain => None,
            Self::One(place) => Some(name(place).to_owned()),
            Self::Some(places) => Some(names(places, " | ")),
            Self::Ranking(groups) => {
                let groups: Vec<String> = groups.iter().map(|g| names(g, " = ")).collect();
                Some(groups.join(" > "))
            }
            Self::Points(points) => {
                let points = points
                    .iter()
                    .map(|(place, n)| format!("{}={n}", name(place)));
                Some(points.collect::<Vec<String>>().join(" | "))
            }
            Self::Text(text) => Some(text.clone()),
        }
    }
}

/// The option that a text names: as it is spelled, else the only one in another case, with quotes around it or not.
pub(super) fn option(text: &str, call: &PollCall) -> Option<usize> {
    let find = |text: &str| {
        let exact = call.options.iter().position(|o| o == text);
        exact.or_else(|| {
            let lower = text.to_lowercase();
            let mut alike = call
                .options
                .iter()
                .enumerate()
                .filter(|(_, o)| o.to_lowercase() == lower);
            let first = alike.next().map(|(place, _)| place);
            first.filter(|_| alike.next().is_none())
        })
    };
    let text = text.trim();
    find(text).or_else(|| {
        let quotes = [('"', '"'), ('\'', '\''), ('`', '`'), ('“', '”')];
        let inner = |(open, close)| text.strip_prefix(open)?.strip_suffix(close);
        quotes
            .into_iter()
            .find_map(inner)
            .and_then(|t| find(t.trim()))
    })
}

fn named(text: &str, call: &PollCall) -> Result<usize, String> {
    option(text, call).ok_or_else(|| format!("`{}` is none of the options", text.trim()))
}

fn is_flow(text: &str) -> bool {
    text.starts_with('[')
}

fn ranking(text: &str, call: &PollCall) -> Result<BallotChoice, String> {
    let parts: Vec<String> = match is_flow(text) {
        true => meta::options(text).into_iter().map(Into::into).collect(),
        false => text.split('>').map(str::to_owned).collect(),
    };
    let mut groups = Vec::with_capacity(parts.len());
    let mut seen = Vec::new();
    for part in &parts {
        let mut group = match option(part, call) {
            Some(place) => vec![place],
            None => part
                .split('=')
                .map(|name| named(name, call))
                .collect::<Result<Vec<usize>, String>>()?,
        };
        group.sort_unstable();
        seen.extend_from_slice(&group);
        groups.push(group);
    }
    let count = seen.len();
    seen.sort_unstable();
    seen.dedup();
    match (groups.is_empty(), seen.len() == count) {
        (true, _) => Err("it names no option".into()),
        (_, false) => Err("it names an option twice".into()),
        _ => Ok(BallotChoice::Ranking(groups)),
    }
}

fn points(text: &str, call: &PollCall) -> Result<BallotChoice, String> {
    let (least, most) = call.range;
    let mut all: Vec<(usize, u64)> = Vec::new();
    for part in meta::options(text) {
        let Some((name, number)) = part.rsplit_once(['=', ':']) else {
            return Err(format!("`{part}` gives no points: write `{part}=N`"));
        };
        let place = named(name, call)?;
        let number = number.trim();
        let plain = !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit());
        let given = number
            .parse()
            .ok()
            .filter(|n| plain && (least..=most).contains(n));
        let Some(given) = given else {
            return Err(format!("`{number}` is no number from {least} to {most}"));
        };
        if all.iter().any(|(other, _)| *other == place) {
            return Err("it names an option twice".into());
        }
        all.push((place, given));
    }
    all.sort_unstable();
    match all.is_empty() {
        true => Err("it names no option".into()),
        false => Ok(BallotChoice::Points(all)),
    }
}
