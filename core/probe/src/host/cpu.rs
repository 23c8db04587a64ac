//! CPU features: what the silicon has, what the kernel lists, and what a program may use.

use hasten_names::Feature;
use serde::{Serialize, Serializer};

use crate::root::Root;

/// One feature as seen by the CPU, the kernel and programs.
#[derive(Debug, Clone, Serialize)]
pub struct FeatureState {
    #[serde(serialize_with = "flag")]
    pub feature: Feature,
    /// `cpuid` reports it.
    pub cpu: bool,
    /// `/proc/cpuinfo` lists it.
    pub kernel: bool,
    /// A program may execute it: the CPU has it and the kernel saves its registers.
    pub usable: bool,
}

fn flag<S: Serializer>(feature: &Feature, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_str(feature.as_str())
}

#[derive(Debug, Clone, Default, Serialize)]
pub struct Cpu {
    pub vendor: String,
    pub model: String,
    /// Logical CPUs online.
    pub threads: usize,
    pub hypervisor: bool,
    pub features: Vec<FeatureState>,
}

impl Cpu {
    pub(crate) fn read(root: &Root) -> Self {
        let info = root.text("proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| field(&info, name).unwrap_or_default().to_owned();
        let flags = field(FLAGS);
        let listed = |flag: &str| flags.split_whitespace().any(|candidate| candidate == flag);
        let reported = silicon::features();
        let state = |feature: Feature| FeatureState {
            feature,
            cpu: reported.contains(&feature),
            kernel: listed(feature.as_str()),
            usable: feature.is_usable(),
        };
        Self {
            vendor: field("vendor_id"),
            model: field("model name"),
            threads: info.lines().filter(|line| line.starts_with("processor")).count(),
            hypervisor: listed("hypervisor"),
            features: Feature::HERE.into_iter().map(state).collect(),
        }
    }

    /// The model, if the kernel reveals it: not without `/proc`.
    pub fn name(&self) -> &str {
        if self.model.is_empty() { "CPU" } else { &self.model }
    }

    /// Whether a program may use `feature` here.
    pub fn has(&self, feature: Feature) -> bool {
        self.features.iter().any(|state| state.feature == feature && state.usable)
    }
}

/// The line of `/proc/cpuinfo` that has the extensions.
const FLAGS: &str = if cfg!(target_arch = "aarch64") { "Features" } else { "flags" };

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then_some(value.trim())
    })
}

#[cfg(target_arch = "x86_64")]
mod silicon {
    use hasten_names::Feature;
    use raw_cpuid::CpuId;

    pub(super) fn features() -> Vec<Feature> {
        let cpuid = CpuId::new();
        let Some(leaf) = cpuid.get_extended_feature_info() else { return Vec::new() };
        let Some(first) = cpuid.get_feature_info() else { return Vec::new() };
        let has = |feature: &Feature| match feature {
            Feature::Avx512F => leaf.has_avx512f(),
            Feature::Avx512Dq => leaf.has_avx512dq(),
            Feature::Avx512Bw => leaf.has_avx512bw(),
            Feature::Avx512Vl => leaf.has_avx512vl(),
            Feature::Avx512Cd => leaf.has_avx512cd(),
            Feature::Avx512Ifma => leaf.has_avx512_ifma(),
            Feature::Avx512Vbmi => leaf.has_avx512vbmi(),
            Feature::Avx512Vbmi2 => leaf.has_avx512vbmi2(),
            Feature::AvxIfma => leaf.has_avx_ifma(),
            Feature::Vaes => leaf.has_vaes(),
            Feature::Gfni => leaf.has_gfni(),
            Feature::ShaNi => leaf.has_sha(),
            Feature::Bmi1 => leaf.has_bmi1(),
            Feature::Bmi2 => leaf.has_bmi2(),
            Feature::Fma => first.has_fma(),
            Feature::Sse42 => first.has_sse42(),
            Feature::Pclmulqdq => first.has_pclmulqdq(),
            Feature::Avx2 => leaf.has_avx2(),
            Feature::Vpclmulqdq => leaf.has_vpclmulqdq(),
            Feature::Adx => leaf.has_adx(),
            Feature::Aes => first.has_aesni(),
        };
        Feature::ALL.into_iter().filter(has).collect()
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod silicon {
    use super::Feature;

    /// What a program may use: it cannot ask the CPU itself.
    pub(super) fn features() -> Vec<Feature> {
        Feature::HERE.into_iter().filter(|feature| feature.is_usable()).collect()
    }
}
