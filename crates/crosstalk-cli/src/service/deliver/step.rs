//! A person carries messages to chats, with a clipboard that holds one of them at a time.

use super::SentMessage;
use crate::console::{BOLD, Console, DIM, YELLOW, styled};
use crate::failure::Failure;
use crate::paragraph::wrap;
use crate::service::clipboard::{ClipboardError, Copied};
use crate::view::names;
use ::console::{Key, Term};
use crosstalk_envelope::unicode::escape;
use crosstalk_protocol::Assistant;

/// Steps through the chats: copies the message for one, and waits for a key before the next. The ids of the messages that were
/// not copied for any chat.
pub(super) fn walk(
    console: &mut Console,
    messages: &[(&SentMessage, &str)],
    copy: impl Fn(&str) -> Result<Copied, ClipboardError>,
) -> Result<Vec<String>, Failure> {
    let mut stops: Vec<(&SentMessage, &str, &str)> = Vec::new();
    for (sent, id) in messages {
        let chats = sent.signed.chats.iter();
        stops.extend(chats.map(|chat| (*sent, *id, chat.as_str())));
    }
    let all = stops.len();
    for (number, (sent, _, chat)) in (1..).zip(&stops) {
        let copied = match copy(&sent.pasted) {
            Ok(copied) => copied,
            Err(fault) => {
                tell_fault(console, &fault)?;
                let left = stops.get(number - 1..).unwrap_or_default();
                let uncopied = ids_of(left);
                let left: Vec<&SentMessage> = left.iter().map(|(sent, ..)| *sent).collect();
                tell_uncopied(console, &left)?;
                return Ok(uncopied);
            }
        };
        let sentence = sentence(copied, sent, &[(*chat).to_owned()]);
        let place = styled(BOLD, &format!("{number} of {all}"));
        console.talk(&format!("{place}: {sentence}"))?;
        let Some((.., next)) = stops.get(number) else {
            break;
        };
        let ask = format!("Enter copies the one for {}, q ends.\n", escape(next));
        console.talk(&styled(DIM, &ask))?;
        if !goes_on(console)? {
            let left = stops.get(number..).unwrap_or_default();
            tell_left(console, left)?;
            return Ok(ids_of(left));
        }
    }
    Ok(Vec::new())
}

/// The ids of messages that are still to be copied.
fn ids_of(left: &[(&SentMessage, &str, &str)]) -> Vec<String> {
    left.iter()
        .map(|(sent, ..)| sent.record.id.clone())
        .collect()
}

/// Whether the person asks for the next one: with a key, or with a line where the terminal gives no single keys.
fn goes_on(console: &mut Console) -> Result<bool, Failure> {
    let terminal = Term::stderr();
    loop {
        match terminal.read_key() {
            Ok(Key::Enter | Key::Char(' ')) => return Ok(true),
            // Control-D ends, as it does where lines are read.
            Ok(Key::Char('q' | 'Q' | END_OF_INPUT) | Key::Escape) => return Ok(false),
            Ok(Key::Unknown) | Err(_) => break,
            Ok(_) => {}
        }
    }
    let ask = styled(DIM, "Press Enter to go on, or q and Enter to end.\n");
    let line = console.ask(&ask)?;
    Ok(line.is_some_and(|line| !line.eq_ignore_ascii_case("q")))
}

/// The character of Control-D.
const END_OF_INPUT: char = '\u{4}';

/// Says how to copy what was not copied.
fn tell_left(console: &mut Console, left: &[(&SentMessage, &str, &str)]) -> Result<(), Failure> {
    for (sent, id, chat) in left {
        tell_later_one(console, sent, id, &escape(chat))?;
    }
    Ok(())
}

/// Says how to copy the messages that are not on the clipboard yet.
pub(super) fn tell_later(
    console: &mut Console,
    later: &[(&SentMessage, &str)],
) -> Result<(), Failure> {
    for (sent, id) in later {
        tell_later_one(console, sent, id, &names(&sent.signed.chats))?;
    }
    Ok(())
}

fn tell_later_one(
    console: &mut Console,
    sent: &SentMessage,
    id: &str,
    chats: &str,
) -> Result<(), Failure> {
    let primer = if sent.signed.has_primer {
        " --primer"
    } else {
        ""
    };
    console.talk(&format!(
        "`crosstalk show {id} --copy{primer}` copies the one for {chats}.\n"
    ))
}

/// Says whether the first message is on the clipboard, and where to paste it. Returns whether it is.
pub(super) fn tell_copied(
    console: &mut Console,
    messages: &[&SentMessage],
    copied: &Result<Copied, ClipboardError>,
) -> Result<bool, Failure> {
    match (copied, messages) {
        (Ok(copied), [first, ..]) => {
            console.talk(&sentence(*copied, first, &first.signed.chats))?;
            return Ok(true);
        }
        (Err(ClipboardError::Off) | Ok(_), _) => {}
        (Err(fault), _) => tell_fault(console, fault)?,
    }
    tell_uncopied(console, messages)?;
    Ok(false)
}

/// Says what to do with messages that are printed and not copied.
fn tell_uncopied(console: &mut Console, messages: &[&SentMessage]) -> Result<(), Failure> {
    let mut primed: Vec<String> = Vec::new();
    let mut reader = None;
    for sent in messages {
        let chats = &sent.signed.chats;
        if chats.len() > 1 {
            console.talk(&format!("Paste it to {}.\n", names(chats)))?;
        }
        if sent.signed.has_primer {
            let own = sent.signed.assistant();
            reader = Some(reader.map_or(own, |_| Assistant::Any));
            for chat in chats {
                if !primed.contains(chat) {
                    primed.push(chat.clone());
                }
            }
        }
    }
    let reader = match reader {
        None => return Ok(()),
        Some(Assistant::Any) => String::new(),
        Some(named) => format!(" --for {}", named.as_str()),
    };
    let hint = format!(
        "{} may not know the format yet: `crosstalk prompt{reader}` prints the primer, to paste in front.",
        names(&primed)
    );
    console.talk(&format!("{}\n", styled(DIM, &wrap(&hint, 0, 0))))
}

fn tell_fault(console: &mut Console, fault: &ClipboardError) -> Result<(), Failure> {
    let word = styled(YELLOW, "not copied");
    let why = Failure::from(fault.clone()).to_string();
    console.talk(&format!("{word}: {}\n", wrap(&why, 12, 0)))
}

/// Where a copied message is, and where it goes.
fn sentence(copied: Copied, sent: &SentMessage, chats: &[String]) -> String {
    let chats = names(chats);
    let primer = match sent.signed.has_primer {
        true => ", with the primer that teaches the format",
        false => "",
    };
    let text = match copied {
        Copied::System => format!("Copied to the clipboard{primer}: paste it to {chats}."),
        Copied::Terminal => {
            format!(
                "The terminal was asked to put it on your clipboard{primer}: paste it to {chats}."
            )
        }
    };
    format!("{}\n", wrap(&text, 0, 0))
}

/// Why one of several messages was not sent.
pub(super) fn not_sent(receiver: &str, fault: &Failure) -> String {
    let why = fault.to_string();
    let why = why.strip_prefix("nothing was sent: ").unwrap_or(&why);
    format!("nothing was sent to {receiver}: {why}")
}
