//! Cases as data: the files of `conformance/http/`. `conformance/README.md` documents their form.

use super::play::Player;
use super::probe::{CaseStep, Probe};
use super::{CaseFunction, RelayCase, case};
use crosstalk_envelope::registry::rule;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Includes files of `conformance/http/` in the program, each with its name.
macro_rules! files {
    ($($name:literal)+) => {
        &[$(($name, include_str!(concat!("../../../../conformance/http/", $name, ".toml")))),+]
    };
}

/// The files. Cases of one rule keep this order.
const FILES: &[(&str, &str)] = files!(
    "receive" "refusal" "receipt" "batch" "intent" "party" "inbox" "state"
    "lookup" "delivery" "blob" "who" "hop" "hold" "consent" "poll"
);

/// Texts by name.
pub(super) type Texts = BTreeMap<String, String>;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptFile {
    /// Steps that several cases begin with.
    #[serde(default)]
    begin: BTreeMap<String, Vec<ScriptStep>>,
    case: Vec<ScriptCase>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptCase {
    id: String,
    rule: String,
    title: String,
    #[serde(default)]
    heavy: bool,
    /// Why it is a function of this crate.
    code: Option<String>,
    begin: Option<String>,
    #[serde(default)]
    steps: Vec<ScriptStep>,
    #[serde(default, rename = "let")]
    variables: Texts,
    /// Why it is skipped where no credential is given.
    needs_token: Option<String>,
}

/// The steps of a case.
#[derive(Debug)]
pub(super) struct Script {
    pub(super) variables: Texts,
    pub(super) needs_token: Option<String>,
    pub(super) steps: Vec<ScriptStep>,
}

/// One step: an action, and what has to be true of the answer.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ScriptStep {
    // The action: one of these.
    pub(super) write: Option<String>,
    pub(super) send: Option<String>,
    pub(super) post: Option<String>,
    pub(super) request: Option<String>,
    pub(super) inbox: Option<String>,
    pub(super) state: Option<String>,
    pub(super) token: Option<String>,
    // An envelope.
    pub(super) from: Option<String>,
    pub(super) to: Option<String>,
    pub(super) thread: Option<String>,
    pub(super) message: Option<String>,
    pub(super) parent: Option<String>,
    pub(super) session: Option<String>,
    pub(super) body: Option<String>,
    #[serde(default)]
    pub(super) header: Texts,
    #[serde(default)]
    pub(super) meta: BTreeMap<String, Texts>,
    #[serde(default)]
    pub(super) without: Vec<String>,
    #[serde(default)]
    pub(super) replace: Texts,
    // A request.
    #[serde(default)]
    pub(super) headers: Texts,
    pub(super) accept: Option<String>,
    pub(super) json: Option<Value>,
    pub(super) by: Option<String>,
    pub(super) of: Option<String>,
    pub(super) role: Option<String>,
    #[serde(default)]
    pub(super) addresses: Vec<String>,
    #[serde(default)]
    pub(super) optional: bool,
    // The expected answer.
    pub(super) status: Option<Value>,
    pub(super) refused: Option<String>,
    #[serde(default)]
    pub(super) expect: BTreeMap<String, Value>,
    #[serde(default)]
    pub(super) envelope: Texts,
    pub(super) envelope_at: Option<String>,
    #[serde(default)]
    pub(super) head: BTreeMap<String, Value>,
    pub(super) text: Option<Value>,
    pub(super) file: Option<Value>,
    pub(super) ids: Option<Value>,
    pub(super) same_as: Option<String>,
    // How it goes on.
    #[serde(rename = "as")]
    pub(super) name: Option<String>,
    #[serde(default)]
    pub(super) save: Texts,
    #[serde(default)]
    pub(super) skip: Texts,
    pub(super) or_skip: Option<String>,
    #[serde(default)]
    pub(super) each: Vec<Value>,
    pub(super) times: Option<u32>,
    pub(super) within: Option<u64>,
    pub(super) pause_ms: Option<u64>,
}

/// The way a case runs.
#[derive(Clone, Copy, Debug)]
pub(super) enum CaseRun {
    /// A function.
    Code(CaseFunction),
    /// Steps.
    Script(&'static Script),
}

impl CaseRun {
    pub(super) async fn run(self, probe: &Probe) -> CaseStep {
        match self {
            Self::Code(run) => run(probe).await,
            Self::Script(script) => Player::new(probe).play(script).await,
        }
    }
}

/// All cases in the order of the rules. A test makes sure that every file can be read.
pub(super) static CASES: LazyLock<Vec<RelayCase>> = LazyLock::new(|| {
    let files = FILES.iter().filter_map(|(_, text)| read(text).ok());
    let mut all: Vec<RelayCase> = files.flatten().collect();
    all.sort_by_key(|case| case.rule.id);
    all
});

/// The cases of a file. They live as long as the program: it reads each file once.
fn read(text: &str) -> Result<Vec<RelayCase>, String> {
    let file: ScriptFile = toml::from_str(text).map_err(|e| e.to_string())?;
    let ScriptFile { begin, case } = file;
    case.into_iter().map(|case| build(case, &begin)).collect()
}

fn build(case: ScriptCase, begin: &BTreeMap<String, Vec<ScriptStep>>) -> Result<RelayCase, String> {
    let id: &'static str = case.id.leak();
    let rule = rule::ALL.iter().find(|rule| rule.id == case.rule);
    let rule = rule.ok_or_else(|| format!("{id}: there is no rule {}", case.rule))?;
    let run = match case.code {
        Some(_) => CaseRun::Code(case::find(id).ok_or_else(|| format!("{id}: no function"))?),
        None => {
            let mut steps = match &case.begin {
                Some(name) => begin
                    .get(name)
                    .cloned()
                    .ok_or_else(|| format!("{id}: there is no beginning {name}"))?,
                None => Vec::new(),
            };
            steps.extend(case.steps);
            CaseRun::Script(Box::leak(Box::new(Script {
                variables: case.variables,
                needs_token: case.needs_token,
                steps,
            })))
        }
    };
    Ok(RelayCase {
        id,
        rule,
        title: case.title.leak(),
        is_heavy: case.heavy,
        run,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_read_and_every_function_is_used() {
        let mut functions = 0;
        for (name, text) in FILES {
            let cases = read(text).unwrap_or_else(|fault| panic!("{name}: {fault}"));
            functions += cases
                .iter()
                .filter(|c| matches!(c.run, CaseRun::Code(_)))
                .count();
        }
        let all: usize = case::ALL.iter().map(|list| list.len()).sum();
        assert_eq!(functions, all);
    }

    #[test]
    fn a_case_with_a_fault_is_named() {
        let fault = |text: &str| read(text).unwrap_err();
        let head = "[[case]]\nid = \"x\"\ntitle = \"t\"\n";
        assert!(fault(&format!("{head}rule = \"none\"\n")).contains("no rule none"));
        let code = format!("{head}rule = \"HTP-001\"\ncode = \"why\"\n");
        assert!(fault(&code).contains("x: no function"));
        let wrong = format!("{head}rule = \"HTP-001\"\nsteps = [{{ sned = \"REQUEST\" }}]\n");
        assert!(fault(&wrong).contains("sned"));
    }
}
