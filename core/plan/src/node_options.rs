//! `NODE_OPTIONS`, read and composed by the rules of Node.js: spaces separate words, a double quote starts or ends a
//! part in which a space is an ordinary character, and a backslash in such a part escapes the next character.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};

use crate::plan::Reason;

/// The plugin, relative to the directory of the libraries.
pub(crate) const PLUGIN: &str = "node/register.js";
/// Where it is in an installation, whatever the prefix.
const INSTALLED: &str = "hasten/node/register.js";
/// The name in the `package.json` beside it.
const PACKAGE: &[u8] = br#""name": "hasten""#;

/// Options that load a module before the application.
const REQUIRE: [&[u8]; 2] = [b"--require", b"-r"];

/// A word as Node.js understands it, and where it begins.
#[derive(Debug, PartialEq, Eq)]
struct Word {
    text: Vec<u8>,
    start: usize,
}

/// The change to `NODE_OPTIONS`, if any.
pub(crate) fn change(
    present: Option<&OsStr>,
    plugin: Option<&Path>,
    options: &[String],
) -> Option<(&'static str, Option<OsString>)> {
    let value = Some(compose(present, plugin, options)).filter(|value| !value.is_empty());
    (value.as_deref() != present).then_some(("NODE_OPTIONS", value))
}

/// `NODE_OPTIONS` with the plugin and `options` in front of the present value.
///
/// In front, because later options win: the user's own options have the last word, and the user's own modules find
/// the plugin in place. Ours are dropped from the old value, so that `hasten run` inside `hasten run` does what the
/// inner one says; all the rest stays as written, mistakes included.
pub(crate) fn compose(present: Option<&OsStr>, plugin: Option<&Path>, options: &[String]) -> OsString {
    // Node.js 8 ends at `--require=`.
    let plugin =
        plugin.map(|path| [b"--require ", quote(path.as_os_str().as_bytes().to_vec()).as_slice()].concat());
    let options = options.iter().map(|option| quote(option.clone().into_bytes()));
    let kept = without_ours(present.unwrap_or_default().as_bytes());
    let kept = (!kept.is_empty()).then_some(kept);
    OsString::from_vec(plugin.into_iter().chain(options).chain(kept).collect::<Vec<_>>().join(&b' '))
}

/// Why `NODE_OPTIONS` cannot name this path, if it cannot. Node.js reads it as text.
pub(crate) fn cannot_carry(path: &Path) -> Option<Reason> {
    path.to_str().is_none().then(|| {
        Reason::against(format!("{} is not UTF-8, so NODE_OPTIONS cannot carry it", path.display()))
            .fix("move hasten to a path in UTF-8")
    })
}

/// Whether a word of `NODE_OPTIONS` or of a command line sets one of these V8 options.
pub(crate) fn sets(word: &[u8], names: &[&str]) -> bool {
    let name = word.split(|&byte| byte == b'=').next().unwrap_or_default();
    let name: Vec<u8> = name.iter().map(|&byte| if byte == b'_' { b'-' } else { byte }).collect();
    names.iter().any(|known| known.as_bytes() == name)
}

/// The words of a value, as Node.js sees them.
pub(crate) fn texts(value: &OsStr) -> Vec<Vec<u8>> {
    words(value.as_bytes()).into_iter().map(|word| word.text).collect()
}

/// The value as written, without the words that load a plugin of ours.
fn without_ours(value: &[u8]) -> Vec<u8> {
    let words = words(value);
    let loads = |at: usize| -> Option<usize> {
        let text = &words[at].text;
        if REQUIRE.contains(&&text[..]) {
            return words.get(at + 1).filter(|next| is_ours(&next.text)).map(|_| 2);
        }
        let (option, path) = text.split_at_checked(text.iter().position(|&byte| byte == b'=')?)?;
        (REQUIRE.contains(&option) && is_ours(&path[1..])).then_some(1)
    };
    let mut at = 0;
    let mut kept = Vec::new();
    let mut start = 0;
    while at < words.len() {
        let Some(count) = loads(at) else {
            at += 1;
            continue;
        };
        kept.extend_from_slice(&value[start..words[at].start]);
        at += count;
        start = words.get(at).map_or(value.len(), |next| next.start);
    }
    kept.extend_from_slice(&value[start..]);
    kept.truncate(kept.len() - usize::from(start == value.len() && kept.ends_with(b" ")));
    kept
}

/// Whether a path is a hasten plugin, here or elsewhere.
fn is_ours(path: &[u8]) -> bool {
    let path = PathBuf::from(OsStr::from_bytes(path));
    if !path.is_absolute() || !path.ends_with(PLUGIN) {
        return false;
    }
    let package = || std::fs::read(path.with_file_name("package.json")).unwrap_or_default();
    path.ends_with(INSTALLED) || package().windows(PACKAGE.len()).any(|window| window == PACKAGE)
}

