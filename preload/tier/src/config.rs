//! The settings from the environment. `hasten run` turns `--tier` and hasten.toml into this variable, and rejects what
//! cannot be understood; here it means that everything stays near.

/// `NEAR:FAR=NEAR_SHARE:FAR_SHARE`, such as `0:2=1:3`.
const TIER: &str = "HASTEN_TIER";

/// For tests: as if the kernel promised no more memory than there is.
const PROMISED: &str = "HASTEN_TIER_DECOMMIT";

/// The kernel has no more nodes.
pub(crate) const NODES: u32 = 1024;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Config {
    /// The node for far memory; `None` if both kinds are on one node, for tests and measurements.
    pub(crate) far: Option<u32>,
    /// The far part of all bytes, in 1/65,536.
    pub(crate) target: u32,
}

pub(crate) fn read() -> Option<Config> {
    parse(std::env::var_os(TIER)?.to_str()?)
}

/// Whether the kernel promises no more memory than there is.
pub(crate) fn is_promised() -> bool {
    let is_set = std::env::var_os(PROMISED).is_some_and(|value| value == "1");
    let mode = std::fs::read_to_string("/proc/sys/vm/overcommit_memory");
    is_set || mode.is_ok_and(|mode| mode.trim() == "2")
}

fn parse(text: &str) -> Option<Config> {
    let (nodes, shares) = text.split_once('=')?;
    let (near, far) = nodes.split_once(':')?;
    let (near, far) = (node(near)?, node(far)?);
    let (near_share, far_share) = shares.split_once(':')?;
    let (near_share, far_share) = (share(near_share)?, share(far_share)?);
    let target = (far_share << 16) / (near_share + far_share);
    (target > 0).then_some(Config { far: (near != far).then_some(far), target })
}

fn node(text: &str) -> Option<u32> {
    text.parse().ok().filter(|node| *node < NODES)
}

fn share(text: &str) -> Option<u32> {
    text.parse::<u16>().ok().map(u32::from).filter(|share| *share > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_and_shares() {
        assert_eq!(parse("0:2=1:3"), Some(Config { far: Some(2), target: 49152 }));
        assert_eq!(parse("1:1=1:1"), Some(Config { far: None, target: 32768 }));
        let wrong =
            ["", "0:2", "0=1:3", "0:2=1", "0:2=0:3", "0:2=1:0", "0:1024=1:1", "a:0=1:1", "0:0=65535:65536"];
        for wrong in wrong {
            assert_eq!(parse(wrong), None, "{wrong}");
        }
    }
}
