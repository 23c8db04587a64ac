//! The build script of every preload library: links it with what `scripts/floor.sh` has made, and with nothing newer.

use std::env;
use std::path::Path;
use std::process::exit;

fn main() {
    println!("cargo:rerun-if-env-changed=HASTEN_FLOOR");
    let Some(floor) = env::var_os("HASTEN_FLOOR") else {
        fail("HASTEN_FLOOR is not set: build inside the repository, whose .cargo/config.toml sets it");
    };
    let floor = Path::new(&floor);
    let libc = floor.join("libc.so");
    if !libc.is_file() {
        fail(&format!("{} is missing: run `make deps` to make it", libc.display()));
    }
    println!("cargo:rerun-if-changed={}", libc.display());
    // Before the folders of the system, where the compiler would find libc and libgcc_s.
    argument(&format!("-L{}", floor.display()));
    // What the floor does not have is an error here, not one of the loader.
    argument("-Wl,-z,defs");
}

fn argument(argument: &str) {
    println!("cargo:rustc-cdylib-link-arg={argument}");
}

fn fail(why: &str) -> ! {
    println!("cargo::error={why}");
    exit(1);
}
