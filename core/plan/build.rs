//! Embeds the measurements in docs/results that the command quotes.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::{env, fs};

const RESULTS: &str = "../../docs/results";
/// The reports that `hasten check` quotes.
const QUOTED: [&str; 2] = ["node-tunings-", "tls-"];

fn main() {
    println!("cargo:rerun-if-changed={RESULTS}");
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join(RESULTS);
    let entries = fs::read_dir(&directory).into_iter().flatten().flatten();
    let mut names: Vec<_> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| name.ends_with(".json") && QUOTED.iter().any(|prefix| name.starts_with(prefix)));
    names.sort();
    let mut list = String::from("[\n");
    for name in &names {
        let path = directory.join(name);
        println!("cargo:rerun-if-changed={}", path.display());
        writeln!(list, "(\"docs/results/{name}\", include_str!({path:?})),").expect("a string takes it");
    }
    list.push(']');
    let out = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it"));
    fs::write(out.join("measurements.rs"), list).expect("a writable output directory");
}
