//! Whether a request received over loopback was meant for this host.

use std::net::IpAddr;

use hyper::header::HeaderValue;

/// An attacker's DNS cannot make addresses or `localhost` lead here, but it can with any other name.
pub(crate) fn is_local(host: &HeaderValue) -> bool {
    let Ok(host) = host.to_str() else { return false };
    let name = match host.strip_prefix('[') {
        Some(rest) => rest.split(']').next().unwrap_or_default(),
        None => host.split(':').next().unwrap_or_default(),
    };
    let name = name.trim_end_matches('.').to_ascii_lowercase();
    name.parse::<IpAddr>().is_ok() || name == "localhost" || name.ends_with(".localhost")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_dns_could_send_here_are_foreign() {
        for (host, expected) in [
            ("127.0.0.1:9469", true),
            ("127.0.0.1", true),
            ("[::1]:9469", true),
            ("localhost:9469", true),
            ("LocalHost", true),
            ("metrics.localhost:1", true),
            ("localhost.", true),
            ("rebind.example:9469", false),
            ("127.0.0.1.example", false),
            ("localhost.example", false),
            ("notlocalhost", false),
            ("", false),
            ("[", false),
        ] {
            assert_eq!(is_local(&HeaderValue::from_static(host)), expected, "{host}");
        }
        assert!(!is_local(&HeaderValue::from_bytes(b"\xff").unwrap()));
    }
}
