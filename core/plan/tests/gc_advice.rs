//! Advice from a file that may come from anywhere.

use std::path::Path;

use hasten_plan::{AdviceError, GcAdvice};

const MIB: u64 = 1 << 20;

fn parse(text: &str, memory_limit: Option<u64>) -> Result<GcAdvice, AdviceError> {
    GcAdvice::parse(text.as_bytes(), Path::new("advice.json"), memory_limit)
}

fn document(advice: &[(&str, &[&str])]) -> String {
    let advice: Vec<_> = advice
        .iter()
        .map(|(title, options)| {
            serde_json::json!({ "id": "x", "title": title, "node_options": options, "unknowns": [] })
        })
        .collect();
    serde_json::json!({ "schema": 1, "hasten": "0.1.0", "traces": [], "advice": advice }).to_string()
}

fn with(options: &[&str], memory_limit: Option<u64>) -> Result<Vec<String>, String> {
    let advice = parse(&document(&[("Title", options)]), memory_limit).map_err(|error| error.to_string())?;
    Ok(advice.settings.into_iter().map(|setting| setting.option).collect())
}

#[test]
fn the_options_of_all_advice_are_united_and_the_neediest_isolate_decides() {
    let advice: &[(&str, &[&str])] = &[
        ("Small", &["--max-semi-space-size=16"]),
        ("Large", &["--max-semi-space-size=64", "--max-old-space-size=1024"]),
        ("Middle", &["--max-semi-space-size=32"]),
        ("Look for a leak", &[]),
    ];
    let advice = parse(&document(advice), None).unwrap();
    let settings: Vec<_> =
        advice.settings.iter().map(|setting| (setting.option.as_str(), setting.because.as_str())).collect();
    assert_eq!(settings, [("--max-semi-space-size=64", "Large"), ("--max-old-space-size=1024", "Large")]);
    assert_eq!(advice.remarks, ["Look for a leak"]);
}

#[test]
fn nothing_but_the_short_list_is_taken_and_nothing_is_half_applied() {
    for (option, problem) in [
        ("--require=/tmp/evil.js", "not an option that advice may set"),
        ("--max-semi-space-size=8 --require=/tmp/evil.js", "its value is not a number of MiB"),
        ("--max-semi-space-size", "its value is not a number of MiB"),
        ("--max-semi-space-size=", "its value is not a number of MiB"),
        ("--max-semi-space-size=+8", "its value is not a number of MiB"),
        ("--max-semi-space-size=0x10", "its value is not a number of MiB"),
        ("--max_semi_space_size=8", "not an option that advice may set"),
        ("--max-semi-space-size=0", "its value is not between 1 and 512 MiB"),
        ("--max-semi-space-size=513", "its value is not between 1 and 512 MiB"),
        ("--max-old-space-size=99999999999999999999", "its value is not a number of MiB"),
        ("--max-old-space-size=15", "its value is not between 16 and 1048576 MiB"),
        ("\"--max-old-space-size=99\"", "not an option that advice may set"),
        ("", "not an option that advice may set"),
    ] {
        let error = with(&["--max-old-space-size=64", option], None).unwrap_err();
        assert_eq!(error, format!("advice.json: the advice `Title` wants `{option}`: {problem}"));
    }
}

#[test]
fn what_is_no_advice_says_where_it_goes_wrong() {
    for (text, problem) in [
        ("", "EOF while parsing a value at line 1 column 0"),
        ("[GC in old space]", "expected value at line 1 column 2"),
        ("{}", "missing field `schema` at line 1 column 2"),
        (r#"{"schema":1}"#, "missing field `advice` at line 1 column 12"),
        (r#"{"schema":1,"advice":{}}"#, "invalid type: map, expected a sequence at line 1 column 21"),
        (r#"{"schema":1,"advice":[{"title":"x"}]}"#, "missing field `node_options` at line 1 column 35"),
    ] {
        let error = parse(text, None).unwrap_err();
        let expected = format!("advice.json is not JSON as `hasten gc --json` writes it: {problem}");
        assert_eq!(error.to_string(), expected);
        assert!(error.fix().contains("hasten gc TRACE --json"), "{}", error.fix());
    }
    let error = parse(r#"{"schema":2,"advice":[]}"#, None).unwrap_err();
    assert_eq!(error.to_string(), "advice.json has schema 2; this hasten reads schema 1");
}

#[test]
fn what_the_memory_cannot_hold_is_refused() {
    let limit = Some(512 * MIB);
    assert_eq!(with(&["--max-old-space-size=512"], limit).unwrap(), ["--max-old-space-size=512"]);
    let error = with(&["--max-old-space-size=513"], limit).unwrap_err();
    let expected = "--max-old-space-size=513 does not fit: there are 512 MiB for the whole process";
    assert_eq!(error, format!("advice.json: {expected}"));
    assert!(with(&["--max-semi-space-size=85"], limit).is_ok());
    let error = with(&["--max-semi-space-size=86"], limit).unwrap_err();
    assert!(error.contains("would take 258 MiB, more than half of the 512 MiB there are"), "{error}");
}

#[test]
fn text_of_the_file_cannot_write_to_the_terminal() {
    let advice = parse(&document(&[("red \u{1b}[31m\nline", &["--max-semi-space-size=8"])]), None).unwrap();
    assert_eq!(advice.settings[0].because, "red  [31m line");
}

#[test]
fn a_file_that_is_not_there_or_too_large_is_an_error() {
    let error = GcAdvice::read(Path::new("/no/such/advice.json"), None).unwrap_err();
    assert!(error.to_string().starts_with("cannot read the advice in /no/such/advice.json: "), "{error}");
    let error = GcAdvice::read(Path::new("/dev/zero"), None).unwrap_err();
    assert_eq!(error.to_string(), "/dev/zero is no advice: it has more than 64 MiB");
}
