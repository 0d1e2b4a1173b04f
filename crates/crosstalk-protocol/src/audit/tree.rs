//! The Merkle tree of RFC 6962 (AUD-010 to AUD-012): roots and proofs from stored hashes, and their verification, which needs
//! nothing but the proof.

use crosstalk_envelope::meta::Digest;
use std::convert::Infallible;

/// A hash of the tree.
pub type Hash = [u8; 32];

/// The hash of a leaf.
///
/// ```
/// use crosstalk_protocol::audit::{leaf_hash, node_hash, root};
/// let leaves = [leaf_hash(b"a"), leaf_hash(b"b")];
/// let tree = crosstalk_protocol::audit::Tree::of(leaves);
/// assert_eq!(tree.root(2), Some(node_hash(&leaves[0], &leaves[1])));
/// ```
pub fn leaf_hash(data: &[u8]) -> Hash {
    let mut bytes = Vec::with_capacity(data.len() + 1);
    bytes.push(0);
    bytes.extend_from_slice(data);
    Digest::of(&bytes).0
}

/// The hash of what is above two others.
pub fn node_hash(left: &Hash, right: &Hash) -> Hash {
    let mut bytes = [1; 65];
    let halves = left.iter().chain(right);
    for (byte, from) in bytes.iter_mut().skip(1).zip(halves) {
        *byte = *from;
    }
    Digest::of(&bytes).0
}

/// Where hashes come from: that of the `place`-th complete subtree with `1 << level` leaves. It is asked only for those
/// that are complete at the size in question.
pub trait Hashes {
    /// The error of a source that can't read a hash.
    type Error;

    /// The hash of a complete subtree.
    ///
    /// # Errors
    /// If it can't be had.
    fn at(&mut self, level: u32, place: u64) -> Result<Hash, Self::Error>;
}

/// The largest power of two below a number that is at least 2.
const fn split(count: u64) -> u64 {
    1 << (u64::BITS - 1 - (count - 1).leading_zeros())
}

/// The hash of the leaves from a place on; the place is a multiple of a power of two that is not below the count.
fn part<H: Hashes>(hashes: &mut H, from: u64, count: u64) -> Result<Hash, H::Error> {
    // The complete subtrees from left to right, joined from the right.
    let (mut from, mut count, mut stack) = (from, count, Vec::new());
    while count > 0 {
        let level = u64::BITS - 1 - count.leading_zeros();
        stack.push(hashes.at(level, from >> level)?);
        from += 1 << level;
        count -= 1 << level;
    }
    let last = stack.pop().unwrap_or_else(|| Digest::of(b"").0);
    Ok(stack
        .iter()
        .rfold(last, |right, left| node_hash(left, &right)))
}

/// The root of the first so many leaves.
///
/// # Errors
/// The error of the source of hashes.
pub fn root<H: Hashes>(hashes: &mut H, size: u64) -> Result<Hash, H::Error> {
    part(hashes, 0, size)
}

/// The proof that a leaf is among the first so many: its siblings on the way to the root. Empty where there is no such
/// leaf.
///
/// # Errors
/// The error of the source of hashes.
pub fn inclusion<H: Hashes>(hashes: &mut H, index: u64, size: u64) -> Result<Vec<Hash>, H::Error> {
    let (mut from, mut count, mut path) = (0, size, Vec::new());
    if index >= size {
        return Ok(path);
    }
    while count > 1 {
        let left = split(count);
        if index < from + left {
            path.push(part(hashes, from + left, count - left)?);
            count = left;
        } else {
            path.push(part(hashes, from, left)?);
            from += left;
            count -= left;
        }
    }
    path.reverse();
    Ok(path)
}

/// The proof that the first so many leaves are still the first ones of a larger tree. Empty where there is nothing to
/// prove.
///
/// # Errors
/// The error of the source of hashes.
pub fn consistency<H: Hashes>(hashes: &mut H, from: u64, to: u64) -> Result<Vec<Hash>, H::Error> {
    let (mut start, mut old, mut count, mut path) = (0, from, to, Vec::new());
    if from == 0 || from >= to {
        return Ok(path);
    }
    while old != count {
        let left = split(count);
        if old <= left {
            path.push(part(hashes, start + left, count - left)?);
            count = left;
        } else {
            path.push(part(hashes, start, left)?);
            start += left;
            old -= left;
            count -= left;
        }
    }
    if start > 0 {
        path.push(part(hashes, start, count)?);
    }
    path.reverse();
    Ok(path)
}

