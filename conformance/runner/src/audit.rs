//! Logs and ways, by the crates under test.

use super::{Reply, input};
use crosstalk_conform::CaseQuestion;
use crosstalk_envelope::{Document, PublicKey, Reading, base64};
use crosstalk_protocol::audit::bundle::{self, Against, BundleFault};
use crosstalk_protocol::audit::{
    EventDetail, Hash, Leaf, LogReceipt, Note, NoteKey, Tree, extends, is_included, leaf_hash,
};
use crosstalk_protocol::relay::trace as trace_of;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn hash(value: &Value) -> Hash {
    let bytes = base64::decode(value.as_str().unwrap()).unwrap();
    bytes.try_into().unwrap()
}

fn hashes(value: &Value) -> Vec<Hash> {
    value.as_array().unwrap().iter().map(hash).collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}

fn refuse(why: impl ToString) -> Value {
    json!({"why": why.to_string()})
}

fn holds(is_so: bool) -> Result<Value, Value> {
    match is_so {
        true => Ok(json!({})),
        false => Err(refuse("it does not hold")),
    }
}

fn checkpoint(note: &str, key: &str) -> Result<Value, Value> {
    let key = NoteKey::parse(key).map_err(refuse)?;
    let opened = Note::parse(note)
        .and_then(|n| n.open(&key))
        .map_err(refuse)?;
    let root = base64::encode(&opened.root);
    Ok(json!({"origin": opened.origin, "size": opened.size, "root": root}))
}

fn checked(input: &Value) -> Result<Value, Value> {
    let files = input["files"].as_object().unwrap();
    let bytes = |(name, text): (&String, &Value)| {
        (name.clone(), text.as_str().unwrap().as_bytes().to_vec())
    };
    let files: BTreeMap<String, Vec<u8>> = files.iter().map(bytes).collect();
    let key = NoteKey::parse(text(&input["key"])).map_err(refuse)?;
    let held = input["held"].as_array().cloned().unwrap_or_default();
    let held: Vec<String> = held.iter().map(|n| text(n).to_owned()).collect();
    let against = Against::new(Some(&key), &held);
    let checked = bundle::check(&files, &against, &mut |_, _| {}).map_err(|wrong| {
        let is_fork = matches!(wrong.trouble, BundleFault::Fork(_));
        json!({"file": wrong.file, "fork": is_fork, "why": wrong.what})
    })?;
    let others = checked.others.iter().map(|(chain, report)| {
        json!({
            "chain": chain.0, "origin": report.checkpoint.origin, "size": report.checkpoint.size,
            "messages": report.messages,
        })
    });
    Ok(json!({
        "size": checked.checkpoint.size, "messages": checked.messages, "all": checked.is_all,
        "chains": others.collect::<Vec<Value>>(),
    }))
}

pub(super) fn audit(what: &str, input: &Value) -> Result<Value, Value> {
    let number = |name: &str| input[name].as_u64().unwrap();
    match what {
        "leaf" => {
            let leaf = Leaf::parse(text(&input["line"])).map_err(refuse)?;
            let digest = |d: Option<crosstalk_envelope::meta::Digest>| d.map(|d| d.to_string());
            Ok(json!({
                "kind": leaf.kind.as_str(), "at": leaf.at.to_string(), "message": leaf.id,
                "canonical": digest(leaf.canonical), "raw": digest(leaf.raw), "detail": digest(leaf.detail),
            }))
        }
        "detail" => {
            let salt = base64::decode(text(&input["salt"])).unwrap();
            let detail = EventDetail::parse(text(&input["detail"]));
            let detail = detail.ok_or_else(|| refuse("no detail"))?;
            Ok(json!({"digest": detail.digest(&salt).to_string()}))
        }
        "root" => {
            let leaves = input["leaves"].as_array().unwrap().iter();
            let tree = Tree::of(leaves.map(|l| leaf_hash(text(l).as_bytes())));
            let root = tree.root(tree.size()).unwrap();
            Ok(json!({"root": base64::encode(&root)}))
        }
        "inclusion" => {
            let leaf = leaf_hash(text(&input["leaf"]).as_bytes());
            let path = hashes(&input["path"]);
            let (index, size) = (number("index"), number("size"));
            holds(is_included(
                &leaf,
                index,
                size,
                &path,
                &hash(&input["root"]),
            ))
        }
        "consistency" => {
            let (from, to) = (number("from"), number("to"));
            let (old, new) = (hash(&input["old"]), hash(&input["new"]));
            holds(extends(from, &old, to, &new, &hashes(&input["path"])))
        }
        "key" => {
            let key = NoteKey::parse(text(&input["key"])).map_err(refuse)?;
            Ok(json!({"name": key.name(), "record": key.key().record()}))
        }
        "checkpoint" => checkpoint(text(&input["note"]), text(&input["key"])),
        "receipt" => {
            let key = NoteKey::parse(text(&input["key"])).map_err(refuse)?;
            let receipt = LogReceipt::parse(text(&input["receipt"])).map_err(refuse)?;
            let opened = receipt.open(&key).map_err(refuse)?;
            receipt.is_of(text(&input["message"])).map_err(refuse)?;
            Ok(json!({"index": receipt.index, "size": opened.size}))
        }
        "bundle" => checked(input),
        other => panic!("nothing is called {other}"),
    }
}

pub(super) fn trace(q: &CaseQuestion) -> Reply {
    let text = input(q)?;
    let document = Document::parse(&text, Reading::Strict);
    let key = q.get("key").map(|k| PublicKey::parse_record(k).unwrap());
    let steps = trace_of(&document, &|_| key.into_iter().collect());
    let hop = |step: &crosstalk_protocol::relay::HopStep| {
        json!({
            "by": step.hop.as_ref().map(|h| &h.received_by),
            "signature": step.signed.as_str(),
            "faults": step.faults.iter().map(|f| f.as_str()).collect::<Vec<_>>(),
        })
    };
    Ok(json!({"hops": steps.iter().map(hop).collect::<Vec<Value>>()}))
}
