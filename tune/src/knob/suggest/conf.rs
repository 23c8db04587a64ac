//! nginx's configuration, with its includes: directives and their positions.

use std::fs;
use std::path::{Path, PathBuf};

/// Deeper than any intended nesting of includes.
const DEPTH: usize = 16;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Directive {
    pub(super) name: String,
    pub(super) arguments: Vec<String>,
    /// The blocks around it, outermost first.
    pub(super) within: Vec<String>,
    pub(super) file: PathBuf,
    pub(super) line: usize,
}

#[derive(Debug)]
enum Token {
    Word(String),
    End,
    Open,
    Close,
}

/// All directives of a file; includes are relative to `prefix`. Unreadable files are skipped.
pub(super) fn read(file: &Path, prefix: &Path) -> Vec<Directive> {
    let mut directives = Vec::new();
    include(file, prefix, &mut Vec::new(), 0, &mut directives);
    directives
}

/// The same for a text, such as `-g`'s.
pub(super) fn read_text(text: &str, file: &Path, prefix: &Path) -> Vec<Directive> {
    let mut directives = Vec::new();
    parse(text, file, prefix, &mut Vec::new(), 0, &mut directives);
    directives
}

fn include(file: &Path, prefix: &Path, within: &mut Vec<String>, depth: usize, found: &mut Vec<Directive>) {
    if depth < DEPTH
        && let Ok(text) = fs::read_to_string(file)
    {
        parse(&text, file, prefix, within, depth, found);
    }
}

fn parse(
    text: &str,
    file: &Path,
    prefix: &Path,
    within: &mut Vec<String>,
    depth: usize,
    found: &mut Vec<Directive>,
) {
    let outside = within.len();
    let mut words: Vec<String> = Vec::new();
    let mut begin = 0;
    for (line, token) in tokens(text) {
        match token {
            Token::Word(word) => {
                if words.is_empty() {
                    begin = line;
                }
                words.push(word);
            }
            Token::Close => within.truncate(within.len().saturating_sub(1).max(outside)),
            Token::End | Token::Open if words.is_empty() => {}
            end => {
                let name = words.remove(0);
                let arguments = std::mem::take(&mut words);
                if name == "include" {
                    for path in arguments.iter().flat_map(|pattern| matching(&prefix.join(pattern))) {
                        include(&path, prefix, within, depth + 1, found);
                    }
                }
                let file = file.to_owned();
                found.push(Directive {
                    name: name.clone(),
                    arguments,
                    within: within.clone(),
                    file,
                    line: begin,
                });
                if matches!(end, Token::Open) {
                    within.push(name);
                }
            }
        }
    }
    within.truncate(outside);
}

fn tokens(text: &str) -> Vec<(usize, Token)> {
    let mut tokens = Vec::new();
    let mut line = 1;
    let mut word: Option<String> = None;
    let mut characters = text.chars().peekable();
    while let Some(c) = characters.next() {
        line += usize::from(c == '\n');
        match c {
            '#' if word.is_none() => while characters.next_if(|c| *c != '\n').is_some() {},
            '"' | '\'' if word.is_none() => {
                let mut quoted = String::new();
                while let Some(next) = characters.next().filter(|next| *next != c) {
                    line += usize::from(next == '\n');
                    quoted.push(if next == '\\' { characters.next().unwrap_or('\\') } else { next });
                }
                tokens.push((line, Token::Word(quoted)));
            }
            // A variable: `${name}`.
            '{' if word.as_ref().is_some_and(|word| word.ends_with('$')) => {
                let word = word.get_or_insert_default();
                word.push(c);
                while let Some(next) = characters.next_if(|next| *next != '}') {
                    word.push(next);
                }
                word.extend(characters.next());
            }
            ';' | '{' | '}' | ' ' | '\t' | '\r' | '\n' => {
                tokens.extend(word.take().map(|word| (line - usize::from(c == '\n'), Token::Word(word))));
                match c {
                    ';' => tokens.push((line, Token::End)),
                    '{' => tokens.push((line, Token::Open)),
                    '}' => tokens.push((line, Token::Close)),
                    _ => {}
                }
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    tokens.extend(word.map(|word| (line, Token::Word(word))));
    tokens
}

/// The files that match a pattern, with a `*` in its last part standing for anything.
fn matching(pattern: &Path) -> Vec<PathBuf> {
    let name = pattern.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let Some((before, behind)) = name.split_once('*') else { return vec![pattern.to_owned()] };
    let entries = fs::read_dir(pattern.parent().unwrap_or(Path::new("."))).into_iter().flatten().flatten();
    let mut paths: Vec<_> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            // A star does not match hidden files.
            !name.starts_with('.')
                && name.len() >= before.len() + behind.len()
                && name.starts_with(before)
                && name.ends_with(behind)
        })
        .collect();
    paths.sort();
    paths
}
