//! The manual pages: required contents, as shown, and no complaints from formatters. And the command's page in docs,
//! which must list the same commands and options as `--help`.

mod support;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use support::Place;

const SECTIONS: [&str; 8] =
    ["NAME", "SYNOPSIS", "DESCRIPTION", "EXIT STATUS", "ENVIRONMENT", "FILES", "EXAMPLES", "SEE ALSO"];

/// Where `--help` breaks lines when it has no terminal.
const HELP_WIDTH: usize = 100;

/// The pages, and their folder.
fn pages() -> (Place, Vec<PathBuf>) {
    let place = Place::new();
    place.run(&["man", "--out", "man", "--date", "2026-01-31"]).success();
    let entries = fs::read_dir(place.path("man")).unwrap();
    let mut pages: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    pages.sort();
    (place, pages)
}

/// Runs a formatter on `page`; `None` if it is not installed.
fn formatted(program: &str, arguments: &[&str], page: &PathBuf) -> Option<Output> {
    let mut command = Command::new(program);
    command.args(arguments).arg(page).env_clear().env("PATH", "/usr/bin:/bin");
    command.env("LC_ALL", "C.UTF-8").env("MANWIDTH", "80").env("MANROFFOPT", "-c");
    match command.output() {
        Ok(output) => Some(output),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            println!("{program} is not here: `apt-get install {program}` brings it");
            None
        }
        Err(error) => panic!("{command:?}: {error}"),
    }
}

/// The command of a page, as words.
fn words(page: &Path) -> Vec<String> {
    let name = page.file_stem().unwrap().to_string_lossy().into_owned();
    name.split('-').skip(1).map(str::to_owned).collect()
}

#[test]
fn every_page_has_the_sections_that_a_manual_has_in_their_order() {
    let (_place, pages) = pages();
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let found: Vec<_> = text
            .lines()
            .filter_map(|line| line.strip_prefix(".SH "))
            .map(|heading| heading.trim_matches('"'))
            .filter(|heading| SECTIONS.contains(heading))
            .collect();
        assert_eq!(found, SECTIONS, "{}", page.display());
    }
}

#[test]
fn formatters_have_nothing_to_say() {
    let (_place, pages) = pages();
    for page in pages {
        for (program, arguments) in [
            ("man", &["--warnings=w", "-l"][..]),
            ("groff", &["-man", "-ww", "-Kutf8", "-Tutf8", "-z"]),
            ("mandoc", &["-Tlint", "-Wwarning"]),
        ] {
            let Some(output) = formatted(program, arguments, &page) else { continue };
            let said = String::from_utf8_lossy(&output.stderr);
            // mandoc reports on standard output.
            let lint = String::from_utf8_lossy(&output.stdout);
            let is_quiet = said.is_empty() && (program != "mandoc" || lint.is_empty());
            assert!(output.status.success() && is_quiet, "{program} on {}:\n{said}{lint}", page.display());
        }
    }
}

/// Lines can be pasted: no word is moved, no hyphen or quote replaced.
#[test]
fn examples_are_shown_line_by_line_as_they_are_typed() {
    let (place, pages) = pages();
    let mut lines = 0;
    for page in pages {
        let Some(output) = formatted("man", &["-l"], &page) else { return };
        let shown = String::from_utf8(output.stdout).unwrap();
        let mut arguments = words(&page);
        arguments.push("--help".to_owned());
        let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
        let help = place.stdout(&place.run(&arguments).success());
        let examples = help.split("Examples:\n").nth(1).expect("examples");
        let mut is_rest = false;
        for line in examples.lines().take_while(|line| line.starts_with("  ")) {
            lines += 1;
            // If there is no room, the comment is below. What `--help` itself has broken is whole on the page.
            let typed = line.trim().split("  ").next().unwrap();
            let is_broken = line.len() > HELP_WIDTH - 15;
            let is_there = shown.lines().map(str::trim).any(|shown| {
                [line.trim(), typed].contains(&shown)
                    || (is_broken && shown.starts_with(typed))
                    || (is_rest && shown.ends_with(line.trim()))
            });
            assert!(is_there, "{}: {line}\n{shown}", page.display());
            is_rest = is_broken;
        }
    }
    assert!(lines > 40, "{lines}");
}

#[test]
fn every_variable_of_the_documents_is_in_the_manual() {
    let (_place, pages) = pages();
    let main = pages.iter().find(|page| page.ends_with("hasten.1")).unwrap();
    let text = fs::read_to_string(main).unwrap();
    let document = include_str!("../../docs/configuration.md");
    let rows = document.lines().filter_map(|line| line.strip_prefix("| `"));
    let names: Vec<_> =
        rows.filter_map(|row| row.split('`').next()).filter(|name| name.starts_with("HASTEN_")).collect();
    assert!(names.len() > 10, "{names:?}");
    for name in names {
        assert!(text.contains(name), "{name}");
    }
    for code in ["126", "127"] {
        assert!(text.contains(&format!("\\fB{code}\\fR")), "{code}");
    }
}

/// Each command is described or linked in docs/cli.md, and no option is mentioned there that `--help` does not have.
#[test]
fn the_page_of_the_command_and_the_help_know_the_same() {
    let (place, pages) = pages();
    let document = include_str!("../../docs/cli.md");
    let mut options = 0;
    for page in &pages {
        let words = words(page);
        let command =
            ["hasten"].into_iter().chain(words.iter().map(String::as_str)).collect::<Vec<_>>().join(" ");
        assert!(document.contains(&format!("`{command}")), "docs/cli.md does not mention `{command}`");
    }
    // Code spans are every second piece.
    for span in document
        .split('`')
        .skip(1)
        .step_by(2)
        .filter(|span| span.starts_with("hasten ") && span.contains(" --"))
    {
        let mine = span.split(" -- ").next().unwrap();
        let command: Vec<_> =
            mine.split(' ').skip(1).take_while(|word| word.chars().all(|c| c.is_ascii_lowercase())).collect();
        let known = (1..=command.len())
            .rev()
            .map(|depth| &command[..depth])
            .find(|words| pages.iter().any(|page| page.ends_with(format!("hasten-{}.1", words.join("-")))));
        let known = known.unwrap_or_else(|| panic!("docs/cli.md: `{span}` is no command"));
        let arguments: Vec<_> = known.iter().copied().chain(["--help"]).collect();
        let help = place.stdout(&place.run(&arguments).success());
        for option in mine.split(' ').filter(|word| word.starts_with("--") && word.len() > 2) {
            options += 1;
            let name = option.split(['=', '[']).next().unwrap();
            assert!(help.contains(name), "docs/cli.md: `{span}`: `{}` has no {name}", known.join(" "));
        }
    }
    assert!(options > 5, "{options}");
}
