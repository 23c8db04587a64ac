//! The lines for containers in docs/install.md, applied to systems of the tests: what they copy, mount and set.

use std::fs;
use std::path::Path;
use std::process::Command;

use hasten_tests::image::Image;
use hasten_tests::{product, tools};

use crate::made::{repository, tree};

/// What a container gets: the folder of the libraries, and `LD_PRELOAD`.
#[derive(Debug, PartialEq)]
struct Lines {
    folder: String,
    preload: String,
}

fn page() -> String {
    let page = fs::read_to_string(repository().join("docs/install.md")).unwrap();
    let (_, section) = page.split_once("## In a container image\n").unwrap();
    section.split_once("\n## ").unwrap().0.to_owned()
}

fn after<'a>(page: &'a str, before: &str) -> &'a str {
    let (_, rest) = page.split_once(before).unwrap_or_else(|| panic!("no `{before}` in docs/install.md"));
    rest.split([' ', '\n', ':']).next().unwrap()
}

#[test]
fn each_form_of_the_lines_says_the_same() {
    let page = page();
    let dockerfile = Lines {
        folder: after(&page, "COPY hasten-*-linux-x86_64/lib/hasten ").into(),
        preload: after(&page, "ENV LD_PRELOAD=").into(),
    };
    let run = Lines {
        folder: after(&page, "docker run -v /usr/lib/hasten:").into(),
        preload: after(&page, "-e LD_PRELOAD=").into(),
    };
    let compose = Lines {
        folder: after(&page, "- /usr/lib/hasten:").into(),
        preload: after(&page, "LD_PRELOAD: ").into(),
    };
    assert_eq!(dockerfile, run);
    assert_eq!(dockerfile, compose);
    let file = Path::new(&dockerfile.preload).strip_prefix(&dockerfile.folder).unwrap();
    assert!(tree().join("lib/hasten").join(file).is_file(), "{dockerfile:?}");
}

/// The installation's libraries where the lines put them, all of them.
fn copy_libraries(image: &Image, folder: &str) {
    let target = image.path(folder);
    fs::create_dir_all(&target).unwrap();
    tools::run(Command::new("cp").arg("-r").arg(tree().join("lib/hasten/.")).arg(target));
}

#[test]
fn programs_of_every_image_load_the_libraries_for_their_c_library() {
    let page = page();
    let (folder, preload) =
        (after(&page, "COPY hasten-*-linux-x86_64/lib/hasten "), after(&page, "ENV LD_PRELOAD="));
    for image in Image::all() {
        copy_libraries(&image, folder);
        let output = image.shell_with_proc(&[("LD_PRELOAD", preload)], "grep libhasten_ /proc/self/maps");
        let maps = String::from_utf8_lossy(&output.stdout);
        for library in ["libhasten_tls.so", "libhasten_gzip.so"] {
            assert!(maps.contains(&format!("{folder}/{library}")), "{}: {output:?}", image.name);
        }
    }
    let Some(image) = Image::musl() else { return };
    if product::musl_libraries().is_none() {
        return;
    }
    copy_libraries(&image, folder);
    fs::create_dir_all(image.path("/var/log/nginx")).unwrap();
    fs::create_dir_all(image.path("/var/lib/nginx")).unwrap();
    // The shell gives it to what runs beside it.
    fs::create_dir_all(image.path("/dev")).unwrap();
    fs::write(image.path("/dev/null"), "").unwrap();
    fs::write(image.path("/nginx.conf"), "user root root;\nevents {}\nhttp { access_log off; }\n").unwrap();
    fs::write(image.path("/etc/passwd"), "root:x:0:0::/:/bin/sh\n").unwrap();
    fs::write(image.path("/etc/group"), "root:x:0:\n").unwrap();
    let script = "/usr/sbin/nginx -c /nginx.conf -e stderr -g 'daemon off; master_process off;' & sleep 1; cat /proc/$!/maps; kill $!";
    let output = image.shell_with_proc(&[("LD_PRELOAD", preload)], script);
    let maps = String::from_utf8_lossy(&output.stdout);
    for library in ["libhasten_tls.so", "libhasten_gzip.so"] {
        assert!(maps.contains(&format!("{folder}/musl/{library}")), "musl: {output:?}");
    }
}
