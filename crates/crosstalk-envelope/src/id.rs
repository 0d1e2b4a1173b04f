//! Message and thread ids: ULID and UUIDv7 are made here, received ids are opaque text.
//!
//! Implements IDS-001 to IDS-003 and LNT-001.

use crate::time::Timestamp;
use std::sync::{Mutex, PoisonError};
#[cfg(not(all(target_arch = "wasm32", target_os = "unknown")))]
use std::time::{SystemTime, UNIX_EPOCH};
#[cfg(all(target_arch = "wasm32", target_os = "unknown"))]
use web_time::{SystemTime, UNIX_EPOCH};

/// The form of a received id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum IdForm {
    /// 26 characters of Crockford base32, with the time in front.
    Ulid,
    /// 36 characters, version 7, with the time in front.
    UuidV7,
    /// Anything else; kept as it is.
    Opaque,
}

impl IdForm {
    /// Which form a text has.
    ///
    /// ```
    /// use crosstalk_envelope::id::IdForm;
    /// assert_eq!(IdForm::of("01J9J3D3M6A4M3WQX8G1ZQ0S7K"), IdForm::Ulid);
    /// assert_eq!(IdForm::of("018c8e5a-3b2f-7890-abcd-ef1234567890"), IdForm::UuidV7);
    /// assert_eq!(IdForm::of("01J9J3D9C2V8M4..."), IdForm::Opaque);
    /// ```
    pub fn of(text: &str) -> Self {
        match text.len() {
            26 if is_ulid(text.as_bytes()) => Self::Ulid,
            36 if is_uuid_v7(text.as_bytes()) => Self::UuidV7,
            _ => Self::Opaque,
        }
    }
}

const CROCKFORD: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";

/// Which bytes are digits of Crockford base32.
const CROCKFORD_BYTES: [bool; 256] = {
    let mut table = [false; 256];
    let mut rest: &[u8] = CROCKFORD;
    while let [first, tail @ ..] = rest {
        if let Some((_, [entry, ..])) = table.split_at_mut_checked(*first as usize) {
            *entry = true;
        }
        rest = tail;
    }
    table
};

fn is_ulid(text: &[u8]) -> bool {
    let is_digit = |b: &u8| {
        CROCKFORD_BYTES
            .get(usize::from(*b))
            .copied()
            .unwrap_or(false)
    };
    text.first().is_some_and(|b| *b <= b'7') && text.iter().all(is_digit)
}

fn is_uuid_v7(text: &[u8]) -> bool {
    text.iter().enumerate().all(|(i, b)| match i {
        8 | 13 | 18 | 23 => *b == b'-',
        14 => *b == b'7',
        19 => matches!(b, b'8' | b'9' | b'a' | b'b'),
        _ => matches!(b, b'0'..=b'9' | b'a'..=b'f'),
    })
}

/// The time that a ULID or a UUIDv7 carries.
pub fn time_of(id: &str) -> Option<Timestamp> {
    let millis = match IdForm::of(id) {
        IdForm::Ulid => id.bytes().take(10).fold(0_i64, |value, byte| {
            let digit = CROCKFORD.iter().position(|c| *c == byte).unwrap_or(0);
            value * 32 + i64::try_from(digit).unwrap_or(0)
        }),
        IdForm::UuidV7 => {
            let hex: String = id
                .chars()
                .filter(char::is_ascii_hexdigit)
                .take(12)
                .collect();
            i64::from_str_radix(&hex, 16).ok()?
        }
        IdForm::Opaque => return None,
    };
    Some(Timestamp::from_millis(millis))
}

/// Makes ids that only grow, from a clock and randomness that the caller gives.
///
/// Within one millisecond each id is the one before plus a fresh random step, so ids can't be guessed
/// and never collide; when a millisecond is full, the next id waits for the next one. A clock that
/// jumps back changes nothing: ids go on from the latest time seen.
#[derive(Debug)]
pub struct IdSequence {
    /// Bits behind the time.
    bits: u32,
    millis: u64,
    tail: u128,
}

impl IdSequence {
    const fn new(bits: u32) -> Self {
        Self {
            bits,
            millis: 0,
            tail: 0,
        }
    }

    /// A sequence of ULIDs: 80 bits behind the time.
    pub const fn ulid() -> Self {
        Self::new(80)
    }

    /// A sequence of UUIDv7: 74 bits behind the time.
    pub const fn uuid_v7() -> Self {
        Self::new(74)
    }

    /// The next id, or nothing if this millisecond is full and the clock has to move on first.
    pub fn next(&mut self, now_millis: u64, random: u128) -> Option<String> {
        let now = now_millis & 0xffff_ffff_ffff;
        let limit = 1_u128 << self.bits;
        if now > self.millis {
            self.millis = now;
            self.tail = random & (limit - 1) & !(1 << (self.bits - 1));
        } else {
            let step = 1 + (random & ((1 << (self.bits - 8)) - 1));
            if self.tail + step < limit {
                self.tail += step;
            } else if now < self.millis {
                // The clock went back and the last millisecond is full: count on, do not wait for hours.
                self.millis += 1;
                self.tail = random & (limit - 1) & !(1 << (self.bits - 1));
            } else {
                return None;
            }
        }
        Some(if self.bits == 80 {
            ulid_text((u128::from(self.millis) << 80) | self.tail)
        } else {
            uuid_v7_text(self.millis, self.tail)
        })
    }
}

