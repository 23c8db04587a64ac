use hasten_probe::host::memory::Memory;

use super::{Finding, Group, State, size};

pub(super) fn findings(memory: &Memory) -> Vec<Finding> {
    let all =
        vec![huge_pages(memory), transparent(memory), numa(memory), tiers(memory), dax(memory), cxl(memory)];
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
