//! Plays the transcript of the guide: what agents call, what comes back, and what the person types.

use super::client::{Client, text};
use crate::run::{Home, folder};
use serde_json::Value;
use std::collections::HashMap;

/// A text with its ids and nonces, which are other ones each time, by name.
fn named(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let line = match line.strip_prefix("~~~~") {
            Some(_) => "~~~~NONCE".to_owned(),
            None => line
                .split_inclusive([' ', ',', '.', ':'])
                .map(|word| {
                    let bare = word.trim_end_matches([' ', ',', '.', ':']);
                    let is_id = bare.len() == 26 && bare.starts_with("01");
                    match is_id {
                        true => word.replace(bare, "ID"),
                        false => word.to_owned(),
                    }
                })
                .collect(),
        };
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

#[test]
fn the_guide_to_agents_tells_what_happens() {
    let page = std::fs::read_to_string(folder("../../docs/guide/agents.md")).unwrap();
    let home = Home::new("mcp-guide");
    home.run(&["config", "set", "sender", "KALLE"], "");
    let mut clients: HashMap<String, Client> = HashMap::new();
    let mut last_id = String::new();
    let mut played = 0;
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let block: Vec<&str> = match line.strip_prefix("```") {
            Some(_) => lines.by_ref().take_while(|l| *l != "```").collect(),
            None => continue,
        };
        if line == "```person" {
            for command in block {
                let words = command.strip_prefix("$ crosstalk ").unwrap();
                let (words, quoted) = words.split_once(" \"").unwrap_or((words, ""));
                let mut arguments: Vec<&str> = words.split(' ').collect();
                if !quoted.is_empty() {
                    arguments.push(quoted.trim_end_matches('"'));
                }
                let ended = home.run(&arguments, "");
                assert_eq!(ended.code, 0, "{command}: {}", ended.err);
                played += 1;
            }
            continue;
        }
        let Some((name, project)) = line
            .strip_prefix("```agent ")
            .and_then(|rest| rest.split_once(' '))
        else {
            continue;
        };
        let client = clients
            .entry(name.to_owned())
            .or_insert_with(|| Client::new(&home, name, project));
        let mut calls: Vec<(&str, String)> = Vec::new();
        for line in block {
            match line.strip_prefix("= ") {
                Some(said) => calls.last_mut().unwrap().1.push_str(&format!("{said}\n")),
                None => calls.push((line, String::new())),
            }
        }
        for (call, expected) in calls {
            let (tool, arguments) = call.split_once(' ').unwrap();
            let arguments = arguments.replace("\"ID\"", &format!("{last_id:?}"));
            let arguments: Value = serde_json::from_str(&arguments).unwrap();
            let result = client.try_call(tool, arguments);
            if let Some(id) = result["structuredContent"]["messages"][0]["id"].as_str() {
                id.clone_into(&mut last_id);
            }
            assert_eq!(named(text(&result)), expected, "{name}: {call}");
            // The agent has read it: a later check of the guide shows what came after.
            if tool == "check" && name == "claude-code" {
                client.call("read", serde_json::json!({"id": last_id}));
            }
            played += 1;
        }
    }
    assert_eq!(played, 10, "the guide has a whole conversation");
}
