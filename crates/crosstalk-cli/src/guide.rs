//! The way to the right command: commands by purpose, and the words that people type for them.

use crate::paragraph::wrap_to;
use crate::shell;
use clap::error::{ContextKind, ContextValue, ErrorKind};

/// Commands by purpose, in the order of `crosstalk --help`. Each command for people is in one group.
const GROUPS: [(&str, &[&str]); 9] = [
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
    ("AI clients", &["setup", "mcp", "agents"]),
    ("Consent and personal data", &["consent", "redact"]),
    ("Keys and signatures", &["key", "sign", "verify", "trust"]),
    (
        "Messages by a relay",
        &["relay", "status", "listen", "carry", "approve", "refuse"],
    ),
    (
        "Operating a relay",
        &[
            "serve", "console", "token", "dead", "backup", "restore", "fsck", "store", "audit",
            "conform",
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
            "email",
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
const OTHER_WORDS: [(&[&str], &[&str]); 21] = [
    (
        &[
            "delete", "del", "rm", "remove", "erase", "purge", "unsend", "undo", "drop",
        ],
        &["forget", "remove", "revoke", "unset"],
    ),
    (
        &[
            "list",
            "ls",
            "conversations",
            "chats",
            "history",
            "log",
            "all",
        ],
        &["threads", "list", "show"],
    ),
    (
        &[
            "new", "ask", "write", "compose", "create", "add", "post", "message", "msg",
            "question", "tell", "chat", "generate", "make",
        ],
        &["send", "new", "create", "add", "grant", "pin"],
    ),
    (
        &[
            "read", "open", "cat", "view", "get", "print", "display", "thread", "info",
        ],
        &["show", "list"],
    ),
    (&["answer", "respond", "response", "replies"], &["reply"]),
    (&["find", "grep", "query", "lookup"], &["search", "resolve"]),
    (
        &["receive", "take", "keep", "accept"],
        &["paste", "fetch", "pin"],
    ),
    (
        &["mail", "mailbox", "unread", "todo", "messages", "next"],
        &["inbox"],
    ),
    (
        &["pending", "outstanding", "asked", "sent", "open-questions"],
        &["waiting"],
    ),
    (&["fwd", "share", "pass"], &["forward", "handoff", "export"]),
    (&["mv", "refile", "reparent", "merge"], &["move", "paste"]),
    (&["copy", "clipboard"], &["clip"]),
    (
        &[
            "contacts", "contact", "alias", "aliases", "people", "names", "friends",
        ],
        &["name"],
    ),
    (
        &[
            "login", "logout", "signin", "connect", "server", "remote", "account", "relays",
        ],
        &["relay", "add"],
    ),
    (
        &["settings", "init", "configure", "profile", "set", "whoami"],
        &["config"],
    ),
    (&["keys", "keygen", "identity"], &["key"]),
    (&["start", "run", "daemon", "up"], &["serve", "new"]),
    (&["vote", "survey", "polls"], &["poll"]),
    (
        &["check", "validate", "repair", "fix", "diagnose"],
        &["doctor", "check", "verify"],
    ),
    (
        &["revoke", "withdraw", "cancel"],
        &["consent", "revoke", "remove", "close"],
    ),
    (
        &["end", "stop", "finish", "done", "dismiss", "archive"],
        &["close", "remove"],
    ),
];

/// Words for more than the name of a command says: where they are typed, and the whole command line that they mean.
const PHRASES: &[(&str, &[&str], &str)] = &[
    (
        "",
        &["compare", "diff", "vs", "side-by-side"],
        "show last --compare",
    ),
    ("", &["resend", "recopy"], "show last --copy"),
    ("", &["dump", "save"], "export"),
    ("", &["load", "upload"], "import"),
    (
        "",
        &["primer", "teach", "instructions", "template"],
        "prompt",
    ),
    (
        "",
        &["tutorial", "example", "examples", "try", "intro"],
        "demo",
    ),
    ("", &["manual", "docs"], "man"),
    ("", &["who", "rename"], "name"),
    ("", &["edit", "preferences"], "config edit"),
    ("", &["fetch", "pull", "sync"], "relay fetch"),
    ("", &["deliver", "push"], "relay deliver"),
    ("", &["tokens"], "token list"),
    ("", &["grant", "allow", "permit"], "consent grant"),
    ("", &["pin"], "trust pin"),
    ("", &["block", "ban", "distrust"], "trust distrust"),
    ("", &["anonymize", "anonymise", "mask", "censor"], "redact"),
    ("", &["retry", "requeue"], "dead requeue"),
    ("", &["ping", "health"], "status"),
    (
        "poll",
        &[
            "list", "ls", "show", "view", "get", "result", "results", "answers", "open", "waiting",
            "all",
        ],
        "poll status last",
    ),
    (
        "poll",
        &["vote", "answer", "ballot", "reply", "respond"],
        "reply",
    ),
    (
        "poll",
        &["delete", "rm", "remove", "revoke"],
        "poll close last",
    ),
    (
        "poll",
        &["tally", "sum", "evaluate", "correct", "fix"],
        "poll count",
    ),
    ("relay", &["status", "show", "test", "ping"], "status"),
    ("relay", &["start", "run", "serve", "up"], "serve"),
    ("relay", &["logout", "disconnect"], "relay remove"),
    ("relay", &["pull", "sync", "get", "inbox"], "relay fetch"),
    ("relay", &["push", "send", "flush"], "relay deliver"),
    (
        "key",
        &["delete", "del", "rm", "remove", "erase"],
        "key revoke",
    ),
    (
        "key",
        &["password", "passwd", "encrypt", "lock"],
        "key passphrase",
    ),
    ("key", &["save"], "key backup"),
    ("key", &["restore", "load", "add"], "key import"),
    ("key", &["renew", "replace", "change"], "key rotate"),
    ("trust", &["verify", "compare", "validate"], "trust check"),
    (
        "trust",
        &["revoke", "block", "ban", "deny", "untrust"],
        "trust distrust",
    ),
    ("trust", &["unpin", "forget"], "trust remove"),
    ("trust", &["save", "backup", "dump"], "trust export"),
    ("trust", &["load", "restore"], "trust import"),
    (
        "consent",
        &["give", "allow", "permit", "accept"],
        "consent grant",
    ),
    ("config", &["change", "put", "add", "write"], "config set"),
    ("config", &["read", "print"], "config get"),
    ("config", &["reset", "clear"], "config unset"),
    ("config", &["open", "vi", "nano"], "config edit"),
    ("config", &["file", "where", "location"], "config path"),
    ("token", &["issue", "grant", "mint"], "token create"),
    ("token", &["show", "get"], "token list"),
    ("audit", &["show", "list", "history", "events"], "audit log"),
    ("audit", &["find", "follow-message"], "audit trace"),
    ("audit", &["check", "validate"], "audit verify"),
    ("audit", &["save", "dump", "bundle"], "audit export"),
    ("audit", &["follow", "tail", "monitor"], "audit watch"),
    ("audit", &["proof"], "audit receipt"),
    ("dead", &["retry", "resend", "send"], "dead requeue"),
    (
        "address",
        &["check", "show", "validate", "lint"],
        "address parse",
    ),
    ("address", &["dns", "get"], "address resolve"),
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
    let tip = match (fault.kind(), fault.get(ContextKind::InvalidSubcommand)) {
        (ErrorKind::InvalidSubcommand, Some(ContextValue::String(typed))) => {
            let path = path_to(command, arguments, typed);
            match (path.as_str(), typed.to_ascii_lowercase().as_str()) {
                ("", "version") => "use `crosstalk --version`".to_owned(),
                // No command means this, and one that is spelled alike would mislead.
                ("", "quit" | "exit") => {
                    fault.remove(ContextKind::SuggestedSubcommand);
                    fault.remove(ContextKind::Suggested);
                    return;
                }
                _ => {
                    let Some(phrase) = meant(command, &path, typed) else {
                        return;
                    };
                    let about = about(command, &phrase).unwrap_or_default();
                    format!("use `crosstalk {phrase}`: {about}")
                }
            }
        }
        (ErrorKind::UnknownArgument, _) => {
            let Some(tip) = quoted(arguments) else {
                return;
            };
            tip
        }
        _ => return,
    };
    fault.remove(ContextKind::SuggestedSubcommand);
    // Behind `  tip: `.
    let tip = wrap_to(COLUMNS, &tip, 7, 7);
    let tips = ContextValue::StyledStrs(vec![tip.into()]);
    fault.insert(ContextKind::Suggested, tips);
}

/// The tip for `send` with a text of several words without quotes. Among options it is not clear which words
/// are the text.
fn quoted(arguments: impl Iterator<Item = String>) -> Option<String> {
    let words: Vec<String> = arguments.collect();
    match words.as_slice() {
        [send, to, text @ ..]
            if send == "send" && text.len() > 1 && words.iter().all(|w| !w.starts_with('-')) =>
        {
            let (to, text) = (shell::word(to), shell::word(&text.join(" ")));
            Some(format!(
                "put the text in quotes: `crosstalk send {to} {text}`"
            ))
        }
        _ => None,
    }
}

/// The purpose of a command line: that of its last option, else that of the command.
fn about(command: &clap::Command, line: &str) -> Option<String> {
    let command = named_by(command, line)?;
    let option = line.split(' ').rev().find_map(|w| w.strip_prefix("--"));
    let option =
        option.and_then(|long| command.get_arguments().find(|a| a.get_long() == Some(long)));
    let about = option.map_or_else(|| command.get_about(), clap::Arg::get_help);
    about.map(ToString::to_string)
}

/// The words that lead to the command whose command was not found.
fn path_to(
    command: &clap::Command,
    arguments: impl Iterator<Item = String>,
    typed: &str,
) -> String {
    let (mut path, mut place) = (String::new(), command);
    for argument in arguments.take_while(|a| a != typed) {
        if let Some(inner) = place.find_subcommand(&argument) {
            path.push_str(&format!("{argument} "));
            place = inner;
        }
    }
    path
}

/// The command line that a word means in the command that a path leads to: one for that place, else a command of the place by
/// another name, else a command of `crosstalk`.
fn meant(command: &clap::Command, path: &str, typed: &str) -> Option<String> {
    let typed = typed.to_ascii_lowercase();
    let is_typed = |words: &&[&str]| words.contains(&typed.as_str());
    let mut phrases = PHRASES.iter();
    let phrase = phrases.find(|(place, words, _)| *place == path.trim_end() && is_typed(words));
    if let Some((.., phrase)) = phrase {
        return Some((*phrase).to_owned());
    }
    let place = named_by(command, path).unwrap_or(command);
    let known = OTHER_WORDS.iter().filter(|(words, _)| is_typed(words));
    let mut names = known.flat_map(|(_, names)| *names);
    let is_there = |name: &&&str| {
        place
            .find_subcommand(name)
            .is_some_and(|c| !c.is_hide_set())
    };
    if let Some(name) = names.find(is_there) {
        return Some(format!("{path}{name}"));
    }
    let is_elsewhere = !path.is_empty() && command.find_subcommand(&typed).is_some();
    is_elsewhere.then_some(typed)
}

/// The command that the first words of a command line name.
fn named_by<'c>(command: &'c clap::Command, line: &str) -> Option<&'c clap::Command> {
    let mut place = None;
    for word in line.split_whitespace() {
        match place.unwrap_or(command).find_subcommand(word) {
            Some(inner) => place = Some(inner),
            None => break,
        }
    }
    place
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
                assert_eq!(seen.insert(word, names[0]), None, "{word} appears twice");
            }
        }
    }

    #[test]
    fn phrases_are_command_lines_that_work() {
        let command = crate::command();
        let mut seen = std::collections::BTreeSet::new();
        for (place, words, phrase) in PHRASES {
            let meant = named_by(&command, phrase).unwrap();
            let first = phrase.split(' ').next().unwrap();
            assert!(command.find_subcommand(first).is_some(), "{phrase}");
            for flag in phrase.split(' ').filter_map(|w| w.strip_prefix("--")) {
                let mut known = meant.get_arguments();
                assert!(known.any(|a| a.get_long() == Some(flag)), "{phrase}");
            }
            let group = named_by(&command, place).unwrap_or(&command);
            assert!(place.is_empty() || group.has_subcommands(), "{place}");
            for word in *words {
                assert!(group.find_subcommand(word).is_none(), "{place} {word}");
                assert!(seen.insert((place, word)), "{place} {word} appears twice");
            }
        }
    }

    #[test]
    fn a_word_means_the_command_of_its_place() {
        let command = crate::command();
        for (arguments, phrase) in [
            (&["delete"][..], "forget"),
            (&["undo"], "forget"),
            (&["--profile", "work", "ls"], "threads"),
            (&["compare"], "show last --compare"),
            (&["relay", "rm"], "relay remove"),
            (&["relay", "status"], "status"),
            (&["consent", "delete"], "consent revoke"),
            (&["key", "create"], "key new"),
            (&["poll", "list"], "poll status last"),
            (&["poll", "create"], "poll new"),
            (&["poll", "send"], "send"),
            (&["config", "list"], "config show"),
            (&["token", "rm"], "token revoke"),
            (&["GET"], "show"),
        ] {
            let typed = arguments.last().unwrap();
            let words = arguments.iter().map(|a| (*a).to_owned());
            let path = path_to(&command, words, typed);
            assert_eq!(
                meant(&command, &path, typed).as_deref(),
                Some(phrase),
                "{arguments:?}"
            );
        }
        assert!(meant(&command, "", "xyzzy").is_none());
    }
}
