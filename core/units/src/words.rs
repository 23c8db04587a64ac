//! Words of a command line by systemd's rules.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};

/// Splits at spaces; quotes of both kinds keep words together, a backslash escapes as in C.
pub fn split(line: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let (mut word, mut quote) = (None::<String>, None::<char>);
    let mut characters = line.chars();
    while let Some(c) = characters.next() {
        match (c, quote) {
            (' ' | '\t', None) => words.extend(word.take()),
            ('"' | '\'', None) => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (_, Some(open)) if c == open => quote = None,
            ('\\', _) => word.get_or_insert_default().push(escaped(&mut characters)?),
            _ => word.get_or_insert_default().push(c),
        }
    }
    if let Some(quote) = quote {
        return Err(format!("a quote {quote} is not closed in `{line}`"));
    }
    words.extend(word);
    Ok(words)
}

fn escaped(characters: &mut std::str::Chars<'_>) -> Result<char, String> {
    match characters.next() {
        Some('n') => Ok('\n'),
        Some('t') => Ok('\t'),
        Some('r') => Ok('\r'),
        Some('s') => Ok(' '),
        Some('x') => {
            let digits: String = characters.by_ref().take(2).collect();
            u8::from_str_radix(&digits, 16)
                .map(char::from)
                .map_err(|_| format!("\\x{digits} is no character"))
        }
        Some(c) => Ok(c),
        None => Err("a backslash has nothing behind it".into()),
    }
}

/// `$NAME` alone becomes the words of its value, `${NAME}` anywhere its value, `$$` a dollar sign.
pub fn substitute(word: &str, environment: &BTreeMap<OsString, OsString>) -> Vec<String> {
    let value = |name: &str| {
        environment
            .get(OsStr::new(name))
            .map(|value| value.to_string_lossy().into_owned())
            .unwrap_or_default()
    };
    if let Some(name) = word.strip_prefix('$').filter(|name| is_name(name)) {
        return value(name).split_whitespace().map(ToOwned::to_owned).collect();
    }
    let (mut text, mut rest) = (String::new(), word);
    while let Some(at) = rest.find('$') {
        text.push_str(&rest[..at]);
        rest = &rest[at + 1..];
        if let Some(behind) = rest.strip_prefix('$') {
            text.push('$');
            rest = behind;
        } else if let Some((name, behind)) = rest.strip_prefix('{').and_then(|rest| rest.split_once('}')) {
            text.push_str(&value(name));
            rest = behind;
        } else {
            text.push('$');
        }
    }
    vec![text + rest]
}

fn is_name(text: &str) -> bool {
    !text.is_empty() && text.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
}
