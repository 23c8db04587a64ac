//! The chart library of hasten's pages, for embedding into self-contained pages, and their common look.
//!
//! A page has [`LOOK`], [`STYLE`] and [`CHARTS_STYLE`] in a style element, and [`SCRIPT`] and [`CHARTS_SCRIPT`] in a
//! script element, in this order.

#![forbid(unsafe_code)]

/// uPlot: defines the global `uPlot`.
pub const SCRIPT: &str = include_str!("../vendor/uPlot.iife.min.js");

/// The style sheet that uPlot needs.
pub const STYLE: &str = include_str!("../vendor/uPlot.min.css");

/// Colours, cards and tables, light and dark.
pub const LOOK: &str = include_str!("look.css");

/// The look of charts among them.
pub const CHARTS_STYLE: &str = include_str!("charts.css");

/// Defines the global `hastenCharts`: charts that follow the page's colours and share a time window.
pub const CHARTS_SCRIPT: &str = include_str!("charts.js");

/// A JSON text that is safe in a script element: nothing in it can end the element or begin another.
#[must_use]
pub fn embeddable(json: &str) -> String {
    json.replace('<', "\\u003c")
        .replace('>', "\\u003e")
        .replace('&', "\\u0026")
        .replace('\u{2028}', "\\u2028")
        .replace('\u{2029}', "\\u2029")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_text_can_leave_its_script_element() {
        assert_eq!(embeddable("\"</script><!--&\u{2028}\""), r#""\u003c/script\u003e\u003c!--\u0026\u2028""#);
        for part in [SCRIPT, CHARTS_SCRIPT] {
            assert!(!part.contains("</script") && !part.contains("<!--"));
        }
        for part in [STYLE, LOOK, CHARTS_STYLE] {
            assert!(!part.contains("</style") && !part.contains("url(") && !part.contains("@import"));
        }
    }
}
