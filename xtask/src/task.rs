//! The tasks and their arguments.

use crate::suite::Tier;
use std::fmt::Write as _;

/// How long `cargo xtask fuzz` runs each target unless it is told otherwise.
const FUZZ_SECONDS: u32 = 60;

/// How often `cargo xtask relay-kill` kills unless it is told otherwise.
const KILL_CYCLES: u32 = 500;
/// How often `cargo xtask relay-power` cuts the power unless it is told otherwise.
const POWER_CUTS: u32 = 100;

/// Every task: how it is called, and what it does.
const TASKS: &[(&str, &str)] = &[
    (
        "test [--full]",
        "check everything once; --full adds the long matrices and real fuzzing",
    ),
    (
        "generate",
        "write the Rust source that is generated from spec/registry/*.toml",
    ),
    (
        "spec [--verbose]",
        "check rule ids against registry, spec, cases and code; check links",
    ),
    (
        "layers",
        "check that dependencies between the crates point inward",
    ),
    (
        "lines [--base REVISION]",
        "count hand-written Rust per crate; with --base, compare with a commit",
    ),
    (
        "names",
        "check that each type name in crates/*/src stands for one type",
    ),
    (
        "fuzz [SECONDS]",
        "run every fuzz target on nightly, 60 seconds each, and count executions",
    ),
    (
        "bench [NAME] [--quick]",
        "measure the speed ratios of bench/: envelope, trust, conversation, import, store, relay, mcp, peers, js, python, console, or all",
    ),
    (
        "js",
        "build the npm package ai-crosstalk in js/dist, and tell what each crate costs",
    ),
    (
        "js-test [--full]",
        "build and test the npm package in Node, Deno, Bun and Chromium; --full restarts relays 50 times",
    ),
    (
        "extension",
        "build the browser extension in target/extension/{chromium,firefox}",
    ),
    (
        "extension-test [--full]",
        "build and test the browser extension in Chromium and Firefox; --full adds a chat of 40,000 messages",
    ),
    (
        "console-test [--full]",
        "build and test the web console in Chromium and Firefox; --full adds an inbox of 100,000 messages",
    ),
    (
        "screenshots",
        "photograph every page of the web console in light, dark and phone width, in target/screenshots",
    ),
    (
        "dist [--profile NAME]",
        "make the packages: program, tar.gz, .deb, bill of materials, checksums",
    ),
    (
        "python",
        "build the Python package, a wheel in target/wheels",
    ),
    (
        "python-test [--full]",
        "build, install and test the Python package; --full restarts relays 50 times",
    ),
    (
        "relay-kill [CYCLES]",
        "kill a relay under full load, 500 times, and check that nothing is lost, twice or stuck",
    ),
    (
        "relay-power [CUTS]",
        "cut the power of a relay under full load, 100 times, and check the same",
    ),
    (
        "ha [--failovers N] [--partitions N]",
        "start a cluster of deploy/ha, kill and cut off parts of it under load, check that nothing is lost, and end it",
    ),
    (
        "transcripts",
        "write what the command line prints now into its transcripts",
    ),
];

/// A task with its arguments.
#[derive(Debug, PartialEq, Eq)]
pub enum Task {
    /// The list of tasks.
    Help,
    /// The whole check.
    Test {
        /// With the long matrices or with a sample of each.
        tier: Tier,
    },
    /// The generated source.
    Generate,
    /// The checks of `spec/`.
    Spec {
        /// Also list the rules that no code reports.
        verbose: bool,
    },
    /// The direction of dependencies.
    Layers,
    /// The number of lines.
    Lines {
        /// The commit to compare with.
        base: Option<String>,
    },
    /// Names of several types.
    Names,
    /// A real fuzz run.
    Fuzz {
        /// The time of each target.
        seconds: u32,
    },
    /// The measurements.
    Bench {
        /// Which, and how.
        words: Vec<String>,
    },
    /// The npm package.
    Js,
    /// The tests of the npm package.
    JsTest {
        /// With the long matrices or with a sample of each.
        tier: Tier,
    },
    /// The browser extension.
    Extension,
    /// The tests of the browser extension.
    ExtensionTest {
        /// With the long matrices or with a sample of each.
        tier: Tier,
    },
    /// The tests of the web console.
    ConsoleTest {
        /// With the long matrices or with a sample of each.
        tier: Tier,
    },
    /// Pictures of the pages of the web console.
    Screenshots,
    /// The packages.
    Dist {
        /// The profile of the build.
        profile: String,
    },
    /// The Python package.
    Python,
    /// The tests of the Python package.
    PythonTest {
        /// With the long matrices or with a sample of each.
        tier: Tier,
    },
    /// A long run of kills.
    RelayKill {
        /// How many.
        cycles: u32,
    },
    /// A long run of power cuts.
    RelayPower {
        /// How many.
        cuts: u32,
    },
    /// A cluster that is broken under load.
    Ha {
        /// How many fail-overs.
        failovers: u32,
        /// How many partitions.
        partitions: u32,
    },
    /// The transcripts, written anew.
    Transcripts,
}

