//! Which container a process is in, by the names that container runtimes give to control groups.

use std::fs;

/// Docker, containerd and CRI-O name containers by so many hexadecimal digits.
const DIGITS: usize = 64;

/// The identifier of the container that a process of this host is in.
pub(crate) fn of_process(pid: u32) -> Option<String> {
    let groups = fs::read(format!("/proc/{pid}/cgroup")).ok()?;
    in_groups(&groups).map(str::to_owned)
}

/// The innermost container in `/proc/PID/cgroup`. Groups inside of a container have names of its own choice, so what counts
/// is the last name that is an identifier, but for what a runtime puts around it: `cri-containerd-….scope`, `crio-….scope`.
fn in_groups(groups: &[u8]) -> Option<&str> {
    groups.split(|byte| *byte == b'\n').find_map(|line| {
        let path = line.splitn(3, |byte| *byte == b':').nth(2)?;
        path.rsplit(|byte| *byte == b'/').find_map(identifier)
    })
}

fn identifier(name: &[u8]) -> Option<&str> {
    let name = name.strip_suffix(b".scope").unwrap_or(name);
    let (before, id) = name.split_at_checked(name.len().checked_sub(DIGITS)?)?;
    let is_prefix = before.is_empty() || before.ends_with(b"-");
    let is_id = id.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    if is_prefix && is_id { str::from_utf8(id).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const ID: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

    #[test]
    fn a_container_is_found_whatever_the_runtime_is_called() {
        for path in [
            "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod7b.slice/cri-containerd-ID.scope",
            "0::/kubepods.slice/kubepods-pod7b.slice/crio-ID.scope",
            "0::/kubepods/besteffort/pod7b/ID",
            // Seen from another container, and with a group that an init system in the container has made.
            "0::/../cri-containerd-ID.scope/system.slice/nginx.service",
            "12:pids:/docker/ID\n11:cpu,cpuacct:/docker/ID\n0::/",
            "2:name=a:b:/x\n1:name=systemd:/docker/ID",
        ] {
            assert_eq!(in_groups(path.replace("ID", ID).as_bytes()), Some(ID), "{path}");
        }
    }

    #[test]
    fn what_is_no_container_is_none() {
        for path in [
            "",
            "0::/",
            "0::/user.slice/user-0.slice/session-1.scope",
            "0::/system.slice/nginx.service",
            "0::/x0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
            "0::/0123456789ABCDEF0123456789abcdef0123456789abcdef0123456789abcdef",
            "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef",
        ] {
            assert_eq!(in_groups(path.as_bytes()), None, "{path}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_read(groups: Vec<u8>, prefix in "[/a-z0-9:.-]{0,40}") {
            if let Some(id) = in_groups(&groups) {
                prop_assert_eq!(id.len(), DIGITS);
            }
            let line = format!("0::/{prefix}-{ID}.scope\n");
            prop_assert_eq!(in_groups(line.as_bytes()), Some(ID));
        }
    }
}
