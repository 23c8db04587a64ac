//! The shape of a body: what all of the baseline's answers have in common, and what kind of text stands where they
//! differ.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::bytes::Regex;

/// Beyond this, differing bodies are compared by length.
const MAX_TOKENS: usize = 200_000;

#[derive(Debug, Default)]
pub(super) enum Shape {
    #[default]
    Unknown,
    /// All were equal.
    Exact(Vec<u8>),
    /// Equal except in some places.
    Tokens(Vec<Token>),
    /// Too different: only the length counts.
    Length { least: usize, most: usize },
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Token {
    Fixed(Box<[u8]>),
    /// A number, an id, a date: a word of this kind and about this length.
    Volatile {
        kind: Kind,
        least: usize,
        most: usize,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Digits,
    Word,
    /// Not a word: blanks and signs.
    Other,
}

impl Shape {
    pub(super) fn learn(&mut self, body: &[u8]) {
        *self = match std::mem::take(self) {
            Self::Unknown => Self::Exact(body.to_vec()),
            Self::Exact(known) if known == body => Self::Exact(known),
            Self::Exact(known) => Self::Tokens(words(&known).map(|word| Token::Fixed(word.into())).collect())
                .with(body, known.len()),
            Self::Tokens(tokens) => {
                let length = tokens.iter().map(Token::most).sum();
                Self::Tokens(tokens).with(body, length)
            }
            Self::Length { least, most } => {
                Self::Length { least: least.min(body.len()), most: most.max(body.len()) }
            }
        };
    }

    fn with(self, body: &[u8], length: usize) -> Self {
        let by_length = Self::Length { least: length.min(body.len()), most: length.max(body.len()) };
        let Self::Tokens(tokens) = self else { return self };
        if tokens.len() > MAX_TOKENS || words(body).count() != tokens.len() {
            return by_length;
        }
        let tokens: Vec<_> =
            tokens.into_iter().zip(words(body)).map(|(token, word)| token.with(word)).collect();
        // If most of it is volatile, nothing is left to compare.
        let volatile = tokens.iter().filter(|token| matches!(token, Token::Volatile { .. })).count();
        if volatile * 2 > tokens.len() { by_length } else { Self::Tokens(tokens) }
    }

    pub(super) fn check(&self, body: &[u8]) -> Result<(), String> {
        match self {
            Self::Unknown => Ok(()),
            Self::Exact(known) => exact(known, body),
            Self::Tokens(tokens) => pattern(tokens, body),
            Self::Length { least, most } => {
                // Not all lengths have been seen; but half or double is a different answer.
                if (least / 2..=most * 2 + 64).contains(&body.len()) {
                    return Ok(());
                }
                Err(format!("the body has {} bytes, had {least} to {most}", body.len()))
            }
        }
    }

    pub(super) fn describe(&self) -> String {
        match self {
            Self::Unknown => "not seen".to_owned(),
            Self::Exact(body) => format!("{} bytes, compared exactly", body.len()),
            Self::Tokens(tokens) => {
                let volatile = tokens.iter().filter(|token| matches!(token, Token::Volatile { .. })).count();
                format!("compared exactly but for {volatile} volatile of {} words", tokens.len())
            }
            Self::Length { least, most } => {
                format!("too volatile, compared by length ({least} to {most} bytes)")
            }
        }
    }
}

impl Token {
    fn with(self, word: &[u8]) -> Self {
        match self {
            Self::Fixed(known) if *known == *word => Self::Fixed(known),
            Self::Fixed(known) => Self::Volatile {
                kind: kind(&known).max(kind(word)),
                least: known.len().min(word.len()),
                most: known.len().max(word.len()),
            },
            Self::Volatile { kind: known, least, most } => Self::Volatile {
                kind: known.max(kind(word)),
                least: least.min(word.len()),
                most: most.max(word.len()),
            },
        }
    }

    fn most(&self) -> usize {
        match self {
            Self::Fixed(word) => word.len(),
            Self::Volatile { most, .. } => *most,
        }
    }

    fn fits(&self, word: &[u8]) -> bool {
        match self {
            Self::Fixed(known) => **known == *word,
            // A counter may gain digits.
            Self::Volatile { kind: known, least, most } => {
                kind(word) <= *known && (least / 2..=most * 2 + 2).contains(&word.len())
            }
        }
    }
}

fn exact(known: &[u8], body: &[u8]) -> Result<(), String> {
    // A minute, a day or a year may have passed since the baseline was asked.
    if known == body || timeless(known) == timeless(body) {
        return Ok(());
    }
    let at =
        known.iter().zip(body).position(|(known, now)| known != now).unwrap_or(known.len().min(body.len()));
    let length = if known.len() == body.len() {
        String::new()
    } else {
        format!(" of {} bytes, was {}", body.len(), known.len())
    };
    Err(format!("another body{length}: at byte {at} {:?}, was {:?}", shown(body, at), shown(known, at)))
}

fn pattern(tokens: &[Token], body: &[u8]) -> Result<(), String> {
    let count = words(body).count();
    if count != tokens.len() {
        return Err(format!("another body: {count} words, was {}", tokens.len()));
    }
    let mut at = 0;
    let mut wrong = None;
    for (token, word) in tokens.iter().zip(words(body)) {
        if !token.fits(word) {
            wrong = Some((at, token, word));
            break;
        }
        at += word.len();
    }
    let Some((at, token, word)) = wrong else { return Ok(()) };
    // The fixed part may contain a date that has advanced.
    let fixed = |words: Vec<Cow<'_, [u8]>>| timeless(&words.concat()).into_owned();
    let known = tokens.iter().filter_map(|token| match token {
        Token::Fixed(word) => Some(Cow::Borrowed(&**word)),
        Token::Volatile { .. } => None,
    });
    let now = tokens.iter().zip(words(body)).filter(|(token, _)| matches!(token, Token::Fixed(_)));
    if kind(word) == Kind::Digits
        && fixed(known.collect()) == fixed(now.map(|(_, word)| Cow::Borrowed(word)).collect())
    {
        return Ok(());
    }
    let was = match token {
        Token::Fixed(known) => format!("{:?}", String::from_utf8_lossy(known)),
        Token::Volatile { kind, least, most } => format!("{kind:?} of {least} to {most} bytes"),
    };
    Err(format!("another body: at byte {at} {:?}, was {was}", shown(body, at)))
}

/// Runs of letters and digits, and the text between them.
fn words(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    body.chunk_by(|a, b| is_of_word(*a) == is_of_word(*b))
}

fn is_of_word(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || byte >= 0x80
}

fn kind(word: &[u8]) -> Kind {
    match word.first() {
        Some(&first) if !is_of_word(first) => Kind::Other,
        _ if word.iter().all(u8::is_ascii_digit) => Kind::Digits,
        _ => Kind::Word,
    }
}

/// Strips dates and times, which advance between questions.
fn timeless(body: &[u8]) -> Cow<'_, [u8]> {
    static TIMES: LazyLock<Regex> = LazyLock::new(|| {
        Regex::new(concat!(
            r"(?-u)\b(?:(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? +)?\d{1,2} (?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* \d{4}\b",
            r"|\b(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)[a-z]*,? +(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)[a-z]* +\d{1,2}(?:,? \d{4})?\b",
            r"|\b\d{4}[-/]\d{2}[-/]\d{2}(?:[T ])?",
            r"|\b?\d{2}:\d{2}(?::\d{2}(?:\.\d+)?)?(?:Z|[+-]\d{2}:?\d{2})?",
            // Seconds and milliseconds since 1970, from 2014 to 2033.
            r"|\b1[4-9]\d{8}(?:\d{3})?\b",
        ))
        .expect("a regular expression")
    });
    TIMES.replace_all(body, &b"<time>"[..])
}

/// Some bytes around a position, for a message.
fn shown(body: &[u8], at: usize) -> String {
    String::from_utf8_lossy(&body[at.saturating_sub(8).min(body.len())..(at + 24).min(body.len())])
        .into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn learnt(bodies: &[&str]) -> Shape {
        let mut shape = Shape::default();
        bodies.iter().for_each(|body| shape.learn(body.as_bytes()));
        shape
    }

    #[test]
    fn what_never_differed_is_compared_byte_for_byte() {
        let shape = learnt(&["{\"a\": 1}", "{\"a\": 1}"]);
        shape.check(b"{\"a\": 1}").unwrap();
        for wrong in ["{\"a\": 2}", "{\"a\": 1} ", "", "{\"a\":1}"] {
            assert!(shape.check(wrong.as_bytes()).is_err(), "{wrong}");
        }
        let error = shape.check(b"{\"a\": 2}").unwrap_err();
        assert!(error.contains("at byte 6") && error.contains("{\\\"a\\\": 1}"), "{error}");
    }

    #[test]
    fn what_differed_is_compared_by_its_kind_and_all_else_exactly() {
        let shape =
            learnt(&["{\"id\":\"a1f\",\"n\":17,\"ok\":true}", "{\"id\":\"99b0\",\"n\":18,\"ok\":true}"]);
        assert!(matches!(shape, Shape::Tokens(_)), "{shape:?}");
        shape.check(b"{\"id\":\"77ccd\",\"n\":1234,\"ok\":true}").unwrap();
        for wrong in [
            "{\"id\":\"77c\",\"n\":19,\"ok\":false}",
            "{\"id\":\"77c\",\"n\":nan,\"ok\":true}",
            "{\"id\":\"\",\"n\":19,\"ok\":true}",
            "{\"id\":\"77c\",\"n\":19}",
            "{\"id\":\"0123456789abcdef0123456789abcdef\",\"n\":19,\"ok\":true}",
        ] {
            assert!(shape.check(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn time_goes_on() {
        for (then, now) in [
            ("at 2026-11-22T12:59:58.123Z", "at 2026-11-22T13:00:01.1Z"),
            ("<p>Sun, 22 Nov 2026 12:59 GMT</p>", "<p>Mon, 23 Nov 2026 00:01 GMT</p>"),
            ("{\"now\":1795351339}", "{\"now\":1795351400}"),
            ("{\"now\":1795351339123}", "{\"now\":1795351400000}"),
        ] {
            learnt(&[then, then]).check(now.as_bytes()).unwrap_or_else(|error| panic!("{now}: {error}"));
            assert!(learnt(&[then, then]).check(format!("{now}!").as_bytes()).is_err(), "{now}");
        }
        // The seconds were seen to be volatile, the minutes not.
        let shape = learnt(&["the clock says 12:59:01 here", "the clock says 12:59:02 here"]);
        shape.check(b"the clock says 13:00:00 here").unwrap();
        assert!(shape.check(b"the clock said 13:00:00 here").is_err());
    }

    #[test]
    fn of_answers_that_have_nothing_in_common_the_length_is_left() {
        let shape = learnt(&["a b c d", "one two three", "x"]);
        assert!(matches!(shape, Shape::Length { least: 1, most: 13 }), "{shape:?}");
        shape.check(b"four five").unwrap();
        assert!(shape.check(&[b'x'; 500]).is_err());
        assert!(shape.describe().contains("length"));
    }
}
