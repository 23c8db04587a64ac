//! Envoy: listeners whose connections the kernel spreads unevenly over the workers, and compressors with a small window.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value};

use super::{Finding, option};
use crate::balance::busiest;

/// The listeners of the configuration that the command names, if their connections are few and long by their nature.
/// An error says what cannot be read.
pub(super) fn suggest(arguments: &[String], cpus: usize) -> Result<Vec<Finding>, String> {
    let given = |name| option(arguments, name).next();
    let workers = given("--concurrency").and_then(|number| number.parse().ok()).unwrap_or(cpus);
    let Some(file) = given("--config-path").or_else(|| given("-c")).map(PathBuf::from) else {
        return Ok(Vec::new());
    };
    let text =
        fs::read_to_string(&file).map_err(|error| format!("cannot read {}: {error}", file.display()))?;
    // JSON is YAML, too.
    let config: Value = serde_saphyr::from_str(&text)
        .map_err(|error| format!("{} is not a configuration: {error}", file.display()))?;
    let mut findings: Vec<_> = window(&file, &config).into_iter().collect();
    if workers < 2 {
        return Ok(findings);
    }
    let listeners = config["static_resources"]["listeners"].as_array().map(Vec::as_slice).unwrap_or_default();
    let finding = |listener: &Value| {
        let carries = Carries::of(listener)?;
        let name = listener["name"].as_str().unwrap_or("without a name");
        Some(Finding {
            file: file.clone(),
            number: None,
            within: format!("listener {name}"),
            line: "connection_balance_config: { exact_balance: {} }".to_owned(),
            why: why(carries, workers),
        })
    };
    findings.extend(listeners.iter().filter_map(finding));
    Ok(findings)
}

/// The choice of a larger window, which only the operator can make, if there is a compressor with a smaller one.
fn window(file: &Path, config: &Value) -> Option<Finding> {
    let bits = smallest_window(config)?;
    Some(Finding {
        file: PathBuf::from("hasten.toml"),
        number: None,
        within: "[gzip]".to_owned(),
        line: "window = \"full\"".to_owned(),
        why: format!(
            "{} compresses in a window of {} KiB, which leaves a faster engine little to find; with 32 KiB, bodies take much \
             less time and become no larger. Every decoder of gzip must follow that, but one that is configured for a smaller \
             window does not: choose it only if no receiver has one",
            file.display(),
            (1 << bits) >> 10_u64
        ),
    })
}

/// The smallest window of a gzip compressor anywhere in the configuration, as `window_bits`, if it is smaller than the format
/// allows and the compressor's level is one that this matters for.
fn smallest_window(config: &Value) -> Option<u64> {
    const DEFAULT: u64 = 12;
    const LARGEST: u64 = 15;
    const TOO_HIGH: [&str; 4] =
        ["COMPRESSION_LEVEL_7", "COMPRESSION_LEVEL_8", "COMPRESSION_LEVEL_9", "BEST_COMPRESSION"];
    let own = |fields: &Map<String, Value>| {
        let is_gzip = fields.get("@type")?.as_str()?.ends_with("compression.gzip.compressor.v3.Gzip");
        let level = fields.get("compression_level").and_then(Value::as_str).unwrap_or_default();
        let bits = fields.get("window_bits").map_or(Some(DEFAULT), Value::as_u64)?;
        (is_gzip && !TOO_HIGH.contains(&level) && (DEFAULT..LARGEST).contains(&bits)).then_some(bits)
    };
    match config {
        Value::Object(fields) => {
            own(fields).into_iter().chain(fields.values().filter_map(smallest_window)).min()
        }
        Value::Array(items) => items.iter().filter_map(smallest_window).min(),
        _ => None,
    }
}

/// What makes the connections of a listener long.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Carries {
    Http2,
    Tcp,
}

impl Carries {
    /// `None` if its connections are balanced already, or need not be.
    fn of(listener: &Value) -> Option<Self> {
        let is_udp = listener["address"]["socket_address"]["protocol"] == "UDP";
        if is_udp || !listener["connection_balance_config"].is_null() {
            return None;
        }
        let chains = listener["filter_chains"].as_array()?.iter().chain([&listener["default_filter_chain"]]);
        chains.filter_map(Self::of_chain).next()
    }

    fn of_chain(chain: &Value) -> Option<Self> {
        let offers_h2 = || {
            let protocols =
                &chain["transport_socket"]["typed_config"]["common_tls_context"]["alpn_protocols"];
            protocols.as_array().is_some_and(|protocols| protocols.iter().any(|protocol| protocol == "h2"))
        };
        let of_filter = |filter: &Value| {
            let config = &filter["typed_config"];
            let kind = config["@type"].as_str().unwrap_or_default();
            match kind.rsplit('.').next() {
                Some("TcpProxy") => Some(Self::Tcp),
                Some("HttpConnectionManager") if config["codec_type"] == "HTTP2" || offers_h2() => {
                    Some(Self::Http2)
                }
                _ => None,
            }
        };
        chain["filters"].as_array()?.iter().find_map(of_filter)
    }
}

