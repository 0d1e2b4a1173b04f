//! Who a person is, if they did not say: asked of git, else of the system.

use std::process::{Command, Stdio};

/// A name, and who gave it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) user: String,
    pub(crate) from: &'static str,
}

/// The first word of git's `user.name` in lower case, as messages have it (`user: kalle`); else the login name.
pub(crate) fn find() -> Option<Identity> {
    let git = || {
        let name = said("git", &["config", "--get", "user.name"])?;
        user_of(name.split_whitespace().next()?)
    };
    if let Some(user) = git() {
        let from = "git";
        return Some(Identity { user, from });
    }
    let variables = ["USER", "LOGNAME", "USERNAME"];
    let login = variables
        .into_iter()
        .filter_map(|name| std::env::var(name).ok())
        .find_map(|name| user_of(&name))
        .or_else(|| user_of(&said("id", &["-un"])?))?;
    Some(Identity {
        user: login,
        from: "the login name",
    })
}

/// What a program prints, if it is there and ends well.
fn said(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program)
        .args(arguments)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .output()
        .ok()?;
    output
        .status
        .success()
        .then(|| String::from_utf8(output.stdout).ok())?
}

/// A name as messages have it: a folder that somebody else made may say anything in its git settings.
fn user_of(name: &str) -> Option<String> {
    let harmless = |c: &char| !c.is_control() && !crosstalk_envelope::unicode::is_hidden(*c);
    let name: String = name.chars().filter(harmless).take(64).collect();
    let name = name.trim().to_lowercase();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_one_harmless_word() {
        assert_eq!(user_of("Kalle"), Some("kalle".to_owned()));
        assert_eq!(
            user_of("Ärlig\u{202e}\u{1b}[2J"),
            Some("ärlig[2j".to_owned())
        );
        assert_eq!(user_of(" \u{7} "), None);
        assert_eq!(user_of(&"x".repeat(5_000)).map(|n| n.len()), Some(64));
    }
}
