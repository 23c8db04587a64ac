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
    /// Electron, which has its own Node.js inside.
    Electron,
    /// Another JavaScript runtime.
    Bun,
    Deno,
    Other,
}

/// Programs whose work is to start others.
const LAUNCHERS: [&str; 24] = [
    "ash",
    "bash",
    "busybox",
    "chrt",
    "dash",
    "dumb-init",
    "env",
    "ionice",
    "ksh",
    "ksh93",
    "make",
    "mksh",
    "nice",
    "nohup",
    "numactl",
    "setsid",
    "sh",
    "stdbuf",
    "taskset",
    "time",
    "timeout",
    "tini",
    "xargs",
    "zsh",
];

impl Kind {
    pub(crate) fn of(executable: &Path) -> Self {
        match super::file_name(executable).as_str() {
            "nginx" | "openresty" | "angie" | "tengine" => Self::Nginx,
            "haproxy" => Self::Haproxy,
            "envoy" => Self::Envoy,
            "redis-server" | "redis-check-rdb" | "valkey-server" => Self::Redis,
            "electron" => Self::Electron,
            "bun" | "bunx" => Self::Bun,
            "deno" => Self::Deno,
            name if is_node(name) => Self::Node,
            _ => Self::Other,
        }
    }

    /// Whether the usual builds of this server carry a private TLS library instead of using the system's.
    pub fn carries_own_tls(self) -> bool {
        matches!(self, Self::Envoy)
    }

    /// Whether it runs JavaScript itself.
    pub fn runs_javascript(self) -> bool {
        matches!(self, Self::Node | Self::Electron | Self::Bun | Self::Deno)
    }

    /// Whether it may start other programs for part of its work. The servers excluded here start none but themselves.
    pub fn may_start_others(self) -> bool {
        !matches!(self, Self::Nginx | Self::Haproxy | Self::Envoy | Self::Redis)
    }
}

pub(super) fn is_launcher(name: &str) -> bool {
    LAUNCHERS.contains(&name)
}

/// `node`, `nodejs`, and either with a version: `node20`, `node-22.11`.
fn is_node(name: &str) -> bool {
    let Some(rest) = name.strip_prefix("node") else { return false };
    let version = rest.strip_prefix("js").unwrap_or(rest);
    let digits = version.strip_prefix('-').unwrap_or(version);
    version.is_empty()
        || digits.starts_with(|c: char| c.is_ascii_digit())
            && digits.chars().all(|c| c.is_ascii_digit() || c == '.')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn node_has_many_names_and_others_begin_like_it() {
        let kind = |name: &str| Kind::of(&Path::new("/usr/bin").join(name));
        for name in ["node", "nodejs", "node20", "nodejs22", "node-22.11"] {
            assert_eq!(kind(name), Kind::Node, "{name}");
        }
        for name in ["nodemon", "node-gyp", "nodesh", "node-", "node_exporter", "node20x"] {
            assert_eq!(kind(name), Kind::Other, "{name}");
        }
        assert_eq!((kind("bun"), kind("deno"), kind("electron")), (Kind::Bun, Kind::Deno, Kind::Electron));
    }

    #[test]
    fn launchers_are_sorted_and_known_by_their_whole_name() {
        assert!(LAUNCHERS.is_sorted());
        assert!(is_launcher("sh") && !is_launcher("sha256sum"));
    }
}
