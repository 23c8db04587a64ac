use hasten_probe::host::memory::Memory;

use super::{Finding, Group, State, size};

pub(super) fn findings(memory: &Memory) -> Vec<Finding> {
    let all = vec![
        huge_pages(memory),
        transparent(memory),
        numa(memory),
        tiers(memory),
        promotion(memory),
        zswap(memory),
        reclaim(memory),
        dax(memory),
        cxl(memory),
    ];
    if is_told(memory) { all } else { all.into_iter().map(Finding::unknown).collect() }
}

/// Every kernel reports something about its memory if `/sys` or `/proc` is mounted.
fn is_told(memory: &Memory) -> bool {
    memory.total_kib.is_some() || !memory.nodes.is_empty() || !memory.huge_page_pools.is_empty()
}

fn finding(id: &str, feature: &str, why: &'static str) -> Finding {
    Finding::new(Group::Memory, format!("memory.{id}"), feature, why)
}

fn huge_pages(memory: &Memory) -> Finding {
    let finding =
        finding("huge_pages", "huge page pool", "fewer TLB misses, for memory that is reserved for it");
    let pools: Vec<_> = memory.huge_page_pools.iter().filter(|pool| pool.pages > 0).collect();
    if memory.huge_page_pools.is_empty() {
        return finding.state(State::Absent, "not in this kernel");
    }
    if pools.is_empty() {
        return finding
            .state(State::Absent, "none reserved")
            .fix("sysctl vm.nr_hugepages=512 (1 GiB of 2 MiB pages)");
    }
    let pools = pools
        .iter()
        .map(|pool| format!("{} × {}, {} free", pool.pages, size(pool.page_kib * 1024), pool.free));
    let detail = pools.collect::<Vec<_>>().join("; ");
    if memory.hugetlbfs.is_empty() {
        return finding
            .state(State::Limited, format!("{detail}; hugetlbfs is not mounted"))
            .fix("mount -t hugetlbfs none /dev/hugepages");
    }
    finding.state(State::Available, detail)
}

fn transparent(memory: &Memory) -> Finding {
    let finding = finding("thp", "transparent huge pages", "fewer TLB misses without a reservation");
    match &memory.transparent_huge_pages {
        None => finding.state(State::Absent, "not in this kernel"),
        Some(pages) if pages.enabled == "never" => finding
            .state(State::Absent, "never")
            .fix("echo madvise > /sys/kernel/mm/transparent_hugepage/enabled"),
        Some(pages) => {
            let defrag = pages.defrag.as_ref().map(|defrag| format!(", defrag {defrag}")).unwrap_or_default();
            finding.state(State::Available, format!("{}{defrag}", pages.enabled))
        }
    }
}

fn numa(memory: &Memory) -> Finding {
    let finding = finding("numa", "NUMA nodes", "a worker is faster on memory of its own node");
    let nodes = &memory.nodes;
    let without_cpus = nodes.iter().filter(|node| node.cpus.is_empty()).count();
    match nodes.len() {
        0 => finding,
        1 => finding.state(State::Absent, "one node: all memory is equally near"),
        count if without_cpus > 0 => finding
            .state(State::Available, format!("{count} nodes, {without_cpus} of them memory without CPUs")),
        count => finding.state(State::Available, format!("{count} nodes")),
    }
}

fn tiers(memory: &Memory) -> Finding {
    let finding = finding("tiers", "memory tiers", "cold data can live in slower, cheaper memory");
    match memory.tiers.as_slice() {
        [] => finding.state(State::Absent, "not in this kernel (since 6.1)"),
        [_] => finding.state(State::Absent, "one tier: all memory is equally fast"),
        tiers => {
            let tiers: Vec<_> =
                tiers.iter().map(|tier| format!("{} (nodes {})", tier.id, tier.nodes)).collect();
            finding.state(State::Available, tiers.join(", "))
        }
    }
}

/// What moves between nodes by its use, which no allocator can know.
fn promotion(memory: &Memory) -> Finding {
    let finding = finding(
        "promotion",
        "promotion and demotion",
        "the kernel moves hot memory to a near node, and cold memory away",
    );
    if memory.nodes.len() < 2 {
        return finding.state(State::Absent, "one node: there is nowhere to move");
    }
    let Some(demotes) = memory.cold.demotion else {
        return finding.state(State::Absent, "not in this kernel (since 5.15)");
    };
    let promotes = memory.cold.numa_balancing.is_some_and(|mode| mode & 2 != 0);
    let detail = format!(
        "demotion {}, numa_balancing = {}",
        if demotes { "on" } else { "off" },
        memory.cold.numa_balancing.map_or_else(|| "none".to_owned(), |mode| mode.to_string())
    );
    if demotes && promotes {
        return finding.state(State::Available, detail);
    }
    finding
        .state(State::Limited, detail)
        .fix("echo 1 > /sys/kernel/mm/numa/demotion_enabled; sysctl kernel.numa_balancing=2")
}

