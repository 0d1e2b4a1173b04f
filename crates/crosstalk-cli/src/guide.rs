//! The way to the right command: commands by purpose, and the words that people type for them.

use crate::paragraph::wrap_to;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Commands by purpose, in the order of `crosstalk --help`. Each command that people call stands in one group.
const GROUPS: [(&str, &[&str]); 8] = [
    (
        "Conversations",
        &[
            "send", "paste", "reply", "forward", "inbox", "waiting", "threads", "show", "search",
        ],
    ),
    (
        "More to do with conversations",
        &[
            "poll", "watch", "escalate", "handoff", "close", "move", "forget", "export", "import",
            "prompt",
        ],
    ),
    ("Consent and personal data", &["consent", "redact"]),
    ("Keys and signatures", &["key", "sign", "verify", "trust"]),
    (
        "Messages by a relay",
        &["relay", "status", "listen", "carry", "approve", "refuse"],
    ),
    (
        "Operating a relay",
        &[
            "serve", "token", "dead", "backup", "restore", "fsck", "audit", "conform",
        ],
    ),
    (
        "Envelopes as text",
        &[
            "parse",
            "lint",
            "fmt",
            "doctor",
            "build",
            "migrate",
            "canonical",
            "id",
            "address",
        ],
    ),
    (
        "Settings and help",
        &[
            "config",
            "name",
            "clip",
            "demo",
            "explain",
            "schema",
            "completions",
            "man",
            "help",
        ],
    ),
];

/// Words that people type, and the commands that they mean; the first that is there counts, in `crosstalk` and in each command
/// with commands of its own.
const OTHER_WORDS: [(&[&str], &[&str]); 20] = [
    (
        &["delete", "del", "rm", "remove", "erase", "purge", "unsend"],
        &["forget", "remove", "revoke"],
    ),
    (
        &["list", "ls", "conversations", "chats", "history", "log"],
        &["threads", "list"],
    ),
    (
        &[
            "new", "ask", "write", "compose", "create", "add", "post", "message", "msg", "question",
        ],
        &["send", "new", "create", "add", "grant", "pin"],
    ),
    (
        &[
            "read", "open", "cat", "view", "get", "print", "display", "thread",
        ],
        &["show"],
    ),
    (&["answer", "respond", "response"], &["reply"]),
    (&["find", "grep", "query", "lookup"], &["search"]),
    (&["receive", "take", "keep", "accept"], &["paste"]),
    (
        &["mail", "mailbox", "unread", "todo", "messages"],
        &["inbox"],
    ),
    (&["pending", "outstanding", "asked", "sent"], &["waiting"]),
    (&["fwd", "share", "pass"], &["forward", "handoff"]),
    (&["mv", "refile", "reparent"], &["move", "paste"]),
    (&["copy", "clipboard"], &["clip"]),
    (
        &[
            "contacts", "contact", "alias", "aliases", "people", "names", "friends",
        ],
        &["name"],
    ),
    (
        &[
            "login", "logout", "signin", "connect", "server", "remote", "account",
        ],
        &["relay"],
    ),
    (
        &["settings", "setup", "init", "configure", "profile", "set"],
        &["config"],
    ),
    (&["keys", "keygen", "identity"], &["key"]),
    (&["start", "run", "daemon", "up"], &["serve"]),
    (&["vote", "survey"], &["poll"]),
    (
        &["check", "validate", "repair", "fix", "diagnose"],
        &["doctor", "check"],
    ),
    (
        &["revoke", "withdraw", "cancel", "undo"],
        &["consent", "revoke", "remove"],
    ),
];

/// The columns of the help.
const COLUMNS: usize = 80;

/// The command line with its commands by purpose.
pub(crate) fn grouped(command: clap::Command) -> clap::Command {
    // The commands that clap adds are there only then.
    let mut built = command.clone();
    built.build();
    let template = format!(
        "{{before-help}}{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{}Options:\n{{options}}{{after-help}}",
        groups(&built)
    );
    command.help_template(template)
}

