//! Host facts from trees that look like `/sys` and `/proc` of other machines.

use std::os::unix::fs::symlink;
use std::path::Path;

use hasten_probe::host::cgroup::CgroupVersion;
use hasten_probe::host::device::DeviceKind;
use hasten_probe::host::kernel::{IoUring, KernelTls};
use hasten_probe::{Feature, Host, Probe};

/// Files below a new root; `path -> target` makes a symbolic link instead.
fn host(files: &[(&str, &str)]) -> Host {
    let root = tempfile::tempdir().unwrap();
    for (path, content) in files {
        let path = root.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        match content.strip_prefix("-> ") {
            Some(target) => symlink(target, path).unwrap(),
            None => std::fs::write(path, format!("{content}\n")).unwrap(),
        }
    }
    Probe::with_root(root.path()).host()
}

#[test]
fn an_empty_tree_yields_no_facts_and_no_error() {
    let host = host(&[]);
    assert!(
        host.devices.is_empty() && host.memory.nodes.is_empty() && host.memory.huge_page_pools.is_empty()
    );
    assert_eq!(host.kernel.version, None);
    assert_eq!(host.kernel.io_uring, IoUring::Unknown);
    assert_eq!(host.kernel.cgroup.version, CgroupVersion::None);
}

#[test]
fn reads_the_cpu_as_the_kernel_lists_it() {
    let info = "processor\t: 0\nvendor_id\t: GenuineIntel\nmodel name\t: Intel(R) Xeon(R) 6\nflags\t\t: fpu avx512ifma hypervisor\n\nprocessor\t: 1";
    let cpu = host(&[("proc/cpuinfo", info)]).cpu;
    assert_eq!(
        (cpu.vendor.as_str(), cpu.model.as_str(), cpu.threads),
        ("GenuineIntel", "Intel(R) Xeon(R) 6", 2)
    );
    assert!(cpu.hypervisor);
    let listed: Vec<_> =
        cpu.features.iter().filter(|state| state.kernel).map(|state| state.feature).collect();
    assert_eq!(listed, [Feature::Avx512Ifma]);
}

#[test]
fn the_running_cpu_and_its_kernel_agree() {
    let cpu = Probe::new().cpu();
    assert!(cpu.threads > 0);
    for state in &cpu.features {
        assert!(!state.usable || state.cpu, "{state:?}: usable but not in the CPU");
        assert!(!state.kernel || state.cpu, "{state:?}: listed but not in the CPU");
    }
}

#[test]
fn reads_huge_pages() {
    let memory = host(&[
        ("sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages", "0"),
        ("sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages", "512"),
        ("sys/kernel/mm/hugepages/hugepages-2048kB/free_hugepages", "500"),
        ("sys/kernel/mm/transparent_hugepage/enabled", "always [madvise] never"),
        ("sys/kernel/mm/transparent_hugepage/defrag", "always defer [defer+madvise] madvise never"),
        ("proc/mounts", "proc /proc proc rw 0 0\nhugetlbfs /dev/hugepages hugetlbfs rw 0 0"),
    ])
    .memory;
    let pools: Vec<_> =
        memory.huge_page_pools.iter().map(|pool| (pool.page_kib, pool.pages, pool.free)).collect();
    assert_eq!(pools, [(2048, 512, 500), (1_048_576, 0, 0)]);
    assert_eq!(memory.hugetlbfs, [Path::new("/dev/hugepages")]);
    let transparent = memory.transparent_huge_pages.unwrap();
    assert_eq!(
        (transparent.enabled.as_str(), transparent.defrag.as_deref()),
        ("madvise", Some("defer+madvise"))
    );
}

#[test]
fn reads_numa_tiers_dax_and_cxl() {
    let memory = host(&[
        ("sys/devices/system/node/node0/cpulist", "0-7"),
        ("sys/devices/system/node/node0/meminfo", "Node 0 MemTotal:       1024 kB\nNode 0 MemFree:  9 kB"),
        ("sys/devices/system/node/node0/distance", "10 14"),
        ("sys/devices/system/node/node10/cpulist", ""),
        ("sys/devices/system/node/node2/cpulist", ""),
        ("sys/devices/system/node/possible", "0-10"),
        ("sys/devices/virtual/memory_tiering/memory_tier22/nodelist", "2,10"),
        ("sys/devices/virtual/memory_tiering/memory_tier4/nodelist", "0"),
        ("sys/bus/dax/devices/dax0.0/size", "137438953472"),
        ("sys/bus/dax/devices/dax0.0/target_node", "2"),
        ("sys/bus/dax/devices/dax0.0/driver", "-> ../../../bus/dax/drivers/kmem"),
        ("sys/bus/cxl/devices/mem0/ram/size", "0x400000000"),
        ("sys/bus/cxl/devices/mem0/numa_node", "1"),
        ("sys/bus/cxl/devices/decoder0.0/size", "0x1"),
    ])
    .memory;
    let nodes: Vec<_> = memory.nodes.iter().map(|node| (node.id, node.cpus.as_str())).collect();
    assert_eq!(nodes, [(0, "0-7"), (2, ""), (10, "")]);
    assert_eq!((memory.nodes[0].total_kib, &*memory.nodes[0].distances), (Some(1024), &[10, 14][..]));
    let tiers: Vec<_> = memory.tiers.iter().map(|tier| (tier.id, tier.nodes.as_str())).collect();
    assert_eq!(tiers, [(4, "0"), (22, "2,10")]);
    assert_eq!(memory.dax[0].driver.as_deref(), Some("kmem"));
    assert_eq!((memory.dax[0].bytes, memory.dax[0].target_node), (Some(1 << 37), Some(2)));
    assert_eq!(memory.cxl.len(), 1);
    assert_eq!((memory.cxl[0].volatile_bytes, memory.cxl[0].numa_node), (Some(16 << 30), Some(1)));
}

