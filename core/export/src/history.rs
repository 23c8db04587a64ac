//! The last ten minutes of all counters, for a page opened now.
//!
//! Bounded like the totals: no more series than programs and what can happen to them, and no more points than fit into
//! the time.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::Serialize;
use serde_json::{Map, Value as Json};

use crate::catalogue::Kind;
use crate::collector::Look;
use crate::encode::Value;
use crate::families::families;

const SPAN: Duration = Duration::from_secs(600);
/// The minimum distance between points.
const STEP: Duration = Duration::from_secs(2);

#[derive(Debug, Default, Serialize)]
pub(crate) struct History {
    series: Vec<Series>,
    points: VecDeque<Point>,
    #[serde(skip)]
    places: HashMap<String, usize>,
}

/// Name and labels, as in the status.
#[derive(Debug, Serialize)]
struct Series {
    name: String,
    labels: Map<String, Json>,
}

#[derive(Debug, Serialize)]
struct Point {
    #[serde(rename = "time_unix_s")]
    at: f64,
    /// Each series' value, or the bucket counts of a histogram. Nothing for a series that has not begun.
    values: Vec<Vec<Json>>,
}

impl History {
    pub(crate) fn record(&mut self, look: &Look) {
        let at = seconds(look.at);
        if self.points.back().is_some_and(|last| (0.0..STEP.as_secs_f64()).contains(&(at - last.at))) {
            return;
        }
        // A clock that was set back starts a new history.
        self.points.retain(|point| point.at < at && at - point.at <= SPAN.as_secs_f64());
        let mut values = vec![Vec::new(); self.series.len()];
        for family in families(look) {
            if !matches!(family.about.kind, Kind::Counter | Kind::Histogram) {
                continue;
            }
            for sample in family.samples {
                let place = self.place(family.about.metric(), &sample.labels);
                values.resize(self.series.len(), Vec::new());
                values[place] = match sample.value {
                    Value::Count(count) => vec![count.into()],
                    Value::Number(number) => vec![number.into()],
                    Value::Histogram { buckets, .. } => {
                        buckets.into_iter().map(|(_, count)| count.into()).collect()
                    }
                };
            }
        }
        self.points.push_back(Point { at, values });
    }

    pub(crate) fn json(&self) -> String {
        serde_json::to_string(self).expect("names are texts and numbers are finite")
    }

    fn place(&mut self, name: String, labels: &[(&'static str, String)]) -> usize {
        let series = &mut self.series;
        *self.places.entry(format!("{name}{labels:?}")).or_insert_with(|| {
            let labels = labels.iter().map(|(label, text)| ((*label).to_owned(), Json::from(text.as_str())));
            series.push(Series { name, labels: labels.collect() });
            series.len() - 1
        })
    }
}

fn seconds(time: SystemTime) -> f64 {
    time.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs_f64()
}

#[cfg(test)]
mod tests {
    use hasten_telemetry::Event;
    use serde_json::json;

    use super::*;
    use crate::totals::{Key, Program};

    fn look(second: u64, programs: &[(&str, u64)]) -> Look {
        let program = |(name, handshakes): &(&str, u64)| {
            let mut program = Program::default();
            program.counters[Event::HandshakeFinished] = *handshakes;
            (
                Key { program: (*name).to_owned(), accelerator: "tls".to_owned(), container: String::new() },
                program,
            )
        };
        let at = UNIX_EPOCH + Duration::from_secs(second);
        Look { at, programs: programs.iter().map(program).collect(), ..Look::default() }
    }

    /// A program's finished handshakes, point by point.
    fn handshakes(history: &History, program: &str) -> Vec<Json> {
        let json: Json = serde_json::from_str(&history.json()).unwrap();
        let labels = json!({"program": program, "accelerator": "tls", "result": "finished"});
        let is_it = |one: &Json| one["name"] == "hasten_handshakes_total" && one["labels"] == labels;
        let place = json["series"].as_array().unwrap().iter().position(is_it).unwrap();
        json["points"].as_array().unwrap().iter().map(|point| point["values"][place].clone()).collect()
    }

    #[test]
    fn series_that_begin_later_have_nothing_before() {
        let mut history = History::default();
        history.record(&look(100, &[("nginx", 5)]));
        history.record(&look(101, &[("nginx", 6)]));
        history.record(&look(103, &[("haproxy", 1), ("nginx", 7)]));
        assert_eq!(handshakes(&history, "nginx"), [json!([5]), json!([7])]);
        assert_eq!(handshakes(&history, "haproxy"), [Json::Null, json!([1])]);
    }

    #[test]
    fn it_forgets_what_is_old_and_begins_anew_when_the_clock_is_set_back() {
        let mut history = History::default();
        (0..2000).for_each(|second| history.record(&look(1000 + second, &[("nginx", second)])));
        assert_eq!(history.points.len(), 301);
        assert_eq!(handshakes(&history, "nginx").last(), Some(&json!([1998])));
        history.record(&look(500, &[("nginx", 2001)]));
        assert_eq!(handshakes(&history, "nginx"), [json!([2001])]);
    }
}
