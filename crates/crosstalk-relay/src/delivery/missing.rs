//! Programs, folders and tokens that routes and watched folders need and that do not exist. A relay starts without them; the
//! messages that need them wait and are tried again.

use super::http::read_token;
use crate::config::{Config, RouteEntry, Sms};
use crosstalk_api::outbound::Url;
use crosstalk_email::check_webhook_secret;
use crosstalk_protocol::relay::Handler;
use rustix::fs::{Access, access};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where programs are looked for if nothing says it.
const USUAL_PATH: &str = "/bin:/usr/bin";

/// Something that a route or a watched folder needs and that is not there now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Missing {
    /// `the route to` or `the watched folder`.
    pub what: &'static str,
    /// The addresses of the route, or the folder.
    pub name: String,
    /// The missing part, and what to do.
    pub reason: String,
}

/// Looks at everything that routes and watched folders need. `work` is where programs run that name no folder.
pub fn missing(config: &Config, work: &Path) -> Vec<Missing> {
    let routes = config.routes.iter().filter_map(|route| {
        Some(Missing {
            what: "the route to",
            name: route.to.clone(),
            reason: missing_of(route, work).err()?,
        })
    });
    let watches = config.watches.iter().filter_map(|watch| {
        let fault = std::fs::read_dir(&watch.folder).err()?;
        Some(Missing {
            what: "the watched folder",
            name: watch.folder.display().to_string(),
            reason: format!("it can't be read: {fault}. Make it, or correct `folder`"),
        })
    });
    let email = config.email.iter().flat_map(|email| {
        let out = email.out.iter().filter_map(|out| out.password_file.as_deref());
        let imap = email.imap.iter().map(|imap| imap.password_file.as_path());
        out.chain(imap).filter_map(|file| {
            let fault = std::fs::File::open(file).err()?;
            Some(Missing {
                what: "the mail server of",
                name: email.domain.clone(),
                reason: format!("the password in {} can't be read: {fault}. Write it there, or correct `password_file`", file.display()),
            })
        })
    });
    let sms = config.sms.iter().filter_map(|sms| {
        let reason = missing_of_texts(sms).err()?;
        Some(Missing {
            what: "the provider of text messages",
            name: sms.url.clone(),
            reason,
        })
    });
    routes.chain(watches).chain(email).chain(sms).collect()
}

fn missing_of_texts(sms: &Sms) -> Result<(), String> {
    if let Some(path) = &sms.token_file {
        read_token(path)?;
    }
    if let Some(path) = &sms.secret_file {
        let secret = read_token(path)?;
        check_webhook_secret(&secret).map_err(|fault| format!("{}: {fault}", path.display()))?;
    }
    Ok(())
}

fn missing_of(route: &RouteEntry, work: &Path) -> Result<(), String> {
    match route.handler() {
        Some(Handler::Exec) => find_program(route, work),
        Some(Handler::Mcp) if !route.command.is_empty() => find_program(route, work),
        Some(Handler::File) => find_folder(route.folder.as_deref().unwrap_or(Path::new(""))),
        Some(Handler::Http | Handler::Relay | Handler::Mcp) => {
            if let Some(url) = &route.url {
                Url::parse(url).map_err(|e| format!("`url`: {e}"))?;
            }
            route
                .token_file
                .as_deref()
                .map_or(Ok(()), |file| read_token(file).map(drop))
        }
        // What [email.out] and [sms] need is looked for once, and not for each route.
        Some(Handler::Email | Handler::Sms | Handler::Inbox | Handler::CopyPaste) | None => Ok(()),
    }
}

