//! Learns what the service answers and logs without any candidate, and checks whether it still does.
//!
//! The baseline is asked several times, over more than a second and after more than one start: parts that differ
//! between its own answers are volatile, and compared only by their shape. Everything else is compared byte for byte.

mod body;
mod expectation;
mod log;

use std::thread;
use std::time::Duration;

pub use self::log::{KnownErrors, log_errors};

use hasten_bench::http::Response;

use self::expectation::Expectation;
use crate::http::Client;
use crate::load::Target;
use crate::measure::Disqualified;

const TIMEOUT: Duration = Duration::from_secs(10);
/// How often the baseline is asked before and after [`LEARN_PAUSE`].
const LEARN_FETCHES: usize = 4;
/// Long enough for a clock that counts seconds to advance.
const LEARN_PAUSE: Duration = Duration::from_millis(1100);
const CHECK_FETCHES: usize = 2;

/// The baseline's answers to the load's requests.
#[derive(Debug, Default)]
pub struct Guard {
    pages: Vec<Page>,
}

#[derive(Debug)]
struct Page {
    target: Target,
    /// Asked as the load does, and as a browser does, which accepts compressed answers.
    variants: Vec<Variant>,
}

#[derive(Debug)]
struct Variant {
    accept: Option<&'static str>,
    expectation: Expectation,
}

/// The baseline itself cannot be asked.
#[derive(Debug, thiserror::Error)]
#[error("cannot ask the service for {target}, to know what its answers are like: {why}")]
pub struct GuardError {
    pub target: String,
    pub why: String,
}

impl Guard {
    /// Asks the running baseline; without targets there is nothing to ask, and only failures and the log count.
    pub fn learn(targets: &[Target]) -> Result<Self, GuardError> {
        let page = |target: &Target| Page {
            target: target.clone(),
            variants: accepts(target)
                .into_iter()
                .map(|accept| Variant { accept, expectation: Expectation::default() })
                .collect(),
        };
        let mut guard = Self { pages: targets.iter().map(page).collect() };
        guard.learn_more()?;
        Ok(guard)
    }

    /// Asks the baseline again, preferably after another start: parts that differ from its earlier answers are
    /// volatile.
    pub fn learn_more(&mut self) -> Result<(), GuardError> {
        for round in 0..2 {
            if round > 0 && !self.pages.is_empty() {
                thread::sleep(LEARN_PAUSE);
            }
            for page in &mut self.pages {
                for variant in &mut page.variants {
                    let error = |why| GuardError { target: page.target.to_string(), why };
                    for answer in fetch(&page.target, variant.accept, LEARN_FETCHES).map_err(error)? {
                        variant.expectation.learn(&answer);
                    }
                }
            }
        }
        Ok(())
    }

    /// Whether the service, with a candidate, answers as the baseline did.
    pub fn check(&self) -> Result<(), Disqualified> {
        for page in &self.pages {
            for variant in &page.variants {
                let asked = variant.accept.map_or_else(String::new, |accept| format!(", asked for {accept}"));
                let answers = fetch(&page.target, variant.accept, CHECK_FETCHES).map_err(|why| {
                    Disqualified::FailedRequests { what: format!("{}{asked}: {why}", page.target) }
                })?;
                for answer in answers {
                    variant.expectation.check(&answer).map_err(|why| Disqualified::ChangedAnswer {
                        what: format!("{}{asked}: {why}", page.target),
                    })?;
                }
            }
        }
        Ok(())
    }

    /// Bytes of the answers that the load gets, over all pages; `None` if there are none, or one does not answer.
    #[must_use]
    pub fn bytes_per_answer(&self) -> Option<f64> {
        let of_page = |page: &Page| {
            let accept = page.variants.first().and_then(|variant| variant.accept);
            let mut client = client(&page.target, accept).ok()?;
            (0..CHECK_FETCHES).try_for_each(|_| client.fetch().map(drop)).ok()?;
            Some(client.received() as f64 / CHECK_FETCHES as f64)
        };
        let sizes: Option<Vec<f64>> = self.pages.iter().map(of_page).collect();
        let sizes = sizes.filter(|sizes| !sizes.is_empty())?;
        Some(sizes.iter().sum::<f64>() / sizes.len() as f64)
    }

    /// What is compared and how, one line per page.
    #[must_use]
    pub fn describe(&self) -> Vec<String> {
        let line = |page: &Page| {
            let how =
                page.variants.first().map_or_else(String::new, |variant| variant.expectation.describe());
            format!("{}: {how}", page.target)
        };
        self.pages.iter().map(line).collect()
    }
}

/// What to accept besides what the load itself accepts.
fn accepts(target: &Target) -> Vec<Option<&'static str>> {
    let decides = target.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("accept-encoding"));
    if decides { vec![None] } else { vec![None, Some("gzip")] }
}

fn client(target: &Target, accept: Option<&str>) -> Result<Client, String> {
    let mut headers = target.headers.clone();
    headers.extend(accept.map(|accept| ("Accept-Encoding".to_owned(), accept.to_owned())));
    Client::new(&target.url, &headers, TIMEOUT).map_err(|error| error.to_string())
}

fn fetch(target: &Target, accept: Option<&str>, count: usize) -> Result<Vec<Response>, String> {
    let mut client = client(target, accept)?;
    (0..count).map(|_| client.fetch().map_err(|error| error.to_string())).collect()
}

#[cfg(test)]
mod tests;
