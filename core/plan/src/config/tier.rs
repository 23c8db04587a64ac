//! `[tier]` in `hasten.toml`, and the value of its flag.

use std::fmt;

use hasten_probe::host::memory::NumaNode;

use super::error::ConfigError;
use super::file::{Reader, Value};

/// Which part of a program's memory is to be on which node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tier {
    pub near: u32,
    pub far: u32,
    pub near_share: u16,
    pub far_share: u16,
}

const EXAMPLE: &str = "write two nodes and their shares, such as 0:2=1:3: near is node 0, far is node 2, and three of four bytes are far";

/// The kernel has no more nodes.
const NODES: u32 = 1024;

impl Tier {
    /// Reads `NEAR:FAR=NEAR_SHARE:FAR_SHARE`; the error says what is wrong and what to do.
    pub fn parse(text: &str) -> Result<Self, (String, String)> {
        let example = || EXAMPLE.to_owned();
        if text.contains('/') {
            return Err((
                format!("`{text}` names a file: a file would be shared with a forked child, whose snapshot would then change"),
                "name a NUMA node; `daxctl reconfigure-device --mode=system-ram` makes one of persistent memory".into(),
            ));
        }
        let Some((nodes, shares)) = text.split_once('=') else {
            return Err((format!("`{text}` has no shares"), example()));
        };
        let (near, far) = pair(nodes, "node", example)?;
        let (near_share, far_share) = pair(shares, "share", example)?;
        let node = |text: &str| {
            let number = text.parse().ok().filter(|node| *node < NODES);
            number.ok_or_else(|| (format!("`{text}` is no number of a node"), example()))
        };
        let share = |text: &str| match text.parse::<u16>() {
            Ok(0) => Err((
                "a share of 0 leaves nothing to divide".to_owned(),
                "leave --tier out, or give both nodes a share".to_owned(),
            )),
            Ok(share) => Ok(share),
            Err(_) => {
                Err((format!("`{text}` is no share"), "write whole numbers from 1 to 65535".to_owned()))
            }
        };
        Ok(Self {
            near: node(near)?,
            far: node(far)?,
            near_share: share(near_share)?,
            far_share: share(far_share)?,
        })
    }

    /// What is wrong with the nodes on a host with these.
    pub fn complaint(&self, nodes: &[NumaNode]) -> Option<(String, String)> {
        // A kernel without NUMA says nothing of nodes, and has one.
        if nodes.is_empty() && self.near == 0 && self.far == 0 {
            return None;
        }
        let there = || match nodes {
            [] => "this host has no NUMA nodes but 0".to_owned(),
            _ => format!("the nodes of this host: {}", listed(nodes)),
        };
        let find = |id: u32| nodes.iter().find(|node| node.id == id);
        for id in [self.near, self.far] {
            if find(id).is_none() {
                return Some((format!("there is no node {id}"), there()));
            }
        }
        if find(self.far).is_some_and(|node| node.total_kib == Some(0)) {
            return Some((format!("node {} has no memory", self.far), there()));
        }
        if find(self.near).is_some_and(|node| node.cpus.trim().is_empty()) {
            return Some((
                format!("node {} has no processors, so nothing is near to it", self.near),
                "put the node with processors first".into(),
            ));
        }
        None
    }

    /// Whether both are one node, for tests and measurements.
    #[must_use]
    pub fn is_of_one_node(&self) -> bool {
        self.near == self.far
    }

    /// The wanted far part of all bytes in percent.
    #[must_use]
    pub fn percent(&self) -> f64 {
        100.0 * f64::from(self.far_share) / (f64::from(self.near_share) + f64::from(self.far_share))
    }
}

/// As the library reads it.
impl fmt::Display for Tier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}={}:{}", self.near, self.far, self.near_share, self.far_share)
    }
}

