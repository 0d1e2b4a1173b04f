//! Forms of a text that the paste reading repairs: every repair rule, turned round, at a random place.

use unicode_normalization::UnicodeNormalization as _;

/// Random numbers that are the same in each run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % u64::try_from(limit.max(1)).unwrap()).unwrap()
    }

    fn pick<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len())]
    }
}

type Way = fn(&str, &mut Random) -> String;

/// The repairs by their rules (PST-001 to PST-028, SIG-013, SIG-014), each as its opposite.
pub const WAYS: &[(&str, Way)] = &[
    ("zero-width character", |text, random| {
        let hidden = [
            "\u{200b}", "\u{2060}", "\u{feff}", "\u{ad}", "\u{200c}", "\u{200d}",
        ];
        let hidden = random.pick(&hidden);
        inserted(text, random, hidden)
    }),
    ("no-break space", |text, random| {
        let blank = random.pick(&["\u{a0}", "\u{202f}", "\u{2007}"]);
        changed(text, random, |c| c == ' ', |_| (*blank).to_owned())
    }),
    ("decimal entity", |text, random| {
        changed(
            text,
            random,
            |c| c != '\n',
            |c| format!("&#{};", u32::from(c)),
        )
    }),
    ("hexadecimal entity", |text, random| {
        changed(
            text,
            random,
            |c| c != '\n',
            |c| format!("&#x0{:X};", u32::from(c)),
        )
    }),
    ("named entity", |text, random| {
        let name = |c| match c {
            '<' => "&lt;",
            '>' => "&gt;",
            '&' => "&amp;",
            '"' => "&quot;",
            '\'' => "&apos;",
            _ => "&nbsp;",
        };
        changed(
            text,
            random,
            |c| "<>&\"' ".contains(c),
            |c| name(c).to_owned(),
        )
    }),
    ("backslash", |text, random| {
        changed(
            text,
            random,
            |c| c.is_ascii_punctuation(),
            |c| format!("\\{c}"),
        )
    }),
    ("typographic quote", |text, random| {
        let (single, double) = (
            *random.pick(&['‘', '’', '‛']),
            *random.pick(&['“', '”', '‟']),
        );
        let sign = |c| if c == '"' { double } else { single };
        changed(
            text,
            random,
            |c| c == '"' || c == '\'',
            |c| sign(c).to_string(),
        )
    }),
    ("typographic dash", |text, random| {
        let dash = *random.pick(&['‐', '‑', '–', '—']);
        changed(text, random, |c| c == '-', |_| dash.to_string())
    }),
    ("long dash", |text, _| text.replacen("--", "—", 1)),
    ("ellipsis", |text, _| text.replacen("...", "…", 1)),
    ("shifted body", |text, random| {
        let shift = random.pick(&["  ", "    ", "\t"]);
        body_lines(text, |line| format!("{shift}{line}"))
    }),
    ("body without indent", |text, _| {
        body_lines(text, |line| line.trim_start().to_owned())
    }),
    ("tabs", |text, _| {
        body_lines(text, |line| line.replacen("  ", "\t", 1))
    }),
    ("other case", |text, random| {
        let upper = random.below(2) == 0;
        one_line(text, random, |line| match (line.split_once(':'), upper) {
            (Some((name, value)), true) => format!("{}:{value}", name.to_uppercase()),
            (Some((name, value)), false) => format!("{name}:{}", value.to_lowercase()),
            (None, _) => line.to_lowercase(),
        })
    }),
    ("arrow", |text, random| {
        let arrow = random.pick(&["->", "=>", "➔", "&rarr;", " -> ", "–>"]);
        text.replacen('→', arrow, 1)
    }),
    ("quoted", |text, _| {
        all_lines(text, |line| format!("> {line}"))
    }),
    ("fenced", |text, _| format!("```\n{text}```\n")),
    ("indented", |text, _| {
        all_lines(text, |line| format!("    {line}"))
    }),
    ("bold", |text, random| {
        one_line(text, random, |line| format!("**{line}**"))
    }),
    ("code", |text, random| {
        one_line(text, random, |line| format!("`{line}`"))
    }),
    ("bold name", |text, random| {
        one_line(text, random, |line| match line.split_once(':') {
            Some((name, value)) => format!("**{name}:**{value}"),
            None => line.to_owned(),
        })
    }),
    ("CRLF", |text, _| text.replace('\n', "\r\n")),
    ("other line end", |text, random| {
        let end = random.pick(&["\r", "\u{2028}", "\u{2029}", "\u{85}", "\r\n"]);
        changed(text, random, |c| c == '\n', |_| (*end).to_owned())
    }),
    ("padding", |text, random| {
        let padding = random.pick(&[" ", "\t", "\u{a0}", "\u{3000}", "  "]);
        one_line(text, random, |line| format!("{line}{padding}"))
    }),
    ("blank line", |text, random| {
        one_line(text, random, |line| format!("{line}\n"))
    }),
    ("wrapped", |text, random| {
        changed(text, random, |c| c == ' ', |_| "\n".to_owned())
    }),
    ("wrapped with indent", |text, random| {
        changed(text, random, |c| c == ' ', |_| "\n  ".to_owned())
    }),
    ("numbered", |text, _| {
        let lines = (1..).zip(text.lines());
        lines.fold(String::new(), |out, (n, line)| {
            out + &format!("{n:3} {line}\n")
        })
    }),
    ("framed", |text, _| {
        all_lines(text, |line| format!("│ {line} │"))
    }),
    ("decomposed", |text, _| text.nfd().collect()),
    ("wide letter", |text, random| {
        let wide = |c| char::from_u32(u32::from(c) + 0xfee0).unwrap_or(c);
        changed(
            text,
            random,
            |c| c.is_ascii_graphic(),
            |c| wide(c).to_string(),
        )
    }),
    ("line twice", |text, random| {
        one_line(text, random, |line| format!("{line}\n{line}"))
    }),
    ("other value below", |text, random| {
        one_line(text, random, |line| match line.split_once(": ") {
            Some((name, _)) => format!("{line}\n{name}: other"),
            None => line.to_owned(),
        })
    }),
    ("no end", |text, _| text.replace("[[END]]\n", "")),
    ("spaced end", |text, _| text.replace("[[END]]", "[[ end ]]")),
    ("escape sequence", |text, random| {
        inserted(text, random, "\u{1b}[1m")
    }),
    ("control character", |text, random| {
        inserted(text, random, "\u{7}")
    }),
    ("blank before the colon", |text, random| {
        one_line(text, random, |line| line.replacen(':', " :", 1))
    }),
    ("empty header", |text, _| {
        text.replacen("\nuser:", "\nMood:\nuser:", 1)
    }),
    ("prose", |text, _| {
        format!("Sure, here it is:\n\n{text}\nDoes that help?\n")
    }),
    ("byte order mark", |text, _| format!("\u{feff}{text}")),
];

