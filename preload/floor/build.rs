//! The build script of every preload library and of the command: links them against what `scripts/floor.sh` has built, or
//! for musl `scripts/musl.sh`, and nothing newer.

use std::env;
use std::path::Path;
use std::process::exit;

fn main() {
    let is_musl = env::var("CARGO_CFG_TARGET_ENV").as_deref() == Ok("musl");
    let variable = if is_musl { "BUILD_MUSL" } else { "BUILD_FLOOR" };
    println!("cargo:rerun-if-env-changed={variable}");
    let Some(floor) = env::var_os(variable) else {
        fail(&format!(
            "{variable} is not set: build inside the repository, whose .cargo/config.toml sets it"
        ));
    };
    let floor = Path::new(&floor);
    let libc = floor.join("libc.so");
    if !libc.is_file() {
        fail(&format!("{} is missing: run `make deps` to make it", libc.display()));
    }
    println!("cargo:rerun-if-changed={}", libc.display());
    // Cargo refuses arguments for a kind of target that a package does not have.
    let kind = if Path::new("src/main.rs").is_file() { "bins" } else { "cdylib" };
    if kind == "bins" && is_musl {
        // The C compiler would name its own.
        argument(kind, "-Wl,--dynamic-linker=/lib/ld-musl-x86_64.so.1");
    } else if kind == "bins" {
        argument(kind, &format!("-L{}", floor.join("command").display()));
        argument(kind, "-Wl,--wrap=__libc_start_main");
    }
    // Before the folders of the system, where the compiler would find libc and libgcc_s.
    argument(kind, &format!("-L{}", floor.display()));
    // What the floor does not have is an error here, not one of the loader.
    argument(kind, "-Wl,-z,defs");
}

fn argument(kind: &str, argument: &str) {
    println!("cargo:rustc-link-arg-{kind}={argument}");
}

fn fail(why: &str) -> ! {
    println!("cargo::error={why}");
    exit(1);
}
