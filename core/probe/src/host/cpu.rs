//! CPU features: what the silicon has, what the kernel lists, and what a program may use.

use serde::Serialize;

use crate::root::Root;

/// Instruction set extensions that some hasten accelerator can use, by their names in `/proc/cpuinfo`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Feature {
    #[serde(rename = "avx512f")]
    Avx512F,
    #[serde(rename = "avx512dq")]
    Avx512Dq,
    #[serde(rename = "avx512bw")]
    Avx512Bw,
    #[serde(rename = "avx512vl")]
    Avx512Vl,
    #[serde(rename = "avx512cd")]
    Avx512Cd,
    #[serde(rename = "avx512ifma")]
    Avx512Ifma,
    #[serde(rename = "avx512vbmi")]
    Avx512Vbmi,
    #[serde(rename = "avx512_vbmi2")]
    Avx512Vbmi2,
    #[serde(rename = "avx_ifma")]
    AvxIfma,
    #[serde(rename = "vaes")]
    Vaes,
    #[serde(rename = "gfni")]
    Gfni,
    #[serde(rename = "sha_ni")]
    ShaNi,
    #[serde(rename = "bmi1")]
    Bmi1,
    #[serde(rename = "bmi2")]
    Bmi2,
    #[serde(rename = "fma")]
    Fma,
    #[serde(rename = "sse4_2")]
    Sse42,
    #[serde(rename = "pclmulqdq")]
    Pclmulqdq,
    #[serde(rename = "avx2")]
    Avx2,
    #[serde(rename = "vpclmulqdq")]
    Vpclmulqdq,
}

impl Feature {
    pub const ALL: [Self; 19] = [
        Self::Avx512F,
        Self::Avx512Dq,
        Self::Avx512Bw,
        Self::Avx512Vl,
        Self::Avx512Cd,
        Self::Avx512Ifma,
        Self::Avx512Vbmi,
        Self::Avx512Vbmi2,
        Self::AvxIfma,
        Self::Vaes,
        Self::Gfni,
        Self::ShaNi,
        Self::Bmi1,
        Self::Bmi2,
        Self::Fma,
        Self::Sse42,
        Self::Pclmulqdq,
        Self::Avx2,
        Self::Vpclmulqdq,
    ];

    /// The flag in `/proc/cpuinfo`.
    pub fn flag(self) -> &'static str {
        match self {
            Self::Avx512F => "avx512f",
            Self::Avx512Dq => "avx512dq",
            Self::Avx512Bw => "avx512bw",
            Self::Avx512Vl => "avx512vl",
            Self::Avx512Cd => "avx512cd",
            Self::Avx512Ifma => "avx512ifma",
            Self::Avx512Vbmi => "avx512vbmi",
            Self::Avx512Vbmi2 => "avx512_vbmi2",
            Self::AvxIfma => "avx_ifma",
            Self::Vaes => "vaes",
            Self::Gfni => "gfni",
            Self::ShaNi => "sha_ni",
            Self::Bmi1 => "bmi1",
            Self::Bmi2 => "bmi2",
            Self::Fma => "fma",
            Self::Sse42 => "sse4_2",
            Self::Pclmulqdq => "pclmulqdq",
            Self::Avx2 => "avx2",
            Self::Vpclmulqdq => "vpclmulqdq",
        }
    }

    /// The name that people know.
    pub fn label(self) -> &'static str {
        match self {
            Self::Avx512F => "AVX-512 F",
            Self::Avx512Dq => "AVX-512 DQ",
            Self::Avx512Bw => "AVX-512 BW",
            Self::Avx512Vl => "AVX-512 VL",
            Self::Avx512Cd => "AVX-512 CD",
            Self::Avx512Ifma => "AVX-512 IFMA",
            Self::Avx512Vbmi => "AVX-512 VBMI",
            Self::Avx512Vbmi2 => "AVX-512 VBMI2",
            Self::AvxIfma => "AVX-IFMA",
            Self::Vaes => "VAES",
            Self::Gfni => "GFNI",
            Self::ShaNi => "SHA-NI",
            Self::Bmi1 => "BMI1",
            Self::Bmi2 => "BMI2",
            Self::Fma => "FMA",
            Self::Sse42 => "SSE4.2",
            Self::Pclmulqdq => "PCLMULQDQ",
            Self::Avx2 => "AVX2",
            Self::Vpclmulqdq => "VPCLMULQDQ",
        }
    }
}

