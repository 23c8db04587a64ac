//! What a load requests, if its command line reveals it.

use std::fmt;

use super::recognise::Tool;
use crate::http::Url;

/// A page, and the headers of its request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    pub(crate) url: Url,
    pub(crate) text: String,
    pub(crate) headers: Vec<(String, String)>,
}

impl Target {
    /// For a URL given by the user.
    pub fn new(url: &str) -> Result<Self, super::LoadError> {
        let parsed = Url::parse(url);
        let parsed =
            parsed.map_err(|why| super::LoadError::Url { url: url.to_owned(), why: why.to_owned() })?;
        Ok(Self { url: parsed, text: url.to_owned(), headers: Vec::new() })
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

pub(super) fn of(words: &[String], tool: Option<Tool>) -> Vec<Target> {
    if tool.is_some_and(|tool| !tool.speaks_http()) {
        return Vec::new();
    }
    let headers = headers(words);
    let mut targets: Vec<Target> = Vec::new();
    for word in words {
        let with_scheme = match tool {
            // autocannon accepts an address as a URL.
            Some(Tool::Autocannon) if is_address(word) => format!("http://{word}"),
            _ => word.clone(),
        };
        let Ok(target) = Target::new(&with_scheme) else { continue };
        if targets.iter().all(|known| known.url != target.url) {
            targets.push(Target { headers: headers.clone(), ..target });
        }
    }
    targets
}

/// Whether the load opens TLS connections; a script may hide what it requests.
pub(super) fn uses_tls(words: &[String], tool: Option<Tool>) -> Option<bool> {
    match tool {
        Some(Tool::RedisBenchmark | Tool::Memtier) => Some(words.iter().any(|word| word == "--tls")),
        // It calls the library within its own process.
        Some(Tool::DbBench) => Some(false),
        _ => {
            let targets = of(words, tool);
            (!targets.is_empty()).then(|| targets.iter().any(|target| target.url.tls))
        }
    }
}

/// `localhost:3000/path`
fn is_address(word: &str) -> bool {
    let authority = word.split(['/', '?']).next().unwrap_or_default();
    authority
        .rsplit_once(':')
        .is_some_and(|(host, port)| !host.is_empty() && !host.contains(':') && port.parse::<u16>().is_ok())
}

/// `-H 'Name: value'`, as in wrk, ab, h2load, oha and autocannon; autocannon also accepts `Name=value`.
fn headers(words: &[String]) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let value = match word.as_str() {
            "-H" | "--header" | "--headers" => words.get(at + 1).map(String::as_str),
            _ => word
                .strip_prefix("--header=")
                .or_else(|| word.strip_prefix("-H").filter(|rest| rest.contains(':'))),
        };
        let Some((name, value)) =
            value.and_then(|value| value.split_once(':').or_else(|| value.split_once('=')))
        else {
            continue;
        };
        if !name.trim().is_empty() && !name.starts_with(':') {
            headers.push((name.trim().to_owned(), value.trim().to_owned()));
        }
    }
    headers
}

#[cfg(test)]
mod tests {
    use crate::load::Load;

    #[test]
    fn urls_and_headers_are_found_in_the_arguments() {
        for (line, urls, headers) in [
            ("wrk -t1 -H 'Accept-Encoding: gzip' http://127.0.0.1:1/a", vec!["http://127.0.0.1:1/a"], 1),
            ("autocannon -H x=y localhost:3000/b", vec!["http://localhost:3000/b"], 1),
            (
                "h2load -H':method: POST' https://x/ https://x/ https://x/2",
                vec!["https://x/", "https://x/2"],
                0,
            ),
            ("redis-benchmark -t get", vec![], 0),
            ("env A=http://no wrk http://x/", vec!["http://x/"], 0),
        ] {
            let targets = Load::parse(line, None).unwrap().targets();
            assert_eq!(targets.iter().map(ToString::to_string).collect::<Vec<_>>(), urls, "{line}");
            assert!(targets.iter().all(|target| target.headers.len() == headers), "{line}");
        }
    }

    #[test]
    fn a_load_says_whether_it_opens_tls_connections_or_leaves_it_open() {
        for (line, tls) in [
            ("wrk -t1 http://127.0.0.1:1/a", Some(false)),
            ("wrk -t1 https://127.0.0.1:1/a", Some(true)),
            ("h2load http://x/ https://x/2", Some(true)),
            ("autocannon localhost:3000", Some(false)),
            ("redis-benchmark -t get", Some(false)),
            ("redis-benchmark --tls -t get", Some(true)),
            ("memtier_benchmark -p 1", Some(false)),
            ("db_bench --num=1", Some(false)),
            ("k6 run script.js", None),
            ("./load.sh", None),
        ] {
            assert_eq!(Load::parse(line, None).unwrap().uses_tls(), tls, "{line}");
        }
    }
}
