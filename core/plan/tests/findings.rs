//! What `hasten check` says about hosts that are not at hand.

use std::collections::HashSet;
use std::os::unix::fs::symlink;

use hasten_plan::accelerator::ACCELERATORS;
use hasten_plan::findings::{Finding, State, findings};
use hasten_probe::{Feature, Host, Probe};

/// The findings of a host with these files; `-> target` makes a symbolic link.
fn of(files: &[(&str, &str)]) -> Vec<Finding> {
    let root = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match content.strip_prefix("-> ") {
            Some(target) => symlink(target, path).unwrap(),
            None => std::fs::write(path, content).unwrap(),
        }
    }
    findings(&Probe::with_root(root.path()).host())
}

fn state(findings: &[Finding], id: &str) -> (State, String, String) {
    let finding = findings.iter().find(|finding| finding.id == id).unwrap_or_else(|| panic!("no {id}"));
    (finding.state, finding.detail.clone(), finding.fix.clone().unwrap_or_default())
}

#[test]
fn identifiers_are_unique_and_what_accelerators_use_exists() {
    let findings = findings(&Probe::new().host());
    let ids: HashSet<_> = findings.iter().map(|finding| finding.id.as_str()).collect();
    assert_eq!(ids.len(), findings.len());
    for accelerator in ACCELERATORS {
        for used in accelerator.uses() {
            assert!(ids.contains(used), "{} uses {used}", accelerator.name());
        }
    }
}

#[test]
fn every_feature_that_the_tls_engine_needs_is_shown_as_used_by_it() {
    let findings = findings(&Probe::new().host());
    for feature in Feature::MULTIBUFFER {
        let id = format!("cpu.{}", feature.as_str());
        let finding = findings.iter().find(|finding| finding.id == id).unwrap();
        assert!(finding.used_by.contains(&"tls"), "{id}");
    }
}

#[test]
fn what_makes_compression_faster_is_shown_as_used_by_it() {
    let findings = findings(&Probe::new().host());
    let used_by = |id: &str| findings.iter().find(|finding| finding.id == id).unwrap().used_by.clone();
    assert_eq!(used_by("cpu.avx2"), ["tls", "gzip", "envoy"]);
    assert_eq!(used_by("cpu.vpclmulqdq"), ["gzip", "envoy"]);
    assert_eq!(used_by("cpu.bmi2"), ["tls", "gzip", "envoy"]);
    assert_eq!(used_by("cpu.avx512ifma"), ["tls", "envoy"]);
}

#[test]
fn a_host_that_tells_nothing_is_unknown_or_absent_but_never_available() {
    for finding in findings(&Host::default()) {
        // "No limit" is what the absence of a limit means.
        if !finding.id.ends_with("_limit") {
            assert_ne!(finding.state, State::Available, "{finding:?}");
        }
    }
}

#[test]
fn huge_pages_need_a_pool_and_a_mount() {
    let pages = |count| ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", count);
    let mount = ("proc/mounts", "none /dev/hugepages hugetlbfs rw 0 0\n");
    let id = "memory.huge_pages";
    assert_eq!(state(&of(&[("proc/meminfo", "MemTotal: 1024 kB\n")]), id).0, State::Absent);
    assert_eq!(state(&of(&[]), id).0, State::Unknown, "neither /proc nor /sys is mounted");
    let (none, _, fix) = state(&of(&[pages("0"), mount]), id);
    assert_eq!((none, fix.contains("sysctl vm.nr_hugepages")), (State::Absent, true));
    let (unmounted, _, fix) = state(&of(&[pages("8")]), id);
    assert_eq!((unmounted, fix.contains("mount -t hugetlbfs")), (State::Limited, true));
    let (ready, detail, _) = state(&of(&[pages("8"), mount]), id);
    assert_eq!((ready, detail.as_str()), (State::Available, "8 × 2 MiB, 0 free"));
}

