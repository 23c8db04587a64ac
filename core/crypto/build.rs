//! Prepares Intel's crypto_mb for linking into a library that lives in other people's processes, and computes the table of
//! P-384's generator.
//!
//! The archive mixes the functions we call with variants that take OpenSSL's BIGNUMs, in the same object files, so the
//! linker cannot drop one without the other. Left alone, a preload library would carry undefined references to
//! libcrypto's `BN_*`. Every such reference, and those to `malloc` and `free`, are renamed to symbols that
//! `src/multibuffer/unreachable.rs` defines as traps.

#[allow(dead_code, reason = "of the crate's, for these computations")]
#[path = "src/limbs.rs"]
mod limbs;

#[allow(dead_code, reason = "of the crate's, for these computations")]
#[path = "src/single/generator384/field.rs"]
mod field;

#[path = "src/single/generator384/multiples.rs"]
mod multiples;

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, exit};

/// The objects' references other than libc's memory and stack-protector functions.
const UNREACHABLE: [&str; 7] =
    ["BN_bin2bn", "BN_bn2lebinpad", "BN_is_word", "BN_num_bits", "ECDSA_SIG_get0", "malloc", "free"];

fn main() {
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    match env::var("CARGO_CFG_TARGET_ARCH").as_deref() {
        Ok("x86_64") => link(&out),
        // It has engines for single operations, which are crates.
        Ok("aarch64") => {}
        _ => fail("hasten-crypto needs an x86-64 or arm64 target: its engines are assembly for these"),
    }
    for source in ["src/limbs.rs", "src/single/generator384"] {
        println!("cargo:rerun-if-changed={source}");
    }
    let table = format!("{:#x?}", multiples::table());
    if let Err(error) = fs::write(out.join("generator384.rs"), table) {
        fail(&format!("cannot write the table of P-384's generator: {error}"));
    }
}

/// Links crypto_mb, renamed in `out`.
fn link(out: &Path) {
    println!("cargo:rerun-if-env-changed=BUILD_CRYPTO_MB");
    println!("cargo:rerun-if-env-changed=OBJCOPY");
    let archive = archive();
    println!("cargo:rerun-if-changed={}", archive.display());
    rename(&archive, &out.join("libhasten_crypto_mb.a"));
    println!("cargo:rustc-link-search=native={}", out.display());
    println!("cargo:rustc-link-lib=static=hasten_crypto_mb");
}

fn archive() -> PathBuf {
    let Some(root) = env::var_os("BUILD_CRYPTO_MB") else {
        fail("BUILD_CRYPTO_MB is not set: build inside the repository, whose .cargo/config.toml sets it");
    };
    let archive = Path::new(&root).join("libcrypto_mb.a");
    if !archive.is_file() {
        fail(&format!("{} is missing: run `make deps` to fetch the pinned crypto_mb", archive.display()));
    }
    archive
}

fn rename(archive: &Path, renamed: &Path) {
    let objcopy = env::var_os("OBJCOPY").unwrap_or_else(|| "objcopy".into());
    let status = Command::new(&objcopy)
        .args(UNREACHABLE.map(|symbol| format!("--redefine-sym={symbol}=hasten_unreachable_{symbol}")))
        .args([archive, renamed])
        .status();
    match status {
        Ok(status) if status.success() => {}
        Ok(status) => fail(&format!("{objcopy:?} could not rewrite {}: {status}", archive.display())),
        Err(error) => fail(&format!("{objcopy:?} does not start ({error}): install binutils or set OBJCOPY")),
    }
}

fn fail(why: &str) -> ! {
    println!("cargo::error={why}");
    exit(1);
}
