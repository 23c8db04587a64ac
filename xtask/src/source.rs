//! Rust source as far as the rules need it: which parts are code, strings, or comments.

/// A file's text in two copies of the same shape, with everything else blanked.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Source {
    /// Without comments and the contents of strings.
    pub(crate) code: String,
    /// Only the contents of strings.
    pub(crate) strings: String,
}

impl Source {
    /// Splits `text`. Code from `#[cfg(test)]` to the end of the file is dropped: tests come last here.
    pub(crate) fn product(text: &str) -> Self {
        let end = text.find("\n#[cfg(test)]\nmod ").unwrap_or(text.len());
        Self::of(&text[..end])
    }

    /// Splits `text`.
    pub(crate) fn of(text: &str) -> Self {
        let mut source = Self { code: String::new(), strings: String::new() };
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            let (length, part) = token(rest, c, source.code.chars().last());
            source.push(&rest[..length], part);
            rest = &rest[length..];
        }
        source
    }

    fn push(&mut self, text: &str, part: Part) {
        let blank = |text: &str| text.chars().map(|c| if c == '\n' { '\n' } else { ' ' }).collect::<String>();
        self.code.push_str(&if part == Part::Code { text.to_owned() } else { blank(text) });
        self.strings.push_str(&if part == Part::String { text.to_owned() } else { blank(text) });
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    Code,
    String,
    Comment,
}

/// The kind of token that `rest` begins with, and its length in bytes.
fn token(rest: &str, first: char, before: Option<char>) -> (usize, Part) {
    let in_word = before.is_some_and(|c| c.is_alphanumeric() || c == '_');
    match first {
        '/' if rest.starts_with("//") => (rest.find('\n').unwrap_or(rest.len()), Part::Comment),
        '/' if rest.starts_with("/*") => (block_comment(rest), Part::Comment),
        '"' => (string(rest), Part::String),
        'r' if !in_word && raw_hashes(rest).is_some() => (raw_string(rest), Part::String),
        '\'' => (character(rest), Part::Code),
        _ => (first.len_utf8(), Part::Code),
    }
}

fn block_comment(rest: &str) -> usize {
    let mut depth = 0;
    for (at, pair) in rest.as_bytes().windows(2).enumerate() {
        match pair {
            b"/*" => depth += 1,
            b"*/" if depth == 1 => return at + 2,
            b"*/" => depth -= 1,
            _ => {}
        }
    }
    rest.len()
}

fn string(rest: &str) -> usize {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    rest.len()
}

fn raw_hashes(rest: &str) -> Option<usize> {
    let hashes = rest[1..].bytes().take_while(|&byte| byte == b'#').count();
    (rest.as_bytes().get(1 + hashes) == Some(&b'"')).then_some(hashes)
}

fn raw_string(rest: &str) -> usize {
    let hashes = raw_hashes(rest).unwrap_or_default();
    let opening = hashes + 2;
    let closing = format!("\"{}", "#".repeat(hashes));
    rest[opening..].find(&closing).map_or(rest.len(), |at| opening + at + closing.len())
}

/// The length of a character such as `'"'`; for a lifetime, of its quote only.
fn character(rest: &str) -> usize {
    let mut chars = rest.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), Some(_)) => chars.find(|&(_, c)| c == '\'').map_or(1, |(at, _)| at + 1),
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 1,
    }
}

/// Where `word` occurs in `text` as a separate word: line numbers from 1.
pub(crate) fn lines_with_word(text: &str, word: &str) -> Vec<usize> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let has_word = |line: &str| line.split(|c| !is_word(c)).any(|found| found == word);
    text.lines().enumerate().filter(|(_, line)| has_word(line)).map(|(at, _)| at + 1).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_and_strings_are_not_code() {
        let source = Source::of("let a = \"one // \\\" two\"; // three\n/* four /* five */ six */ b");
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&source.code), ["let", "a", "=", ";", "b"]);
        assert_eq!(words(&source.strings), ["\"one", "//", "\\\"", "two\""]);
    }

    #[test]
    fn raw_strings_characters_and_lifetimes() {
        let source = Source::of(r##"fn f<'a>(x: &'a str) { r#"in " side"#; '"'; '\''; var"b"; }"##);
        let strings: Vec<_> =
            source.strings.split("  ").map(str::trim).filter(|text| !text.is_empty()).collect();
        assert_eq!(strings, [r##"r#"in " side"#"##, r#""b""#]);
        assert!(source.code.contains("fn f<'a>(x: &'a str)"));
        assert!(source.code.ends_with('}'));
    }

    #[test]
    fn tests_at_the_end_are_no_product() {
        let source = Source::product("fn a() {}\n\n#[cfg(test)]\nmod tests { nginx }\n");
        assert_eq!(source.code.trim(), "fn a() {}");
    }

    #[test]
    fn words_are_whole() {
        assert_eq!(lines_with_word("unsafe_code\nunsafe {\nx.unsafe", "unsafe"), [2, 3]);
    }
}
