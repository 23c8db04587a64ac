//! The report as a page: one self-contained file.

use serde_json::Value;

const TEMPLATE: &str = include_str!("page/page.html");
const SCRIPT: &str = include_str!("page/page.js");

#[must_use]
pub fn page(document: &Value) -> String {
    let style = [hasten_charts::LOOK, hasten_charts::STYLE, hasten_charts::CHARTS_STYLE].join("\n");
    let script = [hasten_charts::SCRIPT, hasten_charts::CHARTS_SCRIPT, SCRIPT].join("\n");
    // The data come last, so that nothing in them is taken for a placeholder.
    TEMPLATE
        .replace("/*STYLE*/", &style)
        .replace("/*SCRIPT*/", &script)
        .replace("/*DATA*/", &hasten_charts::embeddable(&document.to_string()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_holds_its_data_and_no_text_of_them_can_leave_their_place() {
        let page = page(&serde_json::json!({ "rows": "</script><b>" }));
        assert!(page.contains(r#"id="data">{"rows":"\u003c/script\u003e\u003cb\u003e"}</script>"#));
        for mark in ["/*STYLE*/", "/*SCRIPT*/", "/*DATA*/"] {
            assert!(!page.contains(mark));
        }
    }
}