fn words(value: &[u8]) -> Vec<Word> {
    let mut words = Vec::new();
    let (mut text, mut start, mut quoted) = (None::<Vec<u8>>, 0, false);
    let mut at = 0;
    while at < value.len() {
        let mut byte = value[at];
        match byte {
            b' ' if !quoted => {
                words.extend(text.take().map(|text| Word { text, start }));
                start = at + 1;
                at += 1;
                continue;
            }
            b'"' => {
                quoted = !quoted;
                at += 1;
                continue;
            }
            b'\\' if quoted && at + 1 < value.len() => {
                at += 1;
                byte = value[at];
            }
            _ => {}
        }
        text.get_or_insert_default().push(byte);
        at += 1;
    }
    // An open quote is for Node.js to complain about.
    words.extend((text.is_some() || quoted).then(|| Word { text: text.unwrap_or_default(), start }));
    words
}

/// A word that Node.js reads as `text`.
fn quote(text: Vec<u8>) -> Vec<u8> {
    if !text.iter().any(|byte| b" \"".contains(byte)) {
        return text;
    }
    let escaped = text.iter().flat_map(|&byte| {
        let escape = b"\"\\".contains(&byte).then_some(b'\\');
        escape.into_iter().chain([byte])
    });
    [b'"'].into_iter().chain(escaped).chain([b'"']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const OURS: &str = "/usr/lib/hasten/node/register.js";

    fn with_plugin(present: &str) -> String {
        compose(Some(present.as_ref()), Some(Path::new(OURS)), &[]).into_string().unwrap()
    }

    fn read(value: &str) -> Vec<String> {
        words(value.as_bytes()).into_iter().map(|word| String::from_utf8(word.text).unwrap()).collect()
    }

    #[test]
    fn words_are_those_of_node() {
        for (value, words) in [
            ("", &[][..]),
            ("  ", &[]),
            (r#""" """#, &[]),
            ("a", &["a"]),
            (" a  b ", &["a", "b"]),
            (r#""a b" c"#, &["a b", "c"]),
            (r#"--x="a b"c d"#, &["--x=a bc", "d"]),
            (r#""a\"b\\c" d\e"#, &[r#"a"b\c"#, r"d\e"]),
            ("a\tb\nc", &["a\tb\nc"]),
            (r#"a "b c"#, &["a", "b c"]),
            (r#""a\"#, &[r"a\"]),
        ] {
            assert_eq!(read(value), words, "{value}");
        }
    }

    #[test]
    fn the_plugin_comes_first_and_the_rest_stays_as_it_was_written() {
        let ours = format!("--require {OURS}");
        assert_eq!(with_plugin(""), ours);
        for present in ["--max-old-space-size=100", r#"  -r "a b"   --title=x "#, r#"--broken "quote"#] {
            assert_eq!(with_plugin(present), format!("{ours} {present}"), "{present}");
        }
    }

    #[test]
    fn ours_is_replaced_wherever_and_however_it_stands() {
        let elsewhere = "/opt/the place/hasten/node/register.js";
        for old in [
            format!("--require={OURS}"),
            format!("--require {OURS}"),
            format!("-r {OURS}"),
            format!(r#""--require={elsewhere}""#),
            format!(r#"-r "{elsewhere}""#),
        ] {
            assert_eq!(with_plugin(&old), format!("--require {OURS}"), "{old}");
            let between = format!(r#"-r  "x y" {old}  --title=t "#);
            assert_eq!(with_plugin(&between), format!(r#"--require {OURS} -r  "x y" --title=t "#), "{old}");
            let behind = format!("--title=t {old}");
            assert_eq!(with_plugin(&behind), format!("--require {OURS} --title=t"), "{old}");
            assert_eq!(compose(Some(old.as_ref()), None, &[]), "", "{old}");
        }
    }

    #[test]
    fn what_only_looks_like_ours_stays() {
        for other in ["-r ./node/register.js", "-r /app/node/register.js", "-r hasten/register", "--require"]
        {
            assert_eq!(compose(Some(other.as_ref()), None, &[]), other);
        }
    }

    #[test]
    fn a_plugin_in_a_build_tree_is_known_by_its_package() {
        let tree = tempfile::tempdir().unwrap();
        let plugin = tree.path().join(PLUGIN);
        std::fs::create_dir(plugin.parent().unwrap()).unwrap();
        std::fs::write(plugin.with_file_name("package.json"), r#"{ "name": "hasten" }"#).unwrap();
        let old = format!("-r {}", plugin.display());
        assert_eq!(compose(Some(old.as_ref()), None, &[]), "");
    }

    #[test]
    fn what_is_quoted_reads_as_it_was() {
        for path in ["/a", "/with space/x", r#"/quo"te"#, r"/back\slash", r#"/all of\ "them""#, "/a\tb"] {
            let value = compose(None, Some(Path::new(path)), &["--title=a b".into()]);
            let expected = ["--require".into(), path.to_owned(), "--title=a b".into()];
            assert_eq!(read(value.to_str().unwrap()), expected, "{path}");
        }
    }

    #[test]
    fn options_are_known_in_every_spelling() {
        let names = ["--max-semi-space-size"];
        for word in ["--max-semi-space-size=4", "--max_semi_space_size=4", "--max-semi-space-size"] {
            assert!(sets(word.as_bytes(), &names), "{word}");
        }
        assert!(!sets(b"--max-semi-space-size-x=4", &names) && !sets(b"max-semi-space-size=4", &names));
    }
}
