//! The server in the settings of Codex, which are TOML: comments and order stay.

use super::{SERVER, ServerCommand};
use crate::failure::Failure;
use toml_edit::{Array, DocumentMut, Item, Table, TableLike, value};

const SERVERS: &str = "mcp_servers";

fn read(text: &str) -> Result<DocumentMut, Failure> {
    text.parse().map_err(|fault: toml_edit::TomlError| {
        Failure::malformed(format!("the settings are no TOML: {}", fault.message()))
            .help("nothing was changed; correct the file first")
    })
}

fn no_table() -> Failure {
    Failure::malformed(format!("`{SERVERS}` in the settings is no table"))
        .help("nothing was changed; correct the file first")
}

/// Adds the server, or corrects its command. Other keys of its entry stay.
pub(super) fn add(text: &str, command: &ServerCommand) -> Result<String, Failure> {
    let mut document = read(text)?;
    let servers = document.entry(SERVERS).or_insert_with(|| {
        let mut table = Table::new();
        table.set_implicit(true);
        Item::Table(table)
    });
    let servers = servers.as_table_like_mut().ok_or_else(no_table)?;
    if servers.get(SERVER).is_none() {
        servers.insert(SERVER, Item::Table(Table::new()));
    }
    let entry = servers.get_mut(SERVER).and_then(Item::as_table_like_mut);
    let entry = entry.ok_or_else(no_table)?;
    let words = command.arguments.iter().map(String::as_str);
    let given = entry.get("command").and_then(Item::as_str);
    if given != Some(&command.program) {
        entry.insert("command", value(&command.program));
    }
    let given = entry.get("args").and_then(Item::as_array);
    let given = given.map(|list| list.iter().map(|v| v.as_str()).collect::<Vec<_>>());
    if given != Some(words.clone().map(Some).collect()) {
        entry.insert("args", value(words.collect::<Array>()));
    }
    if !command.environment.is_empty() {
        set_environment(entry, command)?;
    }
    Ok(document.to_string())
}

fn set_environment(entry: &mut dyn TableLike, command: &ServerCommand) -> Result<(), Failure> {
    if entry.get("env").is_none() {
        entry.insert("env", value(toml_edit::InlineTable::new()));
    }
    let given = entry.get_mut("env").and_then(Item::as_table_like_mut);
    let given = given.ok_or_else(no_table)?;
    for (name, text) in &command.environment {
        if given.get(name).and_then(Item::as_str) != Some(text) {
            given.insert(name, value(text));
        }
    }
    Ok(())
}

/// Removes the server.
pub(super) fn remove(text: &str) -> Result<String, Failure> {
    let mut document = read(text)?;
    let Some(servers) = document.get_mut(SERVERS) else {
        return Ok(text.to_owned());
    };
    let servers = servers.as_table_like_mut().ok_or_else(no_table)?;
    if servers.remove(SERVER).is_none() {
        return Ok(text.to_owned());
    }
    Ok(document.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(program: &str) -> ServerCommand {
        ServerCommand {
            program: program.into(),
            arguments: vec!["mcp".into()],
            environment: vec![("CROSSTALK_HOME".into(), "/h".into())],
        }
    }

    #[test]
    fn comments_and_order_stay() {
        let text =
            "# mine\nmodel = \"x\"  # the best\n\n[mcp_servers.other]\ncommand = 'o' # keep\n";
        let after = add(text, &command("/bin/crosstalk")).unwrap();
        assert!(after.starts_with(text), "{after}");
        assert!(
            after.contains(
                "[mcp_servers.crosstalk]\ncommand = \"/bin/crosstalk\"\nargs = [\"mcp\"]\n"
            )
        );
        assert_eq!(add(&after, &command("/bin/crosstalk")).unwrap(), after);
        assert_eq!(remove(&after).unwrap().trim_end(), text.trim_end());
        assert_eq!(remove(text).unwrap(), text);
    }

    #[test]
    fn settings_that_are_no_toml_are_left_alone() {
        for text in [
            "model = ",
            "mcp_servers = 3\n",
            "mcp_servers = { crosstalk = 1 }\n",
        ] {
            assert!(add(text, &command("x")).is_err(), "{text}");
        }
        assert_eq!(
            add("", &command("x")).unwrap().lines().next(),
            Some("[mcp_servers.crosstalk]")
        );
    }

    #[test]
    fn what_a_person_added_to_the_entry_stays() {
        let text = "[mcp_servers.crosstalk]\ncommand = \"old\"\nargs = [\"mcp\"]\nstartup_timeout_sec = 20 # slow\n";
        let after = add(text, &command("new")).unwrap();
        assert!(
            after.contains("startup_timeout_sec = 20 # slow") && after.contains("\"new\""),
            "{after}"
        );
    }
}