#[test]
fn cold_memory_is_compressed_given_up_or_moved() {
    let meminfo = ("proc/meminfo", "MemTotal: 1024 kB\nInactive(anon): 2097152 kB\n");
    let swaps = ("proc/swaps", "Filename Type Size Used Priority\n/swapfile file 4194300 0 -2\n");
    let zswap = |on| ("sys/module/zswap/parameters/enabled", on);
    let (off, detail, fix) = state(&of(&[meminfo, zswap("N")]), "memory.zswap");
    assert_eq!(
        (off, &*detail),
        (State::Limited, "off, and no swap space; 2 GiB of programs' memory is inactive")
    );
    assert!(fix.contains("swapon") && fix.contains("zswap/parameters/enabled"), "{fix}");
    let (_, _, fix) = state(&of(&[meminfo, swaps, zswap("N")]), "memory.zswap");
    assert!(!fix.contains("swapon") && fix.contains("zswap/parameters/enabled"), "{fix}");
    assert_eq!(state(&of(&[meminfo, swaps, zswap("Y")]), "memory.zswap").0, State::Available);
    assert_eq!(state(&of(&[meminfo]), "memory.zswap").0, State::Absent);

    let reclaim = |on| ("sys/module/damon_reclaim/parameters/enabled", on);
    let (off, _, fix) = state(&of(&[meminfo, reclaim("N")]), "memory.damon_reclaim");
    assert_eq!((off, fix.contains("damon_reclaim/parameters/enabled")), (State::Limited, true));
    assert_eq!(state(&of(&[meminfo, reclaim("Y")]), "memory.damon_reclaim").0, State::Available);
    let damon = ("sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds", "0");
    assert!(state(&of(&[meminfo, damon]), "memory.damon_reclaim").2.starts_with("damo start"));

    let two = [("sys/devices/system/node/node0/cpulist", "0"), ("sys/devices/system/node/node2/cpulist", "")];
    let demotion = |on| ("sys/kernel/mm/numa/demotion_enabled", on);
    let balancing = |mode| ("proc/sys/kernel/numa_balancing", mode);
    let with =
        |more: &[(&'static str, &'static str)]| state(&of(&[&two[..], more].concat()), "memory.promotion");
    assert_eq!(with(&[demotion("true"), balancing("2")]).0, State::Available);
    let (off, detail, fix) = with(&[demotion("false"), balancing("1")]);
    assert_eq!((off, &*detail), (State::Limited, "demotion off, numa_balancing = 1"));
    assert!(fix.contains("demotion_enabled") && fix.contains("numa_balancing=2"), "{fix}");
    assert_eq!(with(&[]).0, State::Absent);
    assert_eq!(state(&of(&[meminfo, two[0]]), "memory.promotion").0, State::Absent, "one node");
}

#[test]
fn kernel_switches_say_how_to_turn_them() {
    let kernel = |release: &'static str, file: &'static str, value: &'static str| {
        of(&[("proc/sys/kernel/osrelease", release), (file, value)])
    };
    let paranoid = "proc/sys/kernel/perf_event_paranoid";
    for (release, file, value, id, expected, fix) in [
        (
            "6.12.1",
            "proc/sys/kernel/io_uring_disabled",
            "2",
            "kernel.io_uring",
            State::Absent,
            "io_uring_disabled=0",
        ),
        ("6.12.1", "proc/sys/kernel/io_uring_disabled", "0", "kernel.io_uring", State::Available, ""),
        ("6.12.1", paranoid, "3", "kernel.perf_events", State::Absent, "perf_event_paranoid=1"),
        ("6.12.1", paranoid, "2", "kernel.perf_events", State::Limited, "perf_event_paranoid=1"),
        ("6.12.1", paranoid, "-1", "kernel.perf_events", State::Available, ""),
        ("5.10.0", paranoid, "1", "kernel.epoll_pwait2", State::Absent, "5.11"),
        ("5.10.0", paranoid, "1", "kernel.memfd", State::Available, ""),
        (
            "6.1.0",
            "lib/modules/6.1.0/kernel/net/tls/tls.ko",
            "",
            "kernel.ktls",
            State::Limited,
            "modprobe tls",
        ),
        ("6.1.0", "proc/sys/user/max_user_namespaces", "0", "kernel.userns", State::Absent, "sysctl"),
    ] {
        let (found, detail, cure) = state(&kernel(release, file, value), id);
        assert_eq!(found, expected, "{id} {value}: {detail}");
        assert!(cure.contains(fix) && cure.is_empty() == fix.is_empty(), "{id} {value}: {cure}");
    }
}
