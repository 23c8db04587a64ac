//! CPU features.

use crate::vocabulary::names;

names! {
    /// Instruction set extensions used by some hasten accelerator, by their names in `/proc/cpuinfo`.
    Feature {
        Avx512F => "avx512f",
        Avx512Dq => "avx512dq",
        Avx512Bw => "avx512bw",
        Avx512Vl => "avx512vl",
        Avx512Cd => "avx512cd",
        Avx512Ifma => "avx512ifma",
        Avx512Vbmi => "avx512vbmi",
        Avx512Vbmi2 => "avx512_vbmi2",
        AvxIfma => "avx_ifma",
        Vaes => "vaes",
        Gfni => "gfni",
        ShaNi => "sha_ni",
        Bmi1 => "bmi1",
        Bmi2 => "bmi2",
        Fma => "fma",
        Sse42 => "sse4_2",
        Pclmulqdq => "pclmulqdq",
        Avx2 => "avx2",
        Vpclmulqdq => "vpclmulqdq",
        Adx => "adx",
        Aes => "aes",
    }
}

impl Feature {
    /// The extensions that the multi-buffer engine's object code executes, found by disassembly. They are more than
    /// crypto_mb itself asks for (`MBX_AVX512_GENERAL_ISA`): its compiler also used CD, VBMI and GFNI, which a
    /// hypervisor may hide one by one.
    pub const MULTIBUFFER: [Self; 12] = [
        Self::Avx512F,
        Self::Avx512Dq,
        Self::Avx512Bw,
        Self::Avx512Vl,
        Self::Avx512Cd,
        Self::Avx512Ifma,
        Self::Avx512Vbmi,
        Self::Avx512Vbmi2,
        Self::Gfni,
        Self::Bmi1,
        Self::Bmi2,
        Self::Fma,
    ];

    /// The extensions that the engine for single operations executes or asks for: all are in Intel Broadwell, AMD Zen and
    /// later.
    #[cfg(not(target_arch = "aarch64"))]
    pub const SINGLE: [Self; 6] = [Self::Adx, Self::Aes, Self::Avx2, Self::Bmi1, Self::Bmi2, Self::Pclmulqdq];

    /// On arm64, the extensions for cryptography, which CPUs for servers have. The engine asks for the rest of them itself.
    #[cfg(target_arch = "aarch64")]
    pub const SINGLE: [Self; 1] = [Self::Aes];

    /// Those that a CPU of this machine's kind may have.
    #[cfg(not(target_arch = "aarch64"))]
    pub const HERE: [Self; Self::ALL.len()] = Self::ALL;

    #[cfg(target_arch = "aarch64")]
    pub const HERE: [Self; 1] = Self::SINGLE;

    /// The commonly known name.
    pub const fn label(self) -> &'static str {
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
            Self::Adx => "ADX",
            Self::Aes if cfg!(target_arch = "aarch64") => "AES",
            Self::Aes => "AES-NI",
        }
    }

    /// Whether a program may execute it here: the CPU has it, and the kernel saves its registers (`xgetbv`). The
    /// standard library uses different names, and accepts only literals, hence the check is here.
    #[cfg(target_arch = "x86_64")]
    pub fn is_usable(self) -> bool {
        match self {
            Self::Avx512F => is_x86_feature_detected!("avx512f"),
            Self::Avx512Dq => is_x86_feature_detected!("avx512dq"),
            Self::Avx512Bw => is_x86_feature_detected!("avx512bw"),
            Self::Avx512Vl => is_x86_feature_detected!("avx512vl"),
            Self::Avx512Cd => is_x86_feature_detected!("avx512cd"),
            Self::Avx512Ifma => is_x86_feature_detected!("avx512ifma"),
            Self::Avx512Vbmi => is_x86_feature_detected!("avx512vbmi"),
            Self::Avx512Vbmi2 => is_x86_feature_detected!("avx512vbmi2"),
            Self::AvxIfma => is_x86_feature_detected!("avxifma"),
            Self::Vaes => is_x86_feature_detected!("vaes"),
            Self::Gfni => is_x86_feature_detected!("gfni"),
            Self::ShaNi => is_x86_feature_detected!("sha"),
            Self::Bmi1 => is_x86_feature_detected!("bmi1"),
            Self::Bmi2 => is_x86_feature_detected!("bmi2"),
            Self::Fma => is_x86_feature_detected!("fma"),
            Self::Sse42 => is_x86_feature_detected!("sse4.2"),
            Self::Pclmulqdq => is_x86_feature_detected!("pclmulqdq"),
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            Self::Vpclmulqdq => is_x86_feature_detected!("vpclmulqdq"),
            Self::Adx => is_x86_feature_detected!("adx"),
            Self::Aes => is_x86_feature_detected!("aes"),
        }
    }

    /// One of these is in CPUs of arm64, too, by the same name.
    #[cfg(target_arch = "aarch64")]
    pub fn is_usable(self) -> bool {
        self == Self::Aes && std::arch::is_aarch64_feature_detected!("aes")
    }

    /// Other CPUs have none of them.
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    pub fn is_usable(self) -> bool {
        false
    }
}
