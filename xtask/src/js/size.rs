//! The size of a WebAssembly module, by crate: the names of its functions say which crate each came from.

use std::collections::BTreeMap;
use std::fmt::Write as _;

const CUSTOM: u8 = 0;
const IMPORTS: u8 = 2;
const CODE: u8 = 10;
const DATA: u8 = 11;
/// The part of the section `name` that names functions.
const FUNCTION_NAMES: u8 = 1;

/// A module as its sections.
pub struct WasmModule {
    header: Vec<u8>,
    sections: Vec<(u8, Vec<u8>)>,
}

impl WasmModule {
    /// Splits a module into sections.
    pub fn read(bytes: &[u8]) -> Option<Self> {
        let (header, rest) = bytes.split_at_checked(8)?;
        let mut reader = Reader(rest);
        let mut sections = Vec::new();
        while !reader.0.is_empty() {
            sections.push((reader.byte()?, reader.block()?.to_vec()));
        }
        let header = header.to_vec();
        Some(Self { header, sections })
    }

    /// The module without names and other custom sections.
    pub fn stripped(&self) -> Vec<u8> {
        let mut out = self.header.clone();
        for (id, content) in self.sections.iter().filter(|(id, _)| *id != CUSTOM) {
            out.push(*id);
            write_number(content.len(), &mut out);
            out.extend_from_slice(content);
        }
        out
    }

    /// The number of bytes without custom sections.
    pub fn size(&self) -> usize {
        self.stripped().len()
    }

    /// A table of the bytes of code that each crate costs, the data, and everything else.
    pub fn costs(&self) -> String {
        let costs = self.costs_by_crate().unwrap_or_default();
        let data: usize = self.of_kind(DATA).map(<[u8]>::len).sum();
        let code: usize = costs.values().sum();
        let mut rows: Vec<(String, usize)> = costs.into_iter().collect();
        rows.push(("(data)".to_owned(), data));
        rows.push((
            "(everything else)".to_owned(),
            self.size().saturating_sub(code + data),
        ));
        rows.sort_by_key(|(_, bytes)| std::cmp::Reverse(*bytes));
        let mut table = String::new();
        for (name, bytes) in rows {
            let _ = writeln!(table, "{bytes:>9}  {name}");
        }
        table
    }

    fn of_kind(&self, kind: u8) -> impl Iterator<Item = &[u8]> {
        let sections = self.sections.iter().filter(move |(id, _)| *id == kind);
        sections.map(|(_, content)| content.as_slice())
    }

    fn costs_by_crate(&self) -> Option<BTreeMap<String, usize>> {
        let imported = self
            .of_kind(IMPORTS)
            .next()
            .map_or(Some(0), imported_functions)?;
        let names = self.of_kind(CUSTOM).find_map(function_names)?;
        let mut code = Reader(self.of_kind(CODE).next()?);
        let mut costs = BTreeMap::new();
        for index in 0..code.number()? {
            let bytes = code.block()?.len();
            let name = names.get(&(index + imported)).map_or("", String::as_str);
            *costs.entry(crate_of(name)).or_default() += bytes;
        }
        Some(costs)
    }
}

/// The number of imported functions, which are counted before those of the module.
fn imported_functions(section: &[u8]) -> Option<usize> {
    let mut reader = Reader(section);
    let mut functions = 0;
    for _ in 0..reader.number()? {
        reader.block()?;
        reader.block()?;
        match reader.byte()? {
            0 => {
                reader.number()?;
                functions += 1;
            }
            1 => {
                reader.byte()?;
                reader.limits()?;
            }
            2 => reader.limits()?,
            _ => {
                reader.byte()?;
                reader.byte()?;
            }
        }
    }
    Some(functions)
}

/// The names of functions by index, if this custom section has them.
fn function_names(section: &[u8]) -> Option<BTreeMap<usize, String>> {
    let mut reader = Reader(section);
    if reader.block()? != b"name" {
        return None;
    }
    while !reader.0.is_empty() {
        let (part, content) = (reader.byte()?, reader.block()?);
        if part == FUNCTION_NAMES {
            let mut reader = Reader(content);
            let mut names = BTreeMap::new();
            for _ in 0..reader.number()? {
                let index = reader.number()?;
                let name = String::from_utf8_lossy(reader.block()?).into_owned();
                names.insert(index, name);
            }
            return Some(names);
        }
    }
    None
}

/// The crate that a function came from, by its demangled name: `<toml::de::Error as core::fmt::Display>::fmt` is of `toml`.
fn crate_of(name: &str) -> String {
    let name = name.trim_start_matches(['<', '&', '*', '(', '[']);
    let name = ["dyn ", "mut ", "const "]
        .iter()
        .fold(name, |name, word| name.trim_start_matches(word));
    match name.split_once("::") {
        Some((first, _)) if first.chars().all(|c| c.is_alphanumeric() || c == '_') => {
            first.to_owned()
        }
        Some(_) => "(other)".to_owned(),
        // The entry points and the allocator have plain names.
        None => "(entry points)".to_owned(),
    }
}

fn write_number(mut number: usize, out: &mut Vec<u8>) {
    loop {
        let low = u8::try_from(number & 0x7f).unwrap_or_default();
        number >>= 7;
        if number == 0 {
            out.push(low);
            return;
        }
        out.push(low | 0x80);
    }
}

/// The rest of some bytes.
struct Reader<'b>(&'b [u8]);

impl<'b> Reader<'b> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    /// A number in LEB128.
    fn number(&mut self) -> Option<usize> {
        let (mut value, mut shift) = (0_usize, 0_u32);
        loop {
            let byte = self.byte()?;
            value |= usize::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                return Some(value);
            }
            shift += 7;
        }
    }

    /// Bytes behind their number.
    fn block(&mut self) -> Option<&'b [u8]> {
        let length = self.number()?;
        let (block, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(block)
    }

    /// The limits of a table or a memory.
    fn limits(&mut self) -> Option<()> {
        let has_maximum = self.byte()? & 1 == 1;
        self.number()?;
        if has_maximum {
            self.number()?;
        }
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A module with a function `a::f` of three bytes, and a section that is left out.
    const MODULE: &[u8] = b"\0asm\x01\0\0\0\x0a\x05\x01\x03\0\x01\x0b\0\x0e\x04name\x01\x07\x01\0\x04a::f\0\x03\x01x!";

    #[test]
    fn code_is_counted_by_crate_and_names_are_removed() {
        let module = WasmModule::read(MODULE).unwrap();
        assert_eq!(
            module.costs_by_crate().unwrap(),
            BTreeMap::from([("a".to_owned(), 3)])
        );
        assert_eq!(module.stripped(), MODULE[..15]);
        assert_eq!(module.size(), 15);
        assert!(WasmModule::read(&MODULE[..12]).is_none());
    }

    #[test]
    fn a_name_says_its_crate() {
        for (name, of) in [
            ("crosstalk_envelope::paste::scan", "crosstalk_envelope"),
            ("<&toml::de::Error as core::fmt::Display>::fmt", "toml"),
            ("<dyn core::any::Any>::is", "core"),
            ("__wbindgen_malloc", "(entry points)"),
            ("<(A, B) as core::x>::y", "(other)"),
        ] {
            assert_eq!(crate_of(name), of, "{name}");
        }
    }
}