fn ulid_text(value: u128) -> String {
    (0..26)
        .rev()
        .map(|place| {
            let digit = usize::try_from((value >> (place * 5)) & 31).unwrap_or(0);
            char::from(CROCKFORD.get(digit).copied().unwrap_or(b'0'))
        })
        .collect()
}

/// The ULID of a time and a random part, of which the lowest 80 bits count.
///
/// ```
/// use crosstalk_envelope::id::{time_of, ulid_of};
/// assert_eq!(ulid_of(0, 1), "00000000000000000000000001");
/// assert_eq!(time_of(&ulid_of(1_759_996_800_000, 7)).unwrap().to_string(), "2025-10-09T08:00:00Z");
/// ```
pub fn ulid_of(millis: u64, tail: u128) -> String {
    let millis = u128::from(millis & 0xffff_ffff_ffff);
    ulid_text((millis << 80) | (tail & ((1 << 80) - 1)))
}

fn uuid_v7_text(millis: u64, tail: u128) -> String {
    let (high, low) = (tail >> 62, tail & ((1 << 62) - 1));
    let value = (u128::from(millis) << 80) | (7 << 76) | (high << 64) | (0b10 << 62) | low;
    let hex = format!("{value:032x}");
    let mut out = String::with_capacity(36);
    for (i, c) in hex.chars().enumerate() {
        if matches!(i, 8 | 12 | 16 | 20) {
            out.push('-');
        }
        out.push(c);
    }
    out
}

static ULIDS: Mutex<IdSequence> = Mutex::new(IdSequence::ulid());
static UUIDS: Mutex<IdSequence> = Mutex::new(IdSequence::uuid_v7());

/// A new ULID, larger than every one that this process made before.
///
/// ```
/// use crosstalk_envelope::id;
/// let (first, second) = (id::new_ulid(), id::new_ulid());
/// assert!(first < second);
/// ```
pub fn new_ulid() -> String {
    draw(&ULIDS)
}

/// A new UUIDv7, larger than every one that this process made before.
pub fn new_uuid_v7() -> String {
    draw(&UUIDS)
}

fn draw(sequence: &Mutex<IdSequence>) -> String {
    let mut sequence = sequence.lock().unwrap_or_else(PoisonError::into_inner);
    loop {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let millis = u64::try_from(now.as_millis()).unwrap_or(u64::MAX);
        if let Some(id) = sequence.next(millis, random()) {
            return id;
        }
        std::thread::yield_now();
    }
}

/// Randomness of the operating system; without it, the address space and the clock still differ per process.
fn random() -> u128 {
    let mut bytes = [0; 16];
    if getrandom::fill(&mut bytes).is_err() {
        use std::hash::{BuildHasher as _, RandomState};
        let high = RandomState::new().hash_one(SystemTime::now());
        return (u128::from(high) << 64) | u128::from(RandomState::new().hash_one(high));
    }
    u128::from_le_bytes(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_order_is_time_order_over_clock_jumps() {
        for mut sequence in [IdSequence::ulid(), IdSequence::uuid_v7()] {
            let mut last = String::new();
            let mut full = 0;
            for i in 0..200_000_u64 {
                let clock = match i {
                    0..=99_999 => 1_700_000_000_000 + i / 50,
                    // an hour back
                    _ => 1_699_996_400_000 + i / 50,
                };
                let mix = u128::from(i.wrapping_mul(0x9e37_79b9_7f4a_7c15));
                match sequence.next(clock, (mix << 64) | mix.rotate_left(17)) {
                    Some(id) => {
                        assert!(id > last, "{id} after {last}");
                        last = id;
                    }
                    None => full += 1,
                }
            }
            assert!(full < 100_000);
        }
    }

    #[test]
    fn a_full_millisecond_waits() {
        let mut sequence = IdSequence::ulid();
        let made = (0..10_000)
            .take_while(|_| sequence.next(5, u128::MAX).is_some())
            .count();
        assert!((100..1000).contains(&made), "{made}");
        assert!(sequence.next(6, 0).is_some());
    }

    #[test]
    fn made_ids_have_their_form_and_time() {
        assert_eq!(IdForm::of(&new_ulid()), IdForm::Ulid);
        assert_eq!(IdForm::of(&new_uuid_v7()), IdForm::UuidV7);
        let mut sequence = IdSequence::ulid();
        let id = sequence.next(1_760_025_600_000, 7).unwrap();
        assert_eq!(time_of(&id).unwrap().to_string(), "2025-10-09T16:00:00Z");
        let mut sequence = IdSequence::uuid_v7();
        let id = sequence.next(1_760_025_600_000, u128::MAX).unwrap();
        assert_eq!(time_of(&id).unwrap().to_string(), "2025-10-09T16:00:00Z");
        assert_eq!(IdForm::of(&id), IdForm::UuidV7);
    }

    #[test]
    fn the_drafts_own_examples_with_u_are_opaque() {
        assert_eq!(IdForm::of("01J9J3D9C2V8M4P1R6S8T9U0V1"), IdForm::Opaque);
        assert_eq!(IdForm::of("81J9J3D3M6A4M3WQX8G1ZQ0S7K"), IdForm::Opaque);
        assert_eq!(
            IdForm::of("018c8e5a-3b2f-4890-abcd-ef1234567890"),
            IdForm::Opaque
        );
    }
}
