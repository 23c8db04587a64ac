//! The few requests of man(7) that the pages need.

use std::io::{self, Write};

pub(super) fn heading(out: &mut dyn Write, text: &str) -> io::Result<()> {
    writeln!(out, ".SH \"{}\"", escaped(text))
}

pub(super) fn paragraph(out: &mut dyn Write, text: &str) -> io::Result<()> {
    writeln!(out, ".PP\n{}", line(text))
}

/// A list item, with its tag in `font`.
pub(super) fn item(out: &mut dyn Write, font: char, tag: &str, text: &str) -> io::Result<()> {
    writeln!(out, ".TP\n\\f{font}{}\\fR\n{}", escaped(tag), line(text))
}

/// Text at the beginning of a line: a point or an apostrophe there would be a request.
pub(super) fn line(text: &str) -> String {
    let escaped = escaped(text);
    if escaped.starts_with(['.', '\'']) { format!("\\&{escaped}") } else { escaped }
}

/// Protects characters that must reach a shell unchanged: otherwise pages show typographic ones, which cannot be
/// pasted.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '\\' => escaped.push_str("\\e"),
            '-' => escaped.push_str("\\-"),
            '\'' => escaped.push_str("\\(aq"),
            '`' => escaped.push_str("\\(ga"),
            '^' => escaped.push_str("\\(ha"),
            '~' => escaped.push_str("\\(ti"),
            '"' => escaped.push_str("\\(dq"),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_typed_is_shown_as_it_is() {
        let shown = line(".x 'a' -- \\n `b` ~ ^ \"c\"");
        assert_eq!(shown, "\\&.x \\(aqa\\(aq \\-\\- \\en \\(gab\\(ga \\(ti \\(ha \\(dqc\\(dq");
    }
}