fn pair<'t>(
    text: &'t str,
    what: &str,
    example: impl Fn() -> String,
) -> Result<(&'t str, &'t str), (String, String)> {
    let both = text.split_once(':').filter(|(one, other)| !one.is_empty() && !other.is_empty());
    both.ok_or_else(|| (format!("`{text}` is not a near and a far {what}"), example()))
}

fn listed(nodes: &[NumaNode]) -> String {
    let node = |node: &NumaNode| {
        let cpus = if node.cpus.trim().is_empty() { "no processors" } else { "processors" };
        format!("{} ({} MiB, {cpus})", node.id, node.total_kib.unwrap_or(0) >> 10)
    };
    nodes.iter().map(node).collect::<Vec<_>>().join(", ")
}

const KEYS: [&str; 2] = ["nodes", "shares"];

impl Reader<'_> {
    pub(super) fn tier(&self, table: &Value<'_>) -> Result<Tier, ConfigError> {
        let (mut nodes, mut shares) = (None, None);
        for (key, value) in self.table("tier", table)? {
            let text = |key, expected| {
                let text = value.get_ref().as_str().map(str::to_owned);
                text.ok_or_else(|| self.wrong(key, expected, value))
            };
            match key.get_ref().as_ref() {
                "nodes" => nodes = Some(text("nodes", "two nodes, such as \"0:2\"")?),
                "shares" => shares = Some(text("shares", "two shares, such as \"1:3\"")?),
                name => return Err(self.unknown(key.span(), ("key", " in [tier]"), name, &KEYS)),
            }
        }
        let (Some(nodes), Some(shares)) = (nodes, shares) else {
            return Err(self.wrong("tier", "a table with `nodes` and `shares`", table));
        };
        Tier::parse(&format!("{nodes}={shares}")).map_err(|(problem, fix)| ConfigError::Key {
            place: self.place(table.span()),
            key: "tier".into(),
            problem,
            fix,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrong(text: &str) -> String {
        Tier::parse(text).expect_err(text).0
    }

    #[test]
    fn a_tier_has_two_nodes_and_two_shares() {
        let tier = Tier::parse("0:2=1:3").unwrap();
        assert_eq!(tier, Tier { near: 0, far: 2, near_share: 1, far_share: 3 });
        assert_eq!((tier.to_string().as_str(), tier.percent()), ("0:2=1:3", 75.0));
        assert_eq!(wrong("0:2"), "`0:2` has no shares");
        assert_eq!(wrong("0=1:3"), "`0` is not a near and a far node");
        assert_eq!(wrong("0:2=1"), "`1` is not a near and a far share");
        assert_eq!(wrong("0:1024=1:3"), "`1024` is no number of a node");
        assert_eq!(wrong("0:2=1:0"), "a share of 0 leaves nothing to divide");
        assert_eq!(wrong("0:2=1:70000"), "`70000` is no share");
        assert!(wrong("0:/mnt/pmem=1:3").contains("shared with a forked child"));
    }

    #[test]
    fn the_nodes_must_be_there_and_the_near_one_has_processors() {
        let node =
            |id, cpus: &str, kib| NumaNode { id, cpus: cpus.into(), total_kib: Some(kib), distances: vec![] };
        let nodes = [node(0, "0-3", 4 << 20), node(2, "", 8 << 20), node(3, "4", 0)];
        let complaint = |text| Tier::parse(text).unwrap().complaint(&nodes).map(|(problem, _)| problem);
        assert_eq!(complaint("0:2=1:3"), None);
        assert_eq!(complaint("0:0=1:3"), None);
        assert_eq!(complaint("0:1=1:3").as_deref(), Some("there is no node 1"));
        assert_eq!(complaint("0:3=1:3").as_deref(), Some("node 3 has no memory"));
        assert_eq!(
            complaint("2:0=1:3").as_deref(),
            Some("node 2 has no processors, so nothing is near to it")
        );
        assert_eq!(Tier::parse("0:0=1:3").unwrap().complaint(&[]), None);
        assert_eq!(Tier::parse("0:1=1:3").unwrap().complaint(&[]).unwrap().0, "there is no node 0");
    }
}