/// The memory of programs that was not used lately: what the two that follow could work on, at most.
fn inactive(memory: &Memory) -> String {
    let inactive = memory.cold.inactive_kib.filter(|kib| *kib > 0);
    inactive.map(|kib| format!("; {} of programs' memory is inactive", size(kib * 1024))).unwrap_or_default()
}

fn zswap(memory: &Memory) -> Finding {
    let finding =
        finding("zswap", "zswap", "cold memory is compressed, instead of another kind of memory for it");
    let Some(zswap) = &memory.cold.zswap else {
        return finding.state(State::Absent, "not in this kernel").fix("a kernel with CONFIG_ZSWAP");
    };
    let on = "echo 1 > /sys/module/zswap/parameters/enabled";
    let swap = "fallocate -l 4G /swapfile && chmod 600 /swapfile && mkswap /swapfile && swapon /swapfile";
    let inactive = inactive(memory);
    match (zswap.enabled, memory.cold.swap) {
        (true, true) => {
            let most = zswap.max_pool_percent.map(|most| format!(", at most {most} % of memory"));
            finding.state(State::Available, format!("{}{}", zswap.compressor, most.unwrap_or_default()))
        }
        (true, false) => {
            finding.state(State::Limited, format!("on, but without swap space{inactive}")).fix(swap)
        }
        (false, true) => finding.state(State::Limited, format!("off{inactive}")).fix(on),
        (false, false) => finding
            .state(State::Limited, format!("off, and no swap space{inactive}"))
            .fix(format!("{swap}; {on}")),
    }
}

fn reclaim(memory: &Memory) -> Finding {
    let finding = finding(
        "damon_reclaim",
        "DAMON-based reclaim",
        "what is not used is given up early, to zswap or swap space",
    );
    match memory.cold.damon_reclaim {
        Some(true) => finding.state(State::Available, "on"),
        Some(false) => finding
            .state(State::Limited, format!("off{}", inactive(memory)))
            .fix("echo Y > /sys/module/damon_reclaim/parameters/enabled"),
        None if memory.cold.damon => finding
            .state(State::Limited, format!("not in this kernel, but DAMON is{}", inactive(memory)))
            .fix("damo start --damos_action pageout --damos_access_rate 0 0 --damos_sz_region 4K max --damos_age 60s max --target_pid PID"),
        None => finding.state(State::Absent, "not in this kernel").fix("a kernel with CONFIG_DAMON_RECLAIM"),
    }
}

fn dax(memory: &Memory) -> Finding {
    let finding = finding("dax", "DAX devices", "persistent or far memory, mapped without a page cache");
    if memory.dax.is_empty() {
        return finding.state(State::Absent, "none");
    }
    let device = |device: &hasten_probe::host::memory::DaxDevice| {
        let driver = device.driver.as_deref().unwrap_or("no driver");
        format!("{}: {}, {driver}", device.name, device.bytes.map_or("size unknown".into(), size))
    };
    let detail = memory.dax.iter().map(device).collect::<Vec<_>>().join("; ");
    match memory.dax.iter().find(|device| device.driver.is_none()) {
        None => finding.state(State::Available, detail),
        Some(idle) => finding
            .state(State::Limited, detail)
            .fix(format!("daxctl reconfigure-device --mode=system-ram {} (or --mode=devdax)", idle.name)),
    }
}

fn cxl(memory: &Memory) -> Finding {
    let finding = finding("cxl", "CXL memory", "more memory behind PCI Express, as a slower tier");
    if memory.cxl.is_empty() {
        return finding.state(State::Absent, "none");
    }
    let device = |device: &hasten_probe::host::memory::CxlMemory| {
        let bytes = device.volatile_bytes.unwrap_or(0) + device.persistent_bytes.unwrap_or(0);
        format!("{}: {}", device.name, size(bytes))
    };
    let detail = memory.cxl.iter().map(device).collect::<Vec<_>>().join("; ");
    if memory.cxl.iter().all(|device| device.driver.is_some()) {
        finding.state(State::Available, detail)
    } else {
        finding.state(State::Limited, format!("{detail}; no driver")).fix("modprobe cxl_mem; cxl list -M")
    }
}
