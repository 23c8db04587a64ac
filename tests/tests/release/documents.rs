//! An installation's documents link to each other, and what they cite exists.

use std::fs;

use crate::made::{files_below, repository, tree};

#[test]
fn every_link_of_every_page_leads_somewhere() {
    let doc = tree().join("share/doc/hasten");
    let mut links = 0;
    for page in files_below(&doc).iter().filter(|page| page.ends_with(".md")) {
        let text = fs::read_to_string(doc.join(page)).unwrap();
        for target in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let file = target.split('#').next().unwrap();
            if file.is_empty() || file.contains("://") || file.contains([' ', '\n']) {
                continue;
            }
            links += 1;
            let path = doc.join(page).with_file_name("").join(file);
            assert!(path.exists(), "{page} links to {target}, which is not installed");
        }
    }
    assert!(links > 100, "{links}");
}

/// Names of pages in the command's output and in its manual.
#[test]
fn pages_that_are_cited_are_installed() {
    let doc = tree().join("share/doc/hasten");
    let source = |file: &str| {
        file.ends_with(".rs") || file.ends_with(".ts") || file.ends_with(".yml") || file.ends_with(".service")
    };
    let mut cited = 0;
    for part in ["cli/src", "core", "tune/src", "bench/src", "plugins/node/src", "packaging"] {
        for file in files_below(&repository().join(part)).iter().filter(|file| source(file)) {
            let text = fs::read_to_string(repository().join(part).join(file)).unwrap();
            for (at, _) in text.match_indices("docs/") {
                let page: String = text[at..]
                    .chars()
                    .take_while(|c| c.is_ascii_alphanumeric() || "/-.".contains(*c))
                    .collect();
                if let Some(end) = page.find(".md") {
                    cited += 1;
                    assert!(doc.join(&page[..end + 3]).is_file(), "{part}/{file} cites {page}");
                }
            }
        }
    }
    assert!(cited > 10, "{cited}");
}