/// One feature as the three parties see it.
#[derive(Debug, Clone, Serialize)]
pub struct FeatureState {
    pub feature: Feature,
    /// `cpuid` reports it.
    pub cpu: bool,
    /// `/proc/cpuinfo` lists it.
    pub kernel: bool,
    /// A program may execute it: the CPU has it and the kernel saves its registers.
    pub usable: bool,
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
        let flags = field("flags");
        let listed = |flag: &str| flags.split_whitespace().any(|candidate| candidate == flag);
        let reported = silicon::features();
        let state = |feature: Feature| FeatureState {
            feature,
            cpu: reported.contains(&feature),
            kernel: listed(feature.flag()),
            usable: silicon::usable(feature),
        };
        Self {
            vendor: field("vendor_id"),
            model: field("model name"),
            threads: info.lines().filter(|line| line.starts_with("processor")).count(),
            hypervisor: listed("hypervisor"),
            features: Feature::ALL.into_iter().map(state).collect(),
        }
    }

    /// The model, where the kernel tells it: not without `/proc`.
    pub fn name(&self) -> &str {
        if self.model.is_empty() { "CPU" } else { &self.model }
    }

    /// Whether a program may use `feature` here.
    pub fn has(&self, feature: Feature) -> bool {
        self.features.iter().any(|state| state.feature == feature && state.usable)
    }
}

fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    info.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then_some(value.trim())
    })
}

#[cfg(target_arch = "x86_64")]
mod silicon {
    use raw_cpuid::CpuId;

    use super::Feature;

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
        };
        Feature::ALL.into_iter().filter(has).collect()
    }

    /// The standard library also asks the operating system (`xgetbv`).
    pub(super) fn usable(feature: Feature) -> bool {
        match feature {
            Feature::Avx512F => is_x86_feature_detected!("avx512f"),
            Feature::Avx512Dq => is_x86_feature_detected!("avx512dq"),
            Feature::Avx512Bw => is_x86_feature_detected!("avx512bw"),
            Feature::Avx512Vl => is_x86_feature_detected!("avx512vl"),
            Feature::Avx512Cd => is_x86_feature_detected!("avx512cd"),
            Feature::Avx512Ifma => is_x86_feature_detected!("avx512ifma"),
            Feature::Avx512Vbmi => is_x86_feature_detected!("avx512vbmi"),
            Feature::Avx512Vbmi2 => is_x86_feature_detected!("avx512vbmi2"),
            Feature::AvxIfma => is_x86_feature_detected!("avxifma"),
            Feature::Vaes => is_x86_feature_detected!("vaes"),
            Feature::Gfni => is_x86_feature_detected!("gfni"),
            Feature::ShaNi => is_x86_feature_detected!("sha"),
            Feature::Bmi1 => is_x86_feature_detected!("bmi1"),
            Feature::Bmi2 => is_x86_feature_detected!("bmi2"),
            Feature::Fma => is_x86_feature_detected!("fma"),
            Feature::Sse42 => is_x86_feature_detected!("sse4.2"),
            Feature::Pclmulqdq => is_x86_feature_detected!("pclmulqdq"),
            Feature::Avx2 => is_x86_feature_detected!("avx2"),
            Feature::Vpclmulqdq => is_x86_feature_detected!("vpclmulqdq"),
        }
    }
}

#[cfg(not(target_arch = "x86_64"))]
mod silicon {
    use super::Feature;

    pub(super) fn features() -> Vec<Feature> {
        Vec::new()
    }

    pub(super) fn usable(_: Feature) -> bool {
        false
    }
}