#[test]
fn reads_what_happens_to_cold_memory() {
    let cold = host(&[
        ("proc/meminfo", "MemTotal: 1024 kB\nInactive:   9 kB\nInactive(anon):      300 kB\n"),
        ("proc/swaps", "Filename Type Size Used Priority\n/swapfile file 4194300 0 -2\n"),
        ("proc/sys/kernel/numa_balancing", "2"),
        ("sys/kernel/mm/numa/demotion_enabled", "true"),
        ("sys/kernel/mm/damon/admin/kdamonds/nr_kdamonds", "0"),
        ("sys/module/damon_reclaim/parameters/enabled", "N"),
        ("sys/module/zswap/parameters/enabled", "Y"),
        ("sys/module/zswap/parameters/compressor", "zstd"),
        ("sys/module/zswap/parameters/max_pool_percent", "20"),
    ])
    .memory
    .cold;
    assert_eq!((cold.inactive_kib, cold.swap, cold.damon), (Some(300), true, true));
    assert_eq!((cold.damon_reclaim, cold.demotion, cold.numa_balancing), (Some(false), Some(true), Some(2)));
    let zswap = cold.zswap.unwrap();
    assert_eq!((zswap.enabled, &*zswap.compressor, zswap.max_pool_percent), (true, "zstd", Some(20)));
    let none = host(&[("proc/swaps", "Filename Type Size Used Priority\n")]).memory.cold;
    assert_eq!(none, hasten_probe::host::memory::Cold::default());
}

#[test]
fn finds_accelerators_by_pci_id_with_the_state_of_their_driver() {
    let devices = host(&[
        ("sys/bus/pci/devices/0000:00:01.0/vendor", "0x1af4"),
        ("sys/bus/pci/devices/0000:00:01.0/device", "0x4940"),
        ("sys/bus/pci/devices/0000:6b:00.0/vendor", "0x8086"),
        ("sys/bus/pci/devices/0000:6b:00.0/device", "0x4940"),
        ("sys/bus/pci/devices/0000:6b:00.0/driver", "-> ../../../bus/pci/drivers/4xxx"),
        ("sys/bus/pci/devices/0000:6b:00.0/qat/state", "up"),
        ("sys/bus/pci/devices/0000:6b:00.0/sriov_numvfs", "2"),
        ("sys/bus/pci/devices/0000:6b:00.0/sriov_totalvfs", "16"),
        ("sys/bus/pci/devices/0000:6b:00.1/vendor", "0x8086"),
        ("sys/bus/pci/devices/0000:6b:00.1/device", "0x4941"),
        ("sys/bus/pci/devices/0000:6a:01.0/vendor", "0x8086"),
        ("sys/bus/pci/devices/0000:6a:01.0/device", "0x0b25"),
        ("sys/bus/pci/devices/0000:6a:01.0/driver", "-> ../../../bus/pci/drivers/idxd"),
        ("sys/bus/pci/devices/0000:6a:01.0/dsa0/state", "enabled"),
        ("sys/bus/pci/devices/0000:6a:01.0/dsa0/wq0.0/state", "enabled"),
        ("sys/bus/pci/devices/0000:6a:01.0/dsa0/wq0.1/state", "disabled"),
        ("sys/bus/pci/devices/0000:6a:02.0/vendor", "0x8086"),
        ("sys/bus/pci/devices/0000:6a:02.0/device", "0x0cfe"),
        ("sys/bus/pci/devices/0000:6a:02.0/iax1/state", "disabled"),
        ("sys/bus/pci/devices/0000:6c:00.0/vendor", "0x8086"),
        ("sys/bus/pci/devices/0000:6c:00.0/device", "0x2714"),
    ])
    .devices;
    let seen: Vec<_> = devices.iter().map(|d| (&*d.address, d.kind, d.model, d.virtual_function)).collect();
    assert_eq!(
        seen,
        [
            ("0000:6a:01.0", DeviceKind::Dsa, "dsa", false),
            ("0000:6a:02.0", DeviceKind::Iaa, "iax", false),
            ("0000:6b:00.0", DeviceKind::Qat, "4xxx", false),
            ("0000:6b:00.1", DeviceKind::Qat, "4xxx", true),
            ("0000:6c:00.0", DeviceKind::Dlb, "dlb2.5", false),
        ]
    );
    assert_eq!((devices[0].state.as_deref(), devices[0].queues), (Some("enabled"), Some(1)));
    assert_eq!((devices[1].state.as_deref(), devices[1].queues), (Some("disabled"), Some(0)));
    assert_eq!((devices[2].state.as_deref(), devices[2].virtual_functions), (Some("up"), Some((2, 16))));
    assert_eq!((devices[2].driver.as_deref(), devices[3].driver.as_deref()), (Some("4xxx"), None));
}

