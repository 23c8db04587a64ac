//! Links the compressors built by `scripts/isal.sh` and `scripts/libdeflate.sh`.

use std::env;
use std::path::Path;
use std::process::exit;

fn main() {
    if !matches!(env::var("CARGO_CFG_TARGET_ARCH").as_deref(), Ok("x86_64" | "aarch64")) {
        fail("hasten-deflate needs an x86-64 or arm64 target: its engines are built for these");
    }
    link("BUILD_ISAL", "isal");
    link("BUILD_LIBDEFLATE", "hasten_libdeflate");
}

/// Links the static library `name` from the directory that `variable` names.
fn link(variable: &str, name: &str) {
    println!("cargo:rerun-if-env-changed={variable}");
    let Some(directory) = env::var_os(variable) else {
        fail(&format!(
            "{variable} is not set: build inside the repository, whose .cargo/config.toml sets it"
        ));
    };
    let archive = Path::new(&directory).join(format!("lib{name}.a"));
    if !archive.is_file() {
        fail(&format!("{} is missing: run `make deps` to build it from pinned source", archive.display()));
    }
    println!("cargo:rerun-if-changed={}", archive.display());
    println!("cargo:rustc-link-search=native={}", Path::new(&directory).display());
    println!("cargo:rustc-link-lib=static={name}");
}

fn fail(why: &str) -> ! {
    println!("cargo::error={why}");
    exit(1);
}