/// Whether a leaf is at its index in the tree with this root.
pub fn is_included(leaf: &Hash, index: u64, size: u64, path: &[Hash], root: &Hash) -> bool {
    if index >= size {
        return false;
    }
    let (mut node, mut last, mut hash) = (index, size - 1, *leaf);
    for sibling in path {
        if last == 0 {
            return false;
        }
        if node & 1 == 1 || node == last {
            hash = node_hash(sibling, &hash);
            up(&mut node, &mut last);
        } else {
            hash = node_hash(&hash, sibling);
        }
        node >>= 1;
        last >>= 1;
    }
    last == 0 && hash == *root
}

/// Goes to where a node is a right child.
fn up(node: &mut u64, last: &mut u64) {
    while *node & 1 == 0 && *node != 0 {
        *node >>= 1;
        *last >>= 1;
    }
}

/// Whether a tree is the beginning of another: the first `from` leaves of `new` have the root `old`.
pub fn extends(from: u64, old: &Hash, to: u64, new: &Hash, path: &[Hash]) -> bool {
    if from == to {
        return path.is_empty() && old == new;
    }
    if from > to {
        return false;
    }
    if from == 0 {
        return path.is_empty() && *old == Digest::of(b"").0;
    }
    let mut path = path.iter();
    let first = match from.is_power_of_two() {
        true => Some(old),
        false => path.next(),
    };
    let Some(first) = first else { return false };
    let (mut node, mut last) = (from - 1, to - 1);
    while node & 1 == 1 {
        node >>= 1;
        last >>= 1;
    }
    let (mut before, mut after) = (*first, *first);
    for sibling in path {
        if last == 0 {
            return false;
        }
        if node & 1 == 1 || node == last {
            before = node_hash(sibling, &before);
            after = node_hash(sibling, &after);
            up(&mut node, &mut last);
        } else {
            after = node_hash(&after, sibling);
        }
        node >>= 1;
        last >>= 1;
    }
    last == 0 && before == *old && after == *new
}

/// A tree whose leaves are all at hand.
#[derive(Clone, Debug, Default)]
pub struct Tree(Vec<Vec<Hash>>);

impl Tree {
    /// The tree over the hashes of leaves.
    pub fn of(leaves: impl IntoIterator<Item = Hash>) -> Self {
        let mut levels = vec![leaves.into_iter().collect::<Vec<Hash>>()];
        while let Some(below) = levels.last().filter(|l| l.len() > 1) {
            let (pairs, _) = below.as_chunks::<2>();
            let above = pairs.iter().map(|[l, r]| node_hash(l, r)).collect();
            levels.push(above);
        }
        Self(levels)
    }

    /// How many leaves there are.
    pub fn size(&self) -> u64 {
        let leaves = self.0.first().map_or(0, Vec::len);
        u64::try_from(leaves).unwrap_or(u64::MAX)
    }

    /// The root of the first so many leaves; nothing if there are fewer.
    pub fn root(&self, size: u64) -> Option<Hash> {
        let all = || root(&mut &*self, size).unwrap_or_else(|never| match never {});
        (size <= self.size()).then(all)
    }

    /// The proof that a leaf is among the first so many.
    pub fn inclusion(&self, index: u64, size: u64) -> Vec<Hash> {
        match size <= self.size() {
            true => inclusion(&mut &*self, index, size).unwrap_or_else(|never| match never {}),
            false => Vec::new(),
        }
    }

    /// The proof that the first so many are the beginning of more.
    pub fn consistency(&self, from: u64, to: u64) -> Vec<Hash> {
        match to <= self.size() {
            true => consistency(&mut &*self, from, to).unwrap_or_else(|never| match never {}),
            false => Vec::new(),
        }
    }
}

impl Hashes for &Tree {
    type Error = Infallible;

