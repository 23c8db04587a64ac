//! Which CPUs the server's worker and the load driver stay on, so that they do not take time from each other.

use std::fs;
use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Where the server and the driver run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Placement {
    /// `None`: there is only one CPU, and nothing is pinned.
    pub server: Option<usize>,
    /// One for each thread of the driver.
    pub driver: Vec<usize>,
    /// Whether both must use the same physical core.
    pub shared_core: bool,
}

impl Placement {
    /// The first CPU for the server's single worker, others for the driver: two if available, because one may not
    /// keep an accelerated server busy.
    #[must_use]
    pub fn of_this_machine() -> Self {
        Self::choose(&allowed(), &siblings)
    }

    fn choose(allowed: &[usize], siblings: &dyn Fn(usize) -> Vec<usize>) -> Self {
        let [server, others @ ..] = allowed else { return Self { shared_core: true, ..Self::default() } };
        if others.is_empty() {
            return Self { shared_core: true, ..Self::default() };
        }
        let same_core = siblings(*server);
        let own_core: Vec<usize> = others.iter().copied().filter(|cpu| !same_core.contains(cpu)).collect();
        let shared_core = own_core.is_empty();
        let driver = if shared_core { others.to_vec() } else { own_core };
        Self { server: Some(*server), driver: driver.into_iter().take(2).collect(), shared_core }
    }
}

/// The CPUs that this process may use, in ascending order.
#[must_use]
pub fn allowed() -> Vec<usize> {
    match sched_getaffinity(None) {
        Ok(set) => (0..CpuSet::MAX_CPU).filter(|&cpu| set.is_set(cpu)).collect(),
        Err(_) => Vec::new(),
    }
}

/// Pins the calling thread, and every process it starts, to one CPU until dropped.
#[derive(Debug)]
pub struct Pinned {
    before: CpuSet,
}

impl Pinned {
    pub fn to(cpu: usize) -> io::Result<Self> {
        let before = sched_getaffinity(None)?;
        let mut only = CpuSet::new();
        only.set(cpu);
        sched_setaffinity(None, &only)?;
        Ok(Self { before })
    }
}

impl Drop for Pinned {
    fn drop(&mut self) {
        // The set was ours a moment ago; if it is forbidden now, we can only stay where we are.
        let _ = sched_setaffinity(None, &self.before);
    }
}

/// All threads of the CPU's core, itself included.
fn siblings(cpu: usize) -> Vec<usize> {
    let path = format!("/sys/devices/system/cpu/cpu{cpu}/topology/thread_siblings_list");
    parse_list(&fs::read_to_string(path).unwrap_or_default())
}

/// The kernel's list format: `0,2-4`.
fn parse_list(list: &str) -> Vec<usize> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        Some(first.parse().ok()?..=last.parse().ok()?)
    };
    list.trim().split(',').filter_map(range).flatten().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn server_and_driver_get_cores_of_their_own() {
        let siblings = |cpu| vec![cpu % 4, cpu % 4 + 4];
        let placement = Placement::choose(&[0, 1, 2, 3, 4, 5, 6, 7], &siblings);
        assert_eq!(placement, Placement { server: Some(0), driver: vec![1, 2], shared_core: false });
        let placement = Placement::choose(&[0, 4, 5], &siblings);
        assert_eq!(placement, Placement { server: Some(0), driver: vec![5], shared_core: false });
    }

    #[test]
    fn two_threads_of_one_core_are_shared() {
        let placement = Placement::choose(&[2, 3], &|_| vec![2, 3]);
        assert_eq!(placement, Placement { server: Some(2), driver: vec![3], shared_core: true });
    }

    #[test]
    fn a_single_cpu_pins_nothing() {
        let expected = Placement { server: None, driver: Vec::new(), shared_core: true };
        assert_eq!(Placement::choose(&[0], &|cpu| vec![cpu]), expected);
        assert_eq!(Placement::choose(&[], &|cpu| vec![cpu]), expected);
    }

    #[test]
    fn lists_of_the_kernel() {
        assert_eq!(parse_list("0,2-4\n"), [0, 2, 3, 4]);
        assert_eq!(parse_list(""), [0; 0]);
        assert_eq!(parse_list("x"), [0; 0]);
    }

    #[test]
    fn a_pinned_thread_is_free_again_afterwards() {
        let before = allowed();
        let pinned = Pinned::to(before[0]).unwrap();
        assert_eq!(allowed(), before[..1]);
        drop(pinned);
        assert_eq!(allowed(), before);
    }
}
