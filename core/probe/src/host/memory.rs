//! Huge pages, NUMA nodes, memory tiers, memory behind DAX and CXL, and what the kernel does with cold memory.

use std::path::PathBuf;

use serde::Serialize;

use crate::root::Root;

#[derive(Debug, Clone, Default, Serialize)]
pub struct Memory {
    /// `MemTotal` of `/proc/meminfo`.
    pub total_kib: Option<u64>,
    pub huge_page_pools: Vec<HugePagePool>,
    /// Where hugetlbfs is mounted.
    pub hugetlbfs: Vec<PathBuf>,
    pub transparent_huge_pages: Option<TransparentHugePages>,
    pub nodes: Vec<NumaNode>,
    pub tiers: Vec<MemoryTier>,
    pub dax: Vec<DaxDevice>,
    pub cxl: Vec<CxlMemory>,
    pub cold: Cold,
}

/// The hugetlb pool of one page size.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct HugePagePool {
    pub page_kib: u64,
    pub pages: u64,
    pub free: u64,
}

/// The chosen words of lines like `always [madvise] never`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TransparentHugePages {
    pub enabled: String,
    pub defrag: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct NumaNode {
    pub id: u32,
    /// As the kernel writes it, such as `0-7,16-23`; empty for memory without CPUs.
    pub cpus: String,
    pub total_kib: Option<u64>,
    /// To every node, this one included (10).
    pub distances: Vec<u32>,
}

/// Nodes of equal speed; a smaller number is faster memory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct MemoryTier {
    pub id: u32,
    pub nodes: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct DaxDevice {
    pub name: String,
    pub bytes: Option<u64>,
    /// `device_dax` serves it as a device, `kmem` as system memory.
    pub driver: Option<String>,
    pub target_node: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct CxlMemory {
    pub name: String,
    pub volatile_bytes: Option<u64>,
    pub persistent_bytes: Option<u64>,
    pub driver: Option<String>,
    pub numa_node: Option<i32>,
}

/// How the kernel treats memory that is not used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Cold {
    /// `Inactive(anon)` of `/proc/meminfo`: memory of programs that was not used lately.
    pub inactive_kib: Option<u64>,
    /// `None` if the kernel has none.
    pub zswap: Option<Zswap>,
    /// Whether there is swap space.
    pub swap: bool,
    /// Whether DAMON can be told what to do, by its files in sysfs.
    pub damon: bool,
    /// Whether DAMON's reclaim is on; `None` if the kernel has none.
    pub damon_reclaim: Option<bool>,
    /// Whether memory without room moves to a slower node; `None` if the kernel cannot do that.
    pub demotion: Option<bool>,
    /// `kernel.numa_balancing`: 2 moves hot memory to a faster node.
    pub numa_balancing: Option<u32>,
}

/// Compressed memory before swap space.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Zswap {
    pub enabled: bool,
    pub compressor: String,
    pub max_pool_percent: Option<u32>,
}

impl Memory {
    pub(crate) fn read(root: &Root) -> Self {
        let meminfo = root.text("proc/meminfo").unwrap_or_default();
        Self {
            total_kib: kib(&meminfo, "MemTotal:"),
            huge_page_pools: huge_page_pools(root),
            hugetlbfs: hugetlbfs(root),
            transparent_huge_pages: transparent_huge_pages(root),
            nodes: nodes(root),
            tiers: tiers(root),
            dax: dax(root),
            cxl: cxl(root),
            cold: cold(root, &meminfo),
        }
    }
}

/// The number after `key` in a meminfo file, wherever in its line the key is.
fn kib(meminfo: &str, key: &str) -> Option<u64> {
    meminfo.lines().find_map(|line| line.split_once(key)?.1.split_whitespace().next()?.parse().ok())
}

/// The number behind `prefix`, for names such as `node3`.
fn numbered(name: &str, prefix: &str) -> Option<u32> {
    name.strip_prefix(prefix)?.parse().ok()
}

fn huge_page_pools(root: &Root) -> Vec<HugePagePool> {
    let base = "sys/kernel/mm/hugepages";
    let pool = |name: &String| {
        let page_kib = name.strip_prefix("hugepages-")?.strip_suffix("kB")?.parse().ok()?;
        Some(HugePagePool {
            page_kib,
            pages: root.number(format!("{base}/{name}/nr_hugepages"))?,
            free: root.number(format!("{base}/{name}/free_hugepages")).unwrap_or(0),
        })
    };
    let mut pools: Vec<_> = root.names(base).iter().filter_map(pool).collect();
    pools.sort_by_key(|pool| pool.page_kib);
    pools
}