impl Task {
    /// The task that the arguments name, or what is wrong with them.
    pub fn parse(arguments: &[String]) -> Result<Self, String> {
        let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
        match words.as_slice() {
            [] | ["help"] => Ok(Self::Help),
            words if words.iter().any(|w| matches!(*w, "--help" | "-h")) => Ok(Self::Help),
            ["test"] => Ok(Self::Test {
                tier: Tier::Default,
            }),
            ["test", "--full"] => Ok(Self::Test { tier: Tier::Full }),
            ["generate"] => Ok(Self::Generate),
            ["spec"] => Ok(Self::Spec { verbose: false }),
            ["spec", "--verbose" | "-v"] => Ok(Self::Spec { verbose: true }),
            ["layers"] => Ok(Self::Layers),
            ["lines"] => Ok(Self::Lines { base: None }),
            ["lines", "--base", revision] if !revision.starts_with('-') => Ok(Self::Lines {
                base: Some((*revision).to_owned()),
            }),
            ["names"] => Ok(Self::Names),
            ["fuzz"] => Ok(Self::Fuzz {
                seconds: FUZZ_SECONDS,
            }),
            ["fuzz", seconds] => match seconds.parse() {
                Ok(seconds) if seconds > 0 => Ok(Self::Fuzz { seconds }),
                _ => Err(format!(
                    "`{seconds}` is not a number of seconds; try `cargo xtask fuzz 60`"
                )),
            },
            ["js"] => Ok(Self::Js),
            ["js-test"] => Ok(Self::JsTest {
                tier: Tier::Default,
            }),
            ["js-test", "--full"] => Ok(Self::JsTest { tier: Tier::Full }),
            ["extension"] => Ok(Self::Extension),
            ["extension-test"] => Ok(Self::ExtensionTest {
                tier: Tier::Default,
            }),
            ["extension-test", "--full"] => Ok(Self::ExtensionTest { tier: Tier::Full }),
            ["console-test"] => Ok(Self::ConsoleTest {
                tier: Tier::Default,
            }),
            ["console-test", "--full"] => Ok(Self::ConsoleTest { tier: Tier::Full }),
            ["screenshots"] => Ok(Self::Screenshots),
            ["bench", words @ ..] => Ok(Self::Bench {
                words: words.iter().map(|w| (*w).to_owned()).collect(),
            }),
            ["dist"] => Ok(Self::Dist {
                profile: crate::dist::PROFILE.to_owned(),
            }),
            ["dist", "--profile", profile] => Ok(Self::Dist {
                profile: (*profile).to_owned(),
            }),
            ["python"] => Ok(Self::Python),
            ["python-test"] => Ok(Self::PythonTest {
                tier: Tier::Default,
            }),
            ["python-test", "--full"] => Ok(Self::PythonTest { tier: Tier::Full }),
            ["relay-kill"] => Ok(Self::RelayKill {
                cycles: KILL_CYCLES,
            }),
            ["relay-kill", cycles] => match cycles.parse() {
                Ok(cycles) if cycles > 0 => Ok(Self::RelayKill { cycles }),
                _ => Err(format!(
                    "`{cycles}` is not a number of kills; try `cargo xtask relay-kill 500`"
                )),
            },
            ["relay-power"] => Ok(Self::RelayPower { cuts: POWER_CUTS }),
            ["relay-power", cuts] => match cuts.parse() {
                Ok(cuts) if cuts > 0 => Ok(Self::RelayPower { cuts }),
                _ => Err(format!(
                    "`{cuts}` is not a number of power cuts; try `cargo xtask relay-power 100`"
                )),
            },
            ["ha", options @ ..] => parse_ha(options),
            ["transcripts"] => Ok(Self::Transcripts),
            [task, rest @ ..] => Err(refusal(task, rest)),
        }
    }
}

/// The options of `ha`: one of each fault unless they say otherwise.
fn parse_ha(options: &[&str]) -> Result<Task, String> {
    let (mut failovers, mut partitions) = (1, 1);
    let mut rest = options;
    while let [option, after @ ..] = rest {
        let count = match *option {
            "--failovers" => &mut failovers,
            "--partitions" => &mut partitions,
            _ => return Err(refusal("ha", rest)),
        };
        let [number, after @ ..] = after else {
            return Err(format!("`{option}` needs a number: `{option} 20`"));
        };
        *count = number.parse().map_err(|_| {
            format!("`{number}` is not a number of faults; try `cargo xtask ha {option} 20`")
        })?;
        rest = after;
    }
    Ok(Task::Ha {
        failovers,
        partitions,
    })
}

