//! The environment that the process was started with. The kernel puts it at the top of the main thread's stack.

use crate::image::Image;

/// Above the stack pointer of the main thread.
const STACK: u64 = 64 << 20;
const VARIABLES: usize = 4096;
/// In place of a value that may be a secret.
pub const MASKED: &str = "(masked)";
/// Whose values are told: settings that change what Node.js and the C library do, and hold no secrets.
const TOLD: [&str; 14] = [
    "HOME",
    "HOSTNAME",
    "LANG",
    "LC_ALL",
    "LD_PRELOAD",
    "MALLOC_ARENA_MAX",
    "NODE_ENV",
    "NODE_OPTIONS",
    "NODE_PATH",
    "PATH",
    "PWD",
    "TZ",
    "UV_THREADPOOL_SIZE",
    "UV_USE_IO_URING",
];

/// Names and values, those that nobody vouches for masked. Nothing where the file does not have them.
pub(crate) fn of(image: &Image<'_>, redact: bool) -> Vec<(String, String)> {
    let Some(thread) = image.threads.first() else { return Vec::new() };
    let Some(segment) = image.segment(thread.sp) else { return Vec::new() };
    let from = thread.sp.max(segment.end.saturating_sub(STACK));
    let mut found = variables(image.at(from, (segment.end - from) as usize));
    if redact {
        found.iter_mut().for_each(|(_, value)| MASKED.clone_into(value));
    }
    found
}

/// From the end of a stack: a word of zeros, the path of the program, and before it one string after another.
fn variables(stack: &[u8]) -> Vec<(String, String)> {
    let Some((strings, [0, 0, 0, 0, 0, 0, 0, 0])) = stack.split_last_chunk::<8>() else { return Vec::new() };
    let mut last = strings.strip_suffix(&[0]).unwrap_or(&[]).rsplit(|&byte| byte == 0);
    // A thread other than the main one has no path there.
    if last.next().is_none_or(|path| path.is_empty() || path.contains(&b'=')) {
        return Vec::new();
    }
    last.map_while(variable).take(VARIABLES).collect()
}

/// Arguments, which come before, have no name that a shell would take.
fn variable(bytes: &[u8]) -> Option<(String, String)> {
    let (name, value) = str::from_utf8(bytes).ok()?.split_once('=')?;
    let is_name = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if name.is_empty() || !name.bytes().all(is_name) || name.as_bytes()[0].is_ascii_digit() {
        return None;
    }
    let told = TOLD.contains(&name);
    let value = if told { value.escape_debug().to_string() } else { MASKED.to_owned() };
    Some((name.to_owned(), value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_values_that_hold_no_secret_are_told() {
        let stack = b"\x01\xffnode\0--title=a\0app.js\0NODE_ENV=production\0API_KEY=abc\0";
        let found = variables(&[stack.as_slice(), b"/usr/bin/node\0\0\0\0\0\0\0\0\0"].concat());
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(found, [pair("API_KEY", "(masked)"), pair("NODE_ENV", "production")]);
        // The stack of another thread, and none.
        assert!(variables(b"A=1\0\0\0\0\0\0\0\0\0").is_empty() && variables(b"").is_empty());
    }
}