    fn at(&mut self, level: u32, place: u64) -> Result<Hash, Infallible> {
        let level = usize::try_from(level).ok().and_then(|l| self.0.get(l));
        let place = usize::try_from(place).ok();
        // The caller has checked the size.
        let hash = level.zip(place).and_then(|(l, p)| l.get(p));
        Ok(hash.copied().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ct_merkle::RootHash;
    use ct_merkle::mem_backed_tree::MemoryBackedTree;
    use sha2::Sha256;

    fn data(n: u64) -> Vec<u8> {
        format!("leaf {n}").into_bytes()
    }

    fn tree(size: u64) -> Tree {
        Tree::of((0..size).map(|n| leaf_hash(&data(n))))
    }

    /// The vectors that the clients of certificate transparency share.
    #[test]
    fn roots_are_those_of_rfc_6962() {
        let leaves: [&[u8]; 8] = [
            b"",
            b"\0",
            b"\x10",
            b"\x20\x21",
            b"\x30\x31",
            b"\x40\x41\x42\x43",
            b"\x50\x51\x52\x53\x54\x55\x56\x57",
            b"\x60\x61\x62\x63\x64\x65\x66\x67\x68\x69\x6a\x6b\x6c\x6d\x6e\x6f",
        ];
        let tree = Tree::of(leaves.iter().map(|l| leaf_hash(l)));
        let expected = [
            "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
            "6e340b9cffb37a989ca544e6bb780a2c78901d3fb33738768511a30617afa01d",
            "fac54203e7cc696cf0dfcb42c92a1d9dbaf70ad9e621f4bd8d98662f00e3c125",
            "aeb6bcfe274b70a14fb067a5e5578264db0fa9b51af5e0ba159158f329e06e77",
            "d37ee418976dd95753c1c73862b9398fa2a2cf9b4ff0fdfe8b30cd95209614b7",
            "4e3bbb1f7b478dcfe71fb631631519a3bca12c9aefca1612bfce4c13a86264d4",
            "76e67dadbcdf1e10e1b74ddc608abd2f98dfb16fbce75277b5232a127f2087ef",
            "ddb89be403809e325750d3d263cd78929c2942b7942a34b77e122c9594a74c8c",
            "5dc9da79a70659a9ad559cb701ded9a2ab9d823aad2f4960cfe370eff4604328",
        ];
        for (size, hex) in (0..).zip(expected) {
            let root = tree.root(size).unwrap();
            assert_eq!(Digest(root).to_string(), format!("sha256:{hex}"), "{size}");
        }
    }

    /// Another implementation has the same roots and the same proofs, and both accept each other's.
    #[test]
    fn proofs_are_those_of_another_implementation() {
        const MOST: u64 = 70;
        let ours = tree(MOST);
        let mut theirs = MemoryBackedTree::<Sha256, Vec<u8>>::new();
        let mut roots: Vec<RootHash<Sha256>> = vec![theirs.root()];
        for size in 1..=MOST {
            theirs.push(data(size - 1));
            roots.push(theirs.root());
            assert_eq!(
                ours.root(size).unwrap(),
                <[u8; 32]>::from(*theirs.root().as_bytes())
            );
            for index in 0..size {
                let path = ours.inclusion(index, size);
                let proof = theirs.prove_inclusion(usize::try_from(index).unwrap());
                assert_eq!(path.as_flattened(), proof.as_bytes(), "{index} of {size}");
            }
            for from in 1..=size {
                let more = usize::try_from(size - from).unwrap();
                let proof = theirs.prove_consistency(more);
                let path = ours.consistency(from, size);
                assert_eq!(path.as_flattened(), proof.as_bytes(), "{from} to {size}");
            }
        }
    }

    #[test]
    fn only_the_right_proof_holds() {
        for size in 1..=40 {
            let tree = tree(size);
            let root = tree.root(size).unwrap();
            for index in 0..size {
                let leaf = leaf_hash(&data(index));
                let path = tree.inclusion(index, size);
                assert!(is_included(&leaf, index, size, &path, &root));
                for other in (0..size).filter(|o| *o != index) {
                    assert!(!is_included(&leaf, other, size, &path, &root));
                    let swapped = tree.inclusion(other, size);
                    assert!(!is_included(&leaf, index, size, &swapped, &root));
                }
                for cut in 0..path.len() {
                    assert!(!is_included(&leaf, index, size, &path[..cut], &root));
                    let mut bent = path.clone();
                    bent[cut][31] ^= 1;
                    assert!(!is_included(&leaf, index, size, &bent, &root));
                }
                let longer = [path.as_slice(), &[[0; 32]]].concat();
                assert!(!is_included(&leaf, index, size, &longer, &root));
            }
            for from in 0..=size {
                let old = tree.root(from).unwrap();
                let path = tree.consistency(from, size);
                assert!(extends(from, &old, size, &root, &path), "{from} {size}");
                let mut other = old;
                other[0] ^= 1;
                assert!(!extends(from, &other, size, &root, &path));
                assert!(!extends(from, &old, size, &other, &path) || from == 0);
                for cut in 0..path.len() {
                    assert!(!extends(from, &old, size, &root, &path[..cut]));
                    let mut bent = path.clone();
                    bent[cut][0] ^= 0x80;
                    assert!(!extends(from, &old, size, &root, &bent));
                }
                let longer = [path.as_slice(), &[[0; 32]]].concat();
                assert!(!extends(from, &old, size, &root, &longer));
            }
            assert!(!extends(size + 1, &root, size, &root, &[]));
        }
    }

    #[test]
    fn a_proof_for_a_million_entries_is_small() {
        assert!(split(1_000_000) == 1 << 19 && split(2) == 1 && split(3) == 2);
        let tree = tree(1 << 12);
        assert_eq!(tree.inclusion(77, 1 << 12).len(), 12);
    }
}
