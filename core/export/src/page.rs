//! The live page: one self-contained document that contacts only this server.

use std::fs::File;
use std::io::{self, Read as _};

use hyper::header::{CONTENT_SECURITY_POLICY, HeaderValue};

use crate::answer::{Answer, with_type};

const TEMPLATE: &str = include_str!("page/page.html");
const STYLE: &str = include_str!("page/page.css");
const SCRIPT: &str = include_str!("page/page.js");

/// Scripts and styles need a nonce that nobody can know beforehand; everything from elsewhere is text.
pub(crate) fn answer() -> io::Result<Answer> {
    let nonce = nonce()?;
    let mut answer = with_type("text/html; charset=utf-8", html(&nonce));
    let policy = format!(
        "default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; img-src data:; \
         base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
    );
    // A nonce is hexadecimal, so this is a valid header.
    if let Ok(policy) = HeaderValue::from_str(&policy) {
        answer.headers_mut().insert(CONTENT_SECURITY_POLICY, policy);
    }
    Ok(answer)
}

fn html(nonce: &str) -> String {
    let style = [hasten_charts::LOOK, hasten_charts::STYLE, hasten_charts::CHARTS_STYLE, STYLE].join("\n");
    let script = [hasten_charts::SCRIPT, hasten_charts::CHARTS_SCRIPT, SCRIPT].join("\n");
    TEMPLATE.replace("{{ nonce }}", nonce).replace("{{ style }}", &style).replace("{{ script }}", &script)
}

fn nonce() -> io::Result<String> {
    let mut bytes = [0; 16];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_is_in_the_page_and_its_policy_lets_nothing_else_in() {
        let answer = answer().unwrap();
        let policy = answer.headers()[CONTENT_SECURITY_POLICY].to_str().unwrap().to_owned();
        assert!(
            policy.starts_with("default-src 'none'; script-src 'nonce-") && !policy.contains("unsafe"),
            "{policy}"
        );
        let html = html("abc");
        assert_eq!(html.matches("nonce=\"abc\"").count(), 2);
        assert!(
            !html.contains("{{") && !html.contains("http://") && !html.contains("src="),
            "something is left open"
        );
        assert_ne!(nonce().unwrap(), nonce().unwrap());
        for part in [STYLE, SCRIPT] {
            assert!(!part.contains("</s") && !part.contains("innerHTML"));
        }
    }
}