fn hugetlbfs(root: &Root) -> Vec<PathBuf> {
    let mounts = root.text("proc/mounts").unwrap_or_default();
    let mount = |line: &str| {
        let mut fields = line.split_whitespace().skip(1);
        let path = fields.next()?;
        (fields.next()? == "hugetlbfs").then(|| PathBuf::from(path))
    };
    mounts.lines().filter_map(mount).collect()
}

fn transparent_huge_pages(root: &Root) -> Option<TransparentHugePages> {
    let base = "sys/kernel/mm/transparent_hugepage";
    let chosen = |file: &str| {
        let text = root.text(format!("{base}/{file}"))?;
        let (_, rest) = text.split_once('[')?;
        Some(rest.split_once(']')?.0.to_owned())
    };
    Some(TransparentHugePages { enabled: chosen("enabled")?, defrag: chosen("defrag") })
}

pub(super) fn nodes(root: &Root) -> Vec<NumaNode> {
    let base = "sys/devices/system/node";
    let node = |name: &String| {
        let id = numbered(name, "node")?;
        let meminfo = root.text(format!("{base}/{name}/meminfo")).unwrap_or_default();
        let distances = root.text(format!("{base}/{name}/distance")).unwrap_or_default();
        Some(NumaNode {
            id,
            cpus: root.text(format!("{base}/{name}/cpulist")).unwrap_or_default(),
            total_kib: kib(&meminfo, "MemTotal:"),
            distances: distances.split_whitespace().filter_map(|distance| distance.parse().ok()).collect(),
        })
    };
    let mut nodes: Vec<_> = root.names(base).iter().filter_map(node).collect();
    nodes.sort_by_key(|node| node.id);
    nodes
}

fn tiers(root: &Root) -> Vec<MemoryTier> {
    let base = "sys/devices/virtual/memory_tiering";
    let tier = |name: &String| {
        let id = numbered(name, "memory_tier")?;
        Some(MemoryTier { id, nodes: root.text(format!("{base}/{name}/nodelist")).unwrap_or_default() })
    };
    let mut tiers: Vec<_> = root.names(base).iter().filter_map(tier).collect();
    tiers.sort_by_key(|tier| tier.id);
    tiers
}

fn dax(root: &Root) -> Vec<DaxDevice> {
    let base = "sys/bus/dax/devices";
    let device = |name: String| DaxDevice {
        bytes: root.number(format!("{base}/{name}/size")),
        driver: root.link(format!("{base}/{name}/driver")),
        target_node: root.number(format!("{base}/{name}/target_node")),
        name,
    };
    root.names(base).into_iter().map(device).collect()
}

fn cxl(root: &Root) -> Vec<CxlMemory> {
    let base = "sys/bus/cxl/devices";
    let memory = |name: String| CxlMemory {
        volatile_bytes: root.hex(format!("{base}/{name}/ram/size")),
        persistent_bytes: root.hex(format!("{base}/{name}/pmem/size")),
        driver: root.link(format!("{base}/{name}/driver")),
        numa_node: root.number(format!("{base}/{name}/numa_node")),
        name,
    };
    root.names(base).into_iter().filter(|name| numbered(name, "mem").is_some()).map(memory).collect()
}

fn cold(root: &Root, meminfo: &str) -> Cold {
    let zswap = "sys/module/zswap/parameters";
    let switch = |file: &str| Some(matches!(root.text(file)?.trim(), "Y" | "1" | "true"));
    let enabled = switch("sys/module/zswap/parameters/enabled");
    Cold {
        inactive_kib: kib(meminfo, "Inactive(anon):"),
        zswap: enabled.map(|enabled| Zswap {
            enabled,
            compressor: root.text(format!("{zswap}/compressor")).unwrap_or_default(),
            max_pool_percent: root.number(format!("{zswap}/max_pool_percent")),
        }),
        // The first line is a heading.
        swap: root.text("proc/swaps").is_some_and(|swaps| swaps.lines().nth(1).is_some()),
        damon: !root.names("sys/kernel/mm/damon/admin").is_empty(),
        damon_reclaim: switch("sys/module/damon_reclaim/parameters/enabled"),
        demotion: switch("sys/kernel/mm/numa/demotion_enabled"),
        numa_balancing: root.number("proc/sys/kernel/numa_balancing"),
    }
}
