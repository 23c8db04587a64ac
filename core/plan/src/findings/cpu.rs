use hasten_probe::host::cpu::FeatureState;
use hasten_probe::{Cpu, Feature};

use super::{Finding, Group, State};

pub(super) fn findings(cpu: &Cpu) -> Vec<Finding> {
    cpu.features.iter().map(|state| finding(cpu, state)).collect()
}

fn finding(cpu: &Cpu, state: &FeatureState) -> Finding {
    let FeatureState { feature, cpu: in_silicon, kernel, usable } = *state;
    let finding =
        Finding::new(Group::Cpu, format!("cpu.{}", feature.as_str()), feature.label(), why(feature));
    match (usable, in_silicon) {
        // Without /proc the kernel lists nothing at all.
        (true, _) if kernel || cpu.threads == 0 => finding.state(State::Available, "yes"),
        // Programs that look at /proc/cpuinfo will not use it; those that ask the CPU will.
        (true, _) => finding.state(State::Available, "yes, though the kernel does not list it"),
        (false, true) => finding
            .state(State::Limited, "kept from programs by the kernel")
            .fix("remove `noxsave` or `clearcpuid=` from the kernel command line"),
        (false, false) => {
            let finding = finding.state(State::Absent, "no");
            if cpu.hypervisor {
                finding.fix("give the virtual machine the host's CPU model")
            } else {
                finding
            }
        }
    }
}

fn why(feature: Feature) -> &'static str {
    match feature {
        Feature::Avx512F => "512-bit registers: eight 64-bit lanes",
        Feature::Avx512Dq => "64-bit arithmetic in the lanes",
        Feature::Avx512Bw => "byte and word operations in the lanes",
        Feature::Avx512Vl => "the same instructions on shorter registers",
        Feature::Avx512Cd => "counts leading zeros in the lanes",
        Feature::Avx512Ifma => "big-number products of eight handshakes at once: RSA, ECDSA, ECDHE",
        Feature::Avx512Vbmi => "permutes bytes of a whole register",
        Feature::Avx512Vbmi2 => "shifts across lanes; the batch engine is built for it",
        Feature::AvxIfma => "IFMA in 256 bits, for CPUs without AVX-512",
        Feature::Vaes => "AES on four blocks at once; OpenSSL uses it by itself",
        Feature::Gfni => "byte-wise affine maps: ciphers, bit tricks",
        Feature::Bmi1 | Feature::Bmi2 => "bit extraction and flagless arithmetic",
        Feature::Fma => "fused multiplication and addition",
        Feature::Sse42 => "string comparison and CRC in hardware: hashing in the fast compressor",
        Feature::Adx => "two carry chains at once: public-key operations one at a time",
        Feature::Aes => "AES in hardware; OpenSSL uses it by itself",
        Feature::Pclmulqdq => "the gzip checksum, 16 bytes at once",
        Feature::Avx2 => "256-bit integers: matching and checksums of compression, post-quantum key exchange",
        Feature::Vpclmulqdq => "the gzip checksum, 64 bytes at once",
        Feature::ShaNi => "SHA-256 in hardware; OpenSSL uses it by itself",
    }
}
