//! Which server a program is. The only place in the libraries that knows servers by name.

use std::path::Path;

use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Nginx,
    Haproxy,
    Envoy,
    Node,
    Redis,
    Other,
}

impl Kind {
    pub(crate) fn of(executable: &Path) -> Self {
        match super::file_name(executable).as_str() {
            "nginx" | "openresty" | "angie" | "tengine" => Self::Nginx,
            "haproxy" => Self::Haproxy,
            "envoy" => Self::Envoy,
            "node" | "nodejs" => Self::Node,
            "redis-server" | "redis-check-rdb" | "valkey-server" => Self::Redis,
            _ => Self::Other,
        }
    }

    /// Whether the usual builds of this server carry a private TLS library instead of the system's.
    pub fn carries_own_tls(self) -> bool {
        matches!(self, Self::Envoy)
    }
}
