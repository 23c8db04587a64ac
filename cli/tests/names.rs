//! Names of variables, in the documentation and in the command.

#[test]
fn every_variable_is_documented_and_known() {
    let page = include_str!("../../docs/configuration.md");
    let words = page.split(|c: char| !(c.is_ascii_uppercase() || c == '_'));
    let mut seen = 0;
    // The prefix alone stands for all of them.
    for name in words.filter(|word| word.starts_with("HASTEN_") && *word != "HASTEN_") {
        // A known name is never taken for a misspelling, and each is close to itself with one letter missing.
        assert_eq!(hasten_plan::misspelt_variable(name), None, "{name}");
        assert_eq!(hasten_plan::misspelt_variable(&name[..name.len() - 1]), Some(name));
        seen += 1;
    }
    assert!(seen >= 9, "{seen}");
}
