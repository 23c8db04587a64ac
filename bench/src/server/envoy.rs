//! Envoy: the configuration of a fixture.

use std::ffi::OsString;
use std::fs;
use std::io;
use std::net::SocketAddr;
use std::path::Path;

use serde_json::{Map, Value, json};

use super::ServerSpec;

const TYPE: &str = "type.googleapis.com/envoy.extensions";

/// Writes the configuration; returns the arguments.
pub(super) fn prepare(spec: &ServerSpec, dir: &Path, address: SocketAddr) -> io::Result<Vec<OsString>> {
    let config = dir.join("envoy.json");
    fs::write(dir.join("body"), &spec.body)?;
    fs::write(&config, configuration(spec, dir, address)?.to_string())?;
    let workers = spec.workers.to_string();
    // Without the shared memory by which two processes of one host hand their sockets over.
    let fixed = ["--disable-hot-restart", "-l", "warn", "--concurrency", &workers, "-c"];
    Ok(fixed.into_iter().map(OsString::from).chain([config.into()]).collect())
}

fn configuration(spec: &ServerSpec, dir: &Path, address: SocketAddr) -> io::Result<Value> {
    let mut manager = json!({
        "@type": format!("{TYPE}.filters.network.http_connection_manager.v3.HttpConnectionManager"),
        "stat_prefix": "fixture",
        // Otherwise it waits a second for the client to close first.
        "delayed_close_timeout": "0s",
        "route_config": {"virtual_hosts": [{"name": "fixture", "domains": ["*"], "routes": [{
            "match": {"prefix": "/"},
            "direct_response": {"status": 200, "body": {"filename": dir.join("body")}},
        }]}]},
        "http_filters": [{"name": "router", "typed_config": {
            "@type": format!("{TYPE}.filters.http.router.v3.Router"),
        }}],
    });
    add(&mut manager, &spec.http_lines)?;
    let mut chain = json!({"filters": [{"name": "manager", "typed_config": manager}]});
    if !spec.certificates.is_empty() {
        chain["transport_socket"] = json!({"name": "tls", "typed_config": context(spec)?});
    }
    let mut resources = json!({"listeners": [{
        "name": "fixture",
        "address": {"socket_address": {"address": address.ip().to_string(), "port_value": address.port()}},
        "filter_chains": [chain],
    }]});
    add(&mut resources, &spec.main_lines)?;
    // Whoever reads secrets from files must have a name.
    Ok(json!({"node": {"id": "fixture", "cluster": "fixture"}, "static_resources": resources}))
}

/// Adds fields of the caller's, or replaces them.
fn add(to: &mut Value, fields: &str) -> io::Result<()> {
    let fields: Map<String, Value> = serde_json::from_str(&format!("{{{fields}}}"))?;
    fields.into_iter().for_each(|(name, value)| to[name] = value);
    Ok(())
}

/// The context of the listener, with the fields that the caller adds.
fn context(spec: &ServerSpec) -> io::Result<Value> {
    let certificates: Vec<_> = spec
        .certificates
        .iter()
        .map(|certificate| {
            json!({
                "certificate_chain": {"filename": certificate.chain},
                "private_key": {"filename": certificate.key},
            })
        })
        .collect();
    let mut context = json!({
        "@type": format!("{TYPE}.transport_sockets.tls.v3.DownstreamTlsContext"),
        "common_tls_context": {"tls_certificates": certificates},
    });
    add(&mut context, &spec.server_lines)?;
    Ok(context)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::ServerKind;

    #[test]
    fn fields_of_the_caller_are_added() {
        let spec = ServerSpec::plain(ServerKind::Envoy).server_lines(r#""require_sni": true"#);
        let context = context(&spec).expect("JSON");
        assert_eq!(
            (&context["require_sni"], context["common_tls_context"].is_object()),
            (&json!(true), true)
        );
        assert!(super::context(&spec.server_lines("require_sni on;")).is_err());
    }

    #[test]
    fn plain_listener_has_no_transport_socket() {
        let spec = ServerSpec::plain(ServerKind::Envoy);
        let address = SocketAddr::from(([127, 0, 0, 1], 8080));
        let config = configuration(&spec, Path::new("/fixture"), address).expect("JSON");
        let listener = &config["static_resources"]["listeners"][0];
        assert_eq!(listener["address"]["socket_address"]["port_value"], 8080);
        assert!(listener["filter_chains"][0].get("transport_socket").is_none());
        let spec = spec.main_lines(r#""clusters": [1]"#).http_lines(r#""stat_prefix": "other""#);
        let config = configuration(&spec, Path::new("/fixture"), address).expect("JSON");
        let resources = &config["static_resources"];
        let manager = &resources["listeners"][0]["filter_chains"][0]["filters"][0]["typed_config"];
        assert_eq!((&resources["clusters"][0], &manager["stat_prefix"]), (&json!(1), &json!("other")));
    }
}