/// A text changed in one to three ways, and how.
pub fn variant(text: &str, random: &mut Random) -> (String, String) {
    let (mut out, mut names) = (text.to_owned(), Vec::new());
    for _ in 0..=random.below(3) {
        let (name, way) = random.pick(WAYS);
        out = way(&out, random);
        names.push(*name);
    }
    (out, names.join(", "))
}

fn inserted(text: &str, random: &mut Random, what: &str) -> String {
    let places: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let at = places.get(random.below(places.len())).copied().unwrap_or(0);
    format!("{}{what}{}", &text[..at], &text[at..])
}

fn changed(
    text: &str,
    random: &mut Random,
    is_meant: impl Fn(char) -> bool,
    change: impl Fn(char) -> String,
) -> String {
    let meant = |(_, c): &(usize, char)| is_meant(*c);
    let places: Vec<(usize, char)> = text.char_indices().filter(meant).collect();
    let Some((at, c)) = places.get(random.below(places.len())) else {
        return text.to_owned();
    };
    format!(
        "{}{}{}",
        &text[..*at],
        change(*c),
        &text[at + c.len_utf8()..]
    )
}

fn all_lines(text: &str, change: impl Fn(&str) -> String) -> String {
    let lines = text.lines().map(change);
    lines.fold(String::new(), |out, line| out + &line + "\n")
}

fn one_line(text: &str, random: &mut Random, change: impl Fn(&str) -> String) -> String {
    let meant = random.below(text.lines().count());
    let lines = text.lines().enumerate();
    lines.fold(String::new(), |out, (n, line)| match n == meant {
        true => out + &change(line) + "\n",
        false => out + line + "\n",
    })
}

fn body_lines(text: &str, change: impl Fn(&str) -> String) -> String {
    let mut is_body = false;
    all_lines(text, |line| line.to_owned())
        .lines()
        .fold(String::new(), |out, line| {
            let is_end = line.starts_with("sig:") || line.starts_with("[[");
            is_body &= !is_end;
            let line_out = match is_body && !line.is_empty() {
                true => change(line),
                false => line.to_owned(),
            };
            is_body |= line.starts_with("body:");
            out + &line_out + "\n"
        })
}
