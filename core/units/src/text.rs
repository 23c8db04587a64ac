//! The text of unit files: sections, assignments, comments, continued lines.

use std::ffi::OsString;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assignment {
    pub key: String,
    pub value: String,
}

/// The assignments in `[Service]`.
pub fn service(text: &str) -> Result<Vec<Assignment>, String> {
    let mut section = String::new();
    let mut assignments = Vec::new();
    for (number, line) in logical_lines(text) {
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            name.clone_into(&mut section);
            continue;
        }
        let Some((key, value)) = line.split_once('=') else {
            return Err(format!("line {number} is neither a section nor an assignment"));
        };
        if section == "Service" {
            assignments.push(Assignment { key: key.trim().to_owned(), value: value.trim().to_owned() });
        }
    }
    Ok(assignments)
}

/// The values of a key that may be assigned several times; an empty assignment discards the earlier ones.
pub fn values(assignments: &[Assignment], key: &str) -> Vec<String> {
    let mut values = Vec::new();
    for assignment in assignments.iter().filter(|assignment| assignment.key == key) {
        if assignment.value.is_empty() {
            values.clear();
        } else {
            values.push(assignment.value.clone());
        }
    }
    values
}

/// `NAME=value`, one per line, as in a shell: quotes around a value are not part of it.
pub fn environment_file(text: &str) -> Vec<(OsString, OsString)> {
    let variable = |(_, line): (usize, String)| {
        let (name, value) = line.split_once('=')?;
        let value = value.trim();
        let unquoted =
            ['"', '\''].into_iter().find_map(|quote| value.strip_prefix(quote)?.strip_suffix(quote));
        Some((name.trim().into(), unquoted.unwrap_or(value).into()))
    };
    logical_lines(text).into_iter().filter_map(variable).collect()
}

/// Lines joined with their continuations, without comments and empty ones, by the number of the first line.
fn logical_lines(text: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut goes_on = false;
    for (at, line) in text.lines().enumerate() {
        let line = line.trim();
        // Also between the parts of a continued line.
        if line.starts_with(['#', ';']) || line.is_empty() && !goes_on {
            continue;
        }
        let (part, open) = match line.strip_suffix('\\') {
            Some(part) => (part, true),
            None => (line, false),
        };
        match lines.last_mut().filter(|_| goes_on) {
            Some((_, whole)) => {
                whole.push(' ');
                whole.push_str(part.trim());
            }
            None => lines.push((at + 1, part.trim_end().to_owned())),
        }
        goes_on = open;
    }
    lines
}