#[test]
fn io_uring_depends_on_version_and_switch() {
    let state = |release: &str, switch: Option<&str>| {
        let mut files = vec![("proc/sys/kernel/osrelease", release)];
        files.extend(switch.map(|value| ("proc/sys/kernel/io_uring_disabled", value)));
        host(&files).kernel.io_uring
    };
    assert_eq!(state("4.19.0-27-amd64", None), IoUring::Absent);
    assert_eq!(state("6.1.0-21-amd64", None), IoUring::Enabled);
    assert_eq!(state("6.6.0", None), IoUring::Absent);
    assert_eq!(state("6.6.0", Some("0")), IoUring::Enabled);
    assert_eq!(state("6.6.0", Some("1")), IoUring::Restricted);
    assert_eq!(state("6.6.0", Some("2")), IoUring::Disabled);
}

#[test]
fn user_namespaces_have_three_switches() {
    let allowed = |files: &[(&str, &str)]| host(files).kernel.unprivileged_userns;
    let limit = ("proc/sys/user/max_user_namespaces", "1000");
    assert_eq!(allowed(&[]), None);
    assert_eq!(allowed(&[limit]), Some(true));
    assert_eq!(allowed(&[("proc/sys/user/max_user_namespaces", "0")]), Some(false));
    assert_eq!(allowed(&[limit, ("proc/sys/kernel/unprivileged_userns_clone", "0")]), Some(false));
    assert_eq!(
        allowed(&[limit, ("proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1")]),
        Some(false)
    );
}

#[test]
fn kernel_tls_is_loaded_available_or_absent() {
    let release = ("proc/sys/kernel/osrelease", "6.1.0");
    let state = |file: &str| host(&[release, (file, "")]).kernel.ktls;
    assert_eq!(state("proc/net/tls_stat"), KernelTls::Loaded);
    assert_eq!(state("sys/module/tls/refcnt"), KernelTls::Loaded);
    assert_eq!(state("lib/modules/6.1.0/kernel/net/tls/tls.ko.xz"), KernelTls::Available);
    assert_eq!(state("lib/modules/6.1.0/modules.dep"), KernelTls::Absent);
    assert_eq!(state("proc/meminfo"), KernelTls::Unknown);
}

#[test]
fn the_tightest_limit_of_nested_groups_counts() {
    let v2 = host(&[
        ("sys/fs/cgroup/cgroup.controllers", "cpu memory"),
        ("proc/self/cgroup", "0::/pod/container"),
        ("sys/fs/cgroup/pod/cpu.max", "150000 100000"),
        ("sys/fs/cgroup/pod/container/cpu.max", "max 100000"),
        ("sys/fs/cgroup/pod/memory.max", "max"),
        ("sys/fs/cgroup/pod/container/memory.max", "1073741824"),
    ])
    .kernel
    .cgroup;
    assert_eq!(
        (v2.version, v2.cpu_limit, v2.memory_limit_bytes),
        (CgroupVersion::V2, Some(1.5), Some(1 << 30))
    );
    let v1 = host(&[
        ("proc/self/cgroup", "5:memory:/a\n4:cpu,cpuacct:/a/b"),
        ("sys/fs/cgroup/cpu/a/cpu.cfs_quota_us", "50000"),
        ("sys/fs/cgroup/cpu/a/cpu.cfs_period_us", "100000"),
        ("sys/fs/cgroup/cpu/a/b/cpu.cfs_quota_us", "-1"),
        ("sys/fs/cgroup/cpu/a/b/cpu.cfs_period_us", "100000"),
        ("sys/fs/cgroup/memory/a/memory.limit_in_bytes", "9223372036854771712"),
    ])
    .kernel
    .cgroup;
    assert_eq!((v1.version, v1.cpu_limit, v1.memory_limit_bytes), (CgroupVersion::V1, Some(0.5), None));
}
