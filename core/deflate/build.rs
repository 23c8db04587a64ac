//! Links the compressor of ISA-L that `scripts/isal.sh` has built.

use std::env;
use std::path::Path;
use std::process::exit;

fn main() {
    println!("cargo:rerun-if-env-changed=HASTEN_ISAL");
    if env::var("CARGO_CFG_TARGET_ARCH").as_deref() != Ok("x86_64") {
        fail("hasten-deflate needs an x86-64 target: its fastest engine is built for it");
    }
    let Some(directory) = env::var_os("HASTEN_ISAL") else {
        fail("HASTEN_ISAL is not set: build inside the repository, whose .cargo/config.toml sets it");
    };
    let archive = Path::new(&directory).join("libisal.a");
    if !archive.is_file() {
        fail(&format!("{} is missing: run `make deps` to build the pinned ISA-L", archive.display()));
    }
    println!("cargo:rerun-if-changed={}", archive.display());
    println!("cargo:rustc-link-search=native={}", Path::new(&directory).display());
    println!("cargo:rustc-link-lib=static=isal");
}

fn fail(why: &str) -> ! {
    println!("cargo::error={why}");
    exit(1);
}