/// Each group with its commands and what they do.
fn groups(command: &clap::Command) -> String {
    let names = GROUPS.iter().flat_map(|(_, names)| *names);
    let width = names.map(|n| n.len()).max().unwrap_or(0) + 4;
    let mut out = String::new();
    for (title, names) in GROUPS {
        out.push_str(&format!("{title}:\n"));
        for name in names {
            let Some(inner) = command.find_subcommand(name) else {
                continue;
            };
            let about = inner.get_about().map(ToString::to_string);
            let about = wrap_to(COLUMNS, &about.unwrap_or_default(), width, width);
            let column = width.saturating_sub(2);
            out.push_str(&format!("  {name:<column$}{about}\n"));
        }
        out.push('\n');
    }
    out
}

/// Adds to a complaint about an unknown command which one is meant, if the word is one that people type for it.
pub(crate) fn advise(
    fault: &mut clap::Error,
    command: &clap::Command,
    arguments: impl Iterator<Item = String>,
) {
    let typed = match (fault.kind(), fault.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(typed))) => typed.clone(),
        _ => return,
    };
    let (path, place) = place_of(command, arguments, &typed);
    let Some(meant) = meant(place, &typed) else {
        return;
    };
    let about = meant.get_about().map(ToString::to_string);
    let tip = format!(
        "use `crosstalk {path}{}`: {}",
        meant.get_name(),
        about.unwrap_or_default()
    );
    fault.remove(ContextKind::SuggestedSubcommand);
    // Behind `  tip: `.
    let tip = wrap_to(COLUMNS, &tip, 7, 7);
    let tips = ContextValue::StyledStrs(vec![tip.into()]);
    fault.insert(ContextKind::Suggested, tips);
}

/// The command whose command was not found, and the words that lead to it.
fn place_of<'c>(
    command: &'c clap::Command,
    arguments: impl Iterator<Item = String>,
    typed: &str,
) -> (String, &'c clap::Command) {
    let (mut path, mut place) = (String::new(), command);
    for argument in arguments {
        if argument == typed {
            break;
        }
        if let Some(inner) = place.find_subcommand(&argument) {
            path.push_str(&format!("{argument} "));
            place = inner;
        }
    }
    (path, place)
}

/// The command that a word means in another command.
fn meant<'c>(place: &'c clap::Command, typed: &str) -> Option<&'c clap::Command> {
    let typed = typed.to_ascii_lowercase();
    let known = OTHER_WORDS
        .iter()
        .filter(|(words, _)| words.contains(&typed.as_str()));
    let mut names = known.flat_map(|(_, names)| *names);
    names.find_map(|name| place.find_subcommand(name).filter(|c| !c.is_hide_set()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    #[test]
    fn every_command_stands_in_one_group() {
        let mut command = crate::command();
        command.build();
        let visible = command.get_subcommands().filter(|c| !c.is_hide_set());
        let mut commands: Vec<&str> = visible.map(clap::Command::get_name).collect();
        let mut grouped: Vec<&str> = GROUPS.iter().flat_map(|(_, n)| *n).copied().collect();
        commands.sort_unstable();
        grouped.sort_unstable();
        assert_eq!(grouped, commands);
    }

    #[test]
    fn other_words_are_no_commands_and_mean_one() {
        let command = crate::command();
        let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
        for (words, names) in OTHER_WORDS {
            let is_there = |n: &&&str| command.find_subcommand(n).is_some();
            let first = names.iter().find(is_there).copied();
            assert!(first.is_some(), "{names:?}");
            for word in words {
                assert!(command.find_subcommand(word).is_none(), "{word}");
                assert_eq!(seen.insert(word, names[0]), None, "{word} stands twice");
            }
        }
    }

    #[test]
    fn a_word_means_the_command_of_its_place() {
        let command = crate::command();
        for (arguments, path, name) in [
            (&["delete"][..], "", "forget"),
            (&["--profile", "work", "ls"], "", "threads"),
            (&["relay", "rm"], "relay ", "remove"),
            (&["consent", "delete"], "consent ", "revoke"),
            (&["key", "create"], "key ", "new"),
            (&["GET"], "", "show"),
        ] {
            let typed = arguments.last().unwrap();
            let words = arguments.iter().map(|a| (*a).to_owned());
            let (found, place) = place_of(&command, words, typed);
            let meant = meant(place, typed).map(clap::Command::get_name);
            assert_eq!((found.as_str(), meant), (path, Some(name)), "{arguments:?}");
        }
        assert!(meant(&command, "xyzzy").is_none());
    }
}