fn why(carries: Carries, workers: usize) -> String {
    const FEW: usize = 100;
    const MANY: usize = 1000;
    let what = match carries {
        Carries::Http2 => "it speaks HTTP/2, whose connections stay for long",
        Carries::Tcp => "it passes on TCP connections, which stay as long as their programs like",
    };
    format!(
        "{what}; the kernel spreads them over the workers by a hash, so that the busiest of {workers} has {:.2} times the \
         mean of {FEW} connections, and {:.2} times that of {MANY}: worth trying where they are few. Where they are many or \
         short, it changes nothing",
        busiest(workers, FEW),
        busiest(workers, MANY)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    const YAML: &str = "
static_resources:
  listeners:
  - name: grpc
    address: { socket_address: { address: 0.0.0.0, port_value: 443 } }
    filter_chains:
    - transport_socket: { typed_config: { common_tls_context: { alpn_protocols: [ h2, http/1.1 ] } } }
      filters:
      - typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
  - name: balanced
    connection_balance_config: { exact_balance: {} }
    filter_chains:
    - filters:
      - typed_config: { \"@type\": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy }
  - name: pages
    filter_chains:
    - filters:
      - typed_config:
          \"@type\": type.googleapis.com/envoy.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager
  - name: database
    filter_chains:
    - filters:
      - typed_config: { \"@type\": type.googleapis.com/envoy.extensions.filters.network.tcp_proxy.v3.TcpProxy }
";

    fn found(text: &str, more: &[&str]) -> Result<Vec<Finding>, String> {
        let directory = tempfile::tempdir().expect("a directory");
        let file = directory.path().join("envoy.yaml");
        fs::write(&file, text).expect("a file");
        let path = file.display().to_string();
        let arguments = [&["-c", &path][..], more].concat();
        suggest(&arguments.into_iter().map(str::to_owned).collect::<Vec<_>>(), 8)
    }

    #[test]
    fn long_connections_are_balanced() {
        let found_ones = found(YAML, &[]).expect("a configuration");
        let names: Vec<_> = found_ones.iter().map(|finding| finding.within.as_str()).collect();
        assert_eq!(names, ["listener grpc", "listener database"]);
        assert!(found_ones[0].why.contains("the busiest of 8 has 1.4"), "{}", found_ones[0].why);
        assert_eq!(found(YAML, &["--concurrency", "1"]), Ok(Vec::new()));
    }

    #[test]
    fn a_small_window_is_a_choice() {
        let gzip = |fields: &str| {
            let text = format!(
                "static_resources:\n  listeners:\n  - filter_chains:\n    - filters:\n      - typed_config:\n          http_filters:\n          \
                 - typed_config:\n              compressor_library:\n                typed_config:\n                  \
                 \"@type\": type.googleapis.com/envoy.extensions.compression.gzip.compressor.v3.Gzip\n                  {fields}\n"
            );
            found(&text, &["--concurrency", "1"]).expect("a configuration")
        };
        let [finding] = &gzip("memory_level: 5")[..] else { panic!("one finding") };
        assert_eq!((finding.within.as_str(), finding.line.as_str()), ("[gzip]", "window = \"full\""));
        assert!(finding.why.contains("in a window of 4 KiB"), "{}", finding.why);
        assert!(gzip("window_bits: 13")[0].why.contains("in a window of 8 KiB"));
        for other in ["window_bits: 15", "window_bits: 9", "compression_level: BEST_COMPRESSION"] {
            assert_eq!(gzip(other), [], "{other}");
        }
    }

    #[test]
    fn json_is_read_and_nonsense_is_named() {
        let json = r#"{"static_resources": {"listeners": [{"name": "x", "filter_chains": [{"filters": [
            {"typed_config": {"@type": "type.googleapis.com/a.b.TcpProxy"}}]}]}]}}"#;
        assert_eq!(found(json, &[]).expect("a configuration").len(), 1);
        assert_eq!(found("admin: {}", &[]), Ok(Vec::new()));
        let why = found("a: [", &[]).expect_err("no YAML");
        assert!(why.contains("envoy.yaml is not a configuration"), "{why}");
        let why = suggest(&["-c".to_owned(), "/nowhere/envoy.yaml".to_owned()], 8).expect_err("no file");
        assert!(why.starts_with("cannot read /nowhere/envoy.yaml"), "{why}");
        assert_eq!(suggest(&[], 8), Ok(Vec::new()));
    }
}