/// Looks for a program as the system does when it starts it: from the folder where it runs, by the PATH that it gets.
fn find_program(route: &RouteEntry, work: &Path) -> Result<(), String> {
    if let Some(directory) = route.directory.as_deref().filter(|d| !d.is_dir()) {
        return Err(format!(
            "there is no folder {}: make it, or correct `directory`",
            directory.display()
        ));
    }
    let directory = route.directory.as_deref().unwrap_or(work);
    let program = route.command.first().map_or("", String::as_str);
    let path = route.environment.get("PATH").map(OsString::from);
    match can_run(program, directory, path) {
        true => Ok(()),
        false => Err(format!(
            "the program `{program}` is not there, or can't be run: install it, or correct `command`"
        )),
    }
}

/// Whether a program is there and can be run from a folder; without a PATH of its own it has that of this process.
pub fn can_run(program: &str, directory: &Path, path: Option<OsString>) -> bool {
    let places: Vec<PathBuf> = match program.contains('/') {
        true => vec![directory.join(program)],
        false => {
            let path = path.or_else(|| std::env::var_os("PATH"));
            let path = path.unwrap_or_else(|| USUAL_PATH.into());
            let folders = std::env::split_paths(&path);
            folders.map(|f| directory.join(f).join(program)).collect()
        }
    };
    let can_run = |path: &PathBuf| path.is_file() && access(path, Access::EXEC_OK).is_ok();
    places.iter().any(can_run)
}

/// The folder of a route is made if it is missing, but not those above it.
fn find_folder(folder: &Path) -> Result<(), String> {
    let place = match folder.is_dir() {
        true => folder,
        false => folder.parent().unwrap_or(folder),
    };
    let is_usable = place.is_dir() && access(place, Access::WRITE_OK | Access::EXEC_OK).is_ok();
    match is_usable && (folder.is_dir() || !folder.exists()) {
        true => Ok(()),
        false => Err(format!(
            "{} can't be written: make the folder and let the relay write there, or correct `folder`",
            folder.display()
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requirements_of_routes_are_looked_for_where_they_are_used() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str| folder.path().join(name).display().to_string();
        std::fs::write(path("token"), "xt_1\n").unwrap();
        std::fs::write(path("text"), "no program").unwrap();
        let faults = |line: &str| {
            let text = format!("[[route]]\nto = \"X\"\n{line}\n");
            let config = Config::parse(&text).unwrap();
            let reasons = missing(&config, folder.path()).into_iter();
            reasons.map(|m| m.reason).collect::<Vec<_>>().join("; ")
        };
        for good in [
            "by = \"exec\"\ncommand = [\"sh\", \"-c\", \"true\"]".to_owned(),
            "by = \"exec\"\ncommand = [\"/bin/sh\"]".to_owned(),
            format!("by = \"file\"\nfolder = \"{}\"", path("new")),
            format!(
                "by = \"http\"\nurl = \"https://a.example/\"\ntoken_file = \"{}\"",
                path("token")
            ),
        ] {
            assert_eq!(faults(&good), "", "{good}");
        }
        for (bad, word) in [
            (
                "by = \"exec\"\ncommand = [\"no-such-program-here\"]".to_owned(),
                "command",
            ),
            (
                "by = \"exec\"\ncommand = [\"./text\"]".to_owned(),
                "command",
            ),
            (
                "by = \"exec\"\ncommand = [\"sh\"]\nenvironment = { PATH = \"/nowhere\" }"
                    .to_owned(),
                "command",
            ),
            (
                format!(
                    "by = \"exec\"\ncommand = [\"sh\"]\ndirectory = \"{}\"",
                    path("gone")
                ),
                "directory",
            ),
            (
                format!("by = \"file\"\nfolder = \"{}\"", path("a/b")),
                "folder",
            ),
            (
                format!("by = \"file\"\nfolder = \"{}\"", path("text")),
                "folder",
            ),
            (
                format!(
                    "by = \"http\"\nurl = \"https://a.example/\"\ntoken_file = \"{}\"",
                    path("gone")
                ),
                "token",
            ),
        ] {
            assert!(faults(&bad).contains(word), "{bad}: {}", faults(&bad));
        }
    }
}
