//! The command in other releases: it is linked for the same glibc as the libraries.

use std::fs;

use hasten_tests::image::Image;
use hasten_tests::product;

const COMMAND: &str = "/usr/bin/hasten";

fn images() -> Vec<Image> {
    let all = Image::all();
    for image in &all {
        fs::create_dir_all(image.path("/usr/bin")).unwrap();
        fs::copy(product::hasten(), image.path(COMMAND)).unwrap();
    }
    let libraries = [product::library(), product::gzip_library(), product::shim()];
    all.into_iter().map(|image| image.with(libraries.iter().map(AsRef::as_ref))).collect()
}

#[test]
fn it_runs_in_every_image() {
    for image in images() {
        let output =
            image.shell(&[], "/usr/bin/hasten --version && /usr/bin/hasten run --quiet -- sh -c 'exit 3'");
        let said = String::from_utf8_lossy(&output.stdout);
        assert_eq!(
            (output.status.code(), &*said),
            (Some(3), concat!("hasten ", env!("CARGO_PKG_VERSION"), "\n")),
            "{}: {output:?}",
            image.name
        );
        let json = image.shell(&[], "/usr/bin/hasten check --json -- /bin/sh");
        let facts: serde_json::Value = serde_json::from_slice(&json.stdout)
            .unwrap_or_else(|error| panic!("{}: {error}: {json:?}", image.name));
        assert_eq!(facts["program"]["machine"], "x86-64", "{}", image.name);
    }
}

/// The initialisers have run, whoever runs them: one records what the command has to pass on. A program that ignores
/// this signal gets an error for a pipe without a reader; any other is killed.
#[test]
fn an_ignored_signal_stays_ignored_in_every_image() {
    let write = "{ /bin/seq 1 100000; echo $? >/status; } 2>/seq | true; read code </status; exit $code";
    for image in images() {
        let ends = |prefix: &str| {
            let script = format!("trap '' PIPE; exec {prefix} /bin/sh -c \"$WRITE\"");
            image.shell(&[("WRITE", write)], &script).status.code()
        };
        let killed = image.shell(&[], write).status.code();
        assert_eq!(killed, Some(128 + 13), "{}", image.name);
        assert_eq!(ends("/usr/bin/hasten run --quiet --"), ends(""), "{}", image.name);
        assert_ne!(ends(""), killed, "{}", image.name);
    }
}
