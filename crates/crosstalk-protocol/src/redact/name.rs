//! Names from a list (RED-016).

use super::view::{View, is_word};
use super::{PiiKind, PiiMatch};
use std::collections::HashMap;

/// How much white space may stand between two words of a name.
const MOST_SPACE: usize = 64;

/// The names as a tree of symbols: a text is walked once, whatever the number of names.
#[derive(Clone, Debug, Default)]
pub(super) struct Names {
    /// The first node is the root.
    nodes: Vec<NameNode>,
}

#[derive(Clone, Debug, Default)]
struct NameNode {
    next: HashMap<char, usize>,
    is_end: bool,
}

impl Names {
    /// Folds a list of names. A text with fewer than two letters is not a name.
    pub(super) fn new<'n>(names: impl Iterator<Item = &'n str>) -> Self {
        let mut tree = Self::default();
        tree.nodes.push(NameNode::default());
        for name in names {
            tree.add(name);
        }
        tree
    }

    fn add(&mut self, name: &str) {
        let view = View::of(name, [].iter());
        let symbols: String = (0..view.len()).map(|i| view.at(i)).collect();
        let words: Vec<&str> = symbols.split_whitespace().collect();
        let folded = words.join(" ");
        if folded.chars().filter(|c| c.is_alphanumeric()).count() < 2
            && !folded.contains(is_unspaced)
        {
            return;
        }
        let mut at = 0;
        for c in folded.chars() {
            let fresh = self.nodes.len();
            let Some(node) = self.nodes.get_mut(at) else {
                return;
            };
            at = *node.next.entry(c).or_insert(fresh);
            if at == fresh {
                self.nodes.push(NameNode::default());
            }
        }
        if let Some(node) = self.nodes.get_mut(at) {
            node.is_end = true;
        }
    }

    /// Finds the names of a view.
    pub(super) fn scan(&self, view: &View, out: &mut Vec<PiiMatch>) {
        if self.nodes.len() < 2 {
            return;
        }
        for at in 0..view.len() {
            if is_boundary(view, at)
                && let Some(end) = self.longest(view, at)
            {
                out.push(PiiMatch::new(PiiKind::Name, at..end));
            }
        }
    }

    /// The end of the longest name that begins here.
    fn longest(&self, view: &View, start: usize) -> Option<usize> {
        let mut best = None;
        let mut node = self.nodes.first()?;
        let mut at = start;
        loop {
            let (symbol, end) = match node.next.contains_key(&' ') {
                true if is_space(view.at(at)) => match space(view, at) {
                    Some(end) => (' ', end),
                    None => return best,
                },
                _ => (view.at(at), at + 1),
            };
            let Some(next) = node.next.get(&symbol).and_then(|i| self.nodes.get(*i)) else {
                return best;
            };
            node = next;
            at = end;
            if node.is_end && is_boundary(view, at) {
                best = Some(at);
            }
        }
    }
}

fn is_space(c: char) -> bool {
    matches!(c, ' ' | '\n' | '\r')
}

/// The end of the white space from a place on: it has one line end at most.
fn space(view: &View, start: usize) -> Option<usize> {
    let mut lines = 0;
    for at in start..start + MOST_SPACE {
        match view.at(at) {
            '\n' if lines > 0 => return None,
            '\n' => lines += 1,
            c if is_space(c) => {}
            _ => return Some(at),
        }
    }
    None
}

/// Whether a name may begin or end between two symbols.
fn is_boundary(view: &View, at: usize) -> bool {
    if view.splits_character(at) {
        return false;
    }
    let joins = |c: char| is_word(c) || c == '_';
    let (left, right) = (view.before(at), view.at(at));
    !joins(left) || !joins(right) || is_unspaced(left) || is_unspaced(right)
}

/// Whether a character is of a script that writes words without spaces, or ties particles to names.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{e00}'..='\u{eff}' | '\u{1000}'..='\u{109f}' | '\u{1100}'..='\u{11ff}' | '\u{1780}'..='\u{17ff}'
        | '\u{3005}'..='\u{3007}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7a3}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{323af}')
}