/// Whether a bench measures beside other servers, which have to be installed for it.
pub fn needs_peers(words: &[String]) -> bool {
    let mut names = words
        .iter()
        .map(String::as_str)
        .filter(|w| !w.starts_with('-'));
    match (names.next(), names.next()) {
        (None | Some("mail" | "peers"), _) => true,
        (Some("relay"), part) => matches!(part, None | Some("sustained")),
        _ => false,
    }
}

fn refusal(task: &str, rest: &[&str]) -> String {
    let known = TASKS
        .iter()
        .find(|(usage, _)| usage.split(' ').next() == Some(task));
    match known {
        Some((usage, _)) => format!(
            "`{task}` does not take `{}`; write `cargo xtask {usage}`",
            rest.join(" ")
        ),
        None => format!("there is no task `{task}`"),
    }
}

/// The text of `cargo xtask --help`.
pub fn help() -> String {
    let mut out = String::from("Usage: cargo xtask TASK\n\nTasks:\n");
    for (usage, summary) in TASKS {
        let _ = writeln!(out, "  {usage:<24}{summary}");
    }
    out.push_str("\nExit codes: 0 all is well, 1 something failed, 2 wrong arguments.");
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Task, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Task::parse(&words)
    }

    #[test]
    fn every_listed_task_is_known_and_listed() {
        for (usage, _) in TASKS {
            let name = usage.split(' ').next().unwrap();
            assert!(parse(name).is_ok(), "{name}");
            assert!(help().contains(usage));
        }
        assert_eq!(parse(""), Ok(Task::Help));
        assert_eq!(parse("test --help"), Ok(Task::Help));
        assert!(help().contains(&format!("{FUZZ_SECONDS} seconds each")));
    }

    #[test]
    fn arguments_are_read() {
        assert_eq!(parse("fuzz 5"), Ok(Task::Fuzz { seconds: 5 }));
        assert_eq!(parse("spec --verbose"), Ok(Task::Spec { verbose: true }));
        assert_eq!(parse("test --full"), Ok(Task::Test { tier: Tier::Full }));
        let base = Some("main".to_owned());
        assert_eq!(parse("lines --base main"), Ok(Task::Lines { base }));
        assert!(parse("lines --base").is_err() && parse("lines --base --x").is_err());
        assert_eq!(parse("relay-kill 5"), Ok(Task::RelayKill { cycles: 5 }));
        assert_eq!(parse("relay-power 5"), Ok(Task::RelayPower { cuts: 5 }));
        let words = ["relay".to_owned(), "--quick".to_owned()].to_vec();
        assert_eq!(parse("bench relay --quick"), Ok(Task::Bench { words }));
    }

    #[test]
    fn servers_are_installed_for_the_benches_that_need_them() {
        let needs = |line: &str| {
            let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
            needs_peers(&words)
        };
        for line in [
            "",
            "--quick",
            "peers",
            "mail",
            "relay --quick",
            "relay sustained",
        ] {
            assert!(needs(line), "{line}");
        }
        for line in ["trust", "relay load", "import --quick"] {
            assert!(!needs(line), "{line}");
        }
    }

    #[test]
    fn a_campaign_has_a_number_of_each_fault() {
        let ha = |failovers, partitions| Task::Ha {
            failovers,
            partitions,
        };
        assert_eq!(parse("ha"), Ok(ha(1, 1)));
        assert_eq!(parse("ha --partitions 20"), Ok(ha(1, 20)));
        let both = parse("ha --failovers 50 --partitions 0");
        assert_eq!(both, Ok(ha(50, 0)));
        for (bad, hint) in [
            ("ha 5", "does not take `5`"),
            ("ha --failovers", "needs a number"),
            ("ha --partitions some", "not a number of faults"),
        ] {
            let refusal = parse(bad).unwrap_err();
            assert!(refusal.contains(hint), "{bad}: {refusal}");
        }
    }

    #[test]
    fn wrong_arguments_get_a_hint() {
        assert!(parse("tset").unwrap_err().contains("no task `tset`"));
        assert!(parse("--quick").unwrap_err().contains("no task"));
        assert!(
            parse("test --quick")
                .unwrap_err()
                .contains("write `cargo xtask test [--full]`")
        );
        for bad in ["fuzz 0", "fuzz -1", "fuzz soon", "fuzz 99999999999"] {
            assert!(
                parse(bad).unwrap_err().contains("not a number of seconds"),
                "{bad}"
            );
        }
        assert!(
            parse("relay-kill often")
                .unwrap_err()
                .contains("not a number of kills")
        );
    }
}
