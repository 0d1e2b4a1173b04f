//! `crosstalk` alone: the first steps, and what waits.

use crate::console::{BOLD, Console, DIM, styled};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::paragraph::count;
use crate::service::workspace::Workspace;
use crosstalk_protocol::store::{Listing, Page};

/// How many messages are counted at most.
const COUNTED: usize = 99;

/// The six commands of the first day, and what they do.
const FIRST: [(&str, &str); 6] = [
    (
        "crosstalk send chatgpt \"Your question\"",
        "write; it is on the clipboard",
    ),
    ("crosstalk paste", "keep the answer that you copied"),
    ("crosstalk show last", "read it again"),
    ("crosstalk reply", "answer a message that waits for you"),
    ("crosstalk inbox", "list the messages that wait for you"),
    ("crosstalk threads", "see your conversations"),
];

/// Where the rest is.
const MORE: [(&str, &str); 3] = [
    ("crosstalk --help", "all commands, by purpose"),
    ("crosstalk COMMAND --help", "one command, with examples"),
    ("crosstalk demo", "a story of a few seconds"),
];

/// The open work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct OpenWork {
    /// Whether anything is kept.
    has_messages: bool,
    /// How many messages wait for the person.
    waiting: usize,
    /// How many messages the person waits for.
    asked: usize,
}

/// Shows the first steps. It never fails for what is kept: then it says why.
pub(crate) fn run(console: &mut Console) -> Result<Exit, Failure> {
    let state = state(console);
    let shown = screen(state.as_ref().ok().copied().unwrap_or_default());
    console.show(&shown)?;
    if let Err(fault) = state {
        console.flush()?;
        console.warning(&fault.to_string())?;
    }
    Ok(Exit::SUCCESS)
}

fn state(console: &mut Console) -> Result<OpenWork, Failure> {
    let workspace = Workspace::open(console)?;
    let Some(store) = workspace.messages(console)? else {
        return Ok(OpenWork::default());
    };
    Ok(OpenWork {
        has_messages: true,
        waiting: number(&store.inbox(Page::first(COUNTED))?),
        asked: number(&store.asked(Page::first(COUNTED))?),
    })
}

/// How many there are; one more than are counted stands for all that are more.
fn number<T>(listing: &Listing<T>) -> usize {
    listing.items.len() + usize::from(listing.more)
}

/// The screen: 24 lines of 80 columns at most.
fn screen(state: OpenWork) -> String {
    let mut out = format!(
        "{}: messages between AI assistants and people.\n\n",
        styled(BOLD, "Crosstalk")
    );
    let many = |number: usize, noun: &str| match number > COUNTED {
        true => format!("more than {}", count(COUNTED, noun)),
        false => count(number, noun),
    };
    let todo = match state {
        OpenWork {
            has_messages: false,
            ..
        } => vec!["Nothing is kept here yet: begin with the first two.".to_owned()],
        OpenWork {
            waiting: 0,
            asked: 0,
            ..
        } => vec!["Nothing waits for you, and you wait for nothing.".to_owned()],
        OpenWork { waiting, asked, .. } => {
            let waiting = (waiting > 0).then(|| {
                let number = many(waiting, "message");
                format!("Waiting for you: {number} (`crosstalk inbox`).")
            });
            let asked = (asked > 0).then(|| {
                let number = many(asked, "answer");
                format!("You wait for {number} (`crosstalk waiting`).")
            });
            waiting.into_iter().chain(asked).collect()
        }
    };
    for line in todo {
        out.push_str(&format!("{line}\n"));
    }
    for (title, commands) in [("The first day", &FIRST[..]), ("Everything else", &MORE)] {
        out.push_str(&format!("\n{title}:\n"));
        for (command, what) in commands {
            let what = styled(DIM, what);
            out.push_str(&format!("  {command:<41}{what}\n"));
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::cells;

    #[test]
    fn the_screen_fits_a_page() {
        for (has_messages, waiting, asked) in
            [(false, 0, 0), (true, 0, 0), (true, 1, 0), (true, 100, 100)]
        {
            let state = OpenWork {
                has_messages,
                waiting,
                asked,
            };
            let shown = anstream::adapter::strip_str(&screen(state)).to_string();
            assert!(shown.lines().count() <= 24, "{shown}");
            assert!(shown.lines().all(|l| cells(l) <= 80), "{shown}");
            assert_eq!(shown.contains("crosstalk inbox`"), waiting > 0, "{shown}");
            assert_eq!(shown.contains("crosstalk waiting`"), asked > 0, "{shown}");
        }
    }

    #[test]
    fn the_commands_of_the_screen_can_be_called() {
        for (line, _) in FIRST.iter().chain(&MORE) {
            let line = line.replace("COMMAND", "send");
            let line = line.replace("\"Your question\"", "Question");
            let parsed = crate::command().try_get_matches_from(line.split(' '));
            let is_help = |e: &clap::Error| e.kind() == clap::error::ErrorKind::DisplayHelp;
            assert!(
                parsed.as_ref().err().is_none_or(is_help),
                "{line}: {parsed:?}"
            );
        }
    }
}
