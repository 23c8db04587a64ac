//! The decompressor filter: the same bodies and the same statistics, of damaged input too.

use std::fs;
use std::io::Write;
use std::path::Path;

use flate2::write::{GzEncoder, ZlibEncoder};
use flate2::{Compression, GzBuilder};
use hasten_telemetry::{Event, Reason};
use hasten_tests::http::Client;
use hasten_tests::{bodies, wait};
use serde_json::{Value, json};

use crate::subject::{Envoy, How, Place, RELEASES, build};

/// A body of the upstream's, by its name.
struct Case {
    name: String,
    packed: Vec<u8>,
}

fn case(name: impl Into<String>, packed: Vec<u8>) -> Case {
    Case { name: name.into(), packed }
}

fn pack(plain: &[u8], level: u32) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::new(level));
    encoder.write_all(plain).expect("memory");
    encoder.finish().expect("memory")
}

/// With all fields that a header may have; its checksum is right, or not.
fn with_header(plain: &[u8], is_right: bool) -> Vec<u8> {
    let mut encoder = GzBuilder::new().filename("name").comment("comment").extra(*b"ab\x01\0c").mtime(1);
    encoder = encoder.operating_system(3);
    let mut encoder = encoder.write(Vec::new(), Compression::default());
    encoder.write_all(plain).expect("memory");
    let mut packed = encoder.finish().expect("memory");
    // The encoder writes no checksum of the header: it comes between the header and the blocks.
    const HEADER: usize = 10 + 2 + 5 + 5 + 8;
    packed[3] |= 2;
    let mut checksum = flate2::Crc::new();
    checksum.update(&packed[..HEADER]);
    let sum = checksum.sum() as u16 ^ u16::from(!is_right);
    packed.splice(HEADER..HEADER, sum.to_le_bytes());
    packed
}

fn cases() -> Vec<Case> {
    let plain = bodies::page(100_000);
    let packed = pack(&plain, 6);
    let mut cases = vec![
        case("nothing", pack(b"", 6)),
        case("zlib", {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&plain).expect("memory");
            encoder.finish().expect("memory")
        }),
        case("text", plain.clone()),
        case("members", [packed.clone(), packed.clone()].concat()),
        case("garbage-behind", [&packed[..], &bodies::noise(5000)].concat()),
        case("header", with_header(&plain, true)),
        case("header-damaged", with_header(&plain, false)),
        case("noise", pack(&bodies::noise(50_000), 6)),
    ];
    for length in [1, 100, 4095, 4096, 4097, 9000, 65_536, 1_500_000] {
        for level in [0, 1, 6, 9] {
            cases.push(case(format!("valid-{length}-{level}"), pack(&bodies::page(length), level)));
        }
    }
    // Around the end of a chunk, where the ratio is looked at.
    for length in [4095, 4096, 4097, 8191, 8192, 8193, 100_000, 1_000_000, 10_000_000] {
        cases.push(case(format!("zeros-{length}"), pack(&vec![0; length], 9)));
    }
    for at in (0..packed.len()).step_by(packed.len() / 40) {
        let mut damaged = packed.clone();
        damaged[at] ^= 1 << (at % 8);
        cases.push(case(format!("flipped-{at}"), damaged));
        cases.push(case(format!("short-{at}"), packed[..at.max(1)].to_vec()));
    }
    for at in packed.len() - 8..packed.len() {
        let mut damaged = packed.clone();
        damaged[at] ^= 0x10;
        cases.push(case(format!("trailer-{at}"), damaged));
    }
    cases
}

/// Envoy's settings, and what it is to have in its runtime.
#[derive(Clone, Debug)]
struct Settings {
    gzip: Value,
    runtime: Value,
}

impl Settings {
    fn new(gzip: Value) -> Self {
        Self { gzip, runtime: json!({}) }
    }
}

/// An Envoy that answers each of the cases, with the decompressor filter before them.
struct Subject {
    envoy: Envoy,
    admin: Client,
}

impl Subject {
    fn start(place: &Place, release: &str, cases: &[Case], settings: &Settings, how: How) -> Self {
        for Case { name, packed } in cases {
            fs::write(place.path().join(format!("case-{name}")), packed).expect("a body");
        }
        let admin =
            place.path().join(format!("admin-{}", fs::read_dir(place.path()).expect("a directory").count()));
        let config = |socket: &Path| config(place, socket, &admin, cases, settings);
        let envoy = place.launch(&build(release), config, how).wait_for("/case/nothing");
        Self { envoy, admin: Client::of(&admin) }
    }

    /// The status and the body of every case, and what the filter has counted with each of them.
    fn outcomes(&self, cases: &[Case]) -> Vec<(String, u16, Vec<u8>, String)> {
        let outcome = |Case { name, .. }: &Case| {
            let answer = self.envoy.client().get(&format!("/case/{name}")).expect(name);
            (name.clone(), answer.status, answer.body, self.statistics())
        };
        cases.iter().map(outcome).collect()
    }

    fn statistics(&self) -> String {
        let answer = self.admin.get("/stats?filter=decompressor").expect("statistics");
        assert_eq!(answer.status, 200);
        String::from_utf8(answer.body).expect("text")
    }
}

fn config(place: &Place, socket: &Path, admin: &Path, cases: &[Case], settings: &Settings) -> Value {
    const TYPE: &str = "type.googleapis.com/envoy.extensions";
    let mut library = json!({"@type": format!("{TYPE}.compression.gzip.decompressor.v3.Gzip")});
    for (name, value) in settings.gzip.as_object().expect("settings") {
        library[name] = value.clone();
    }
    let routes: Vec<_> = cases
        .iter()
        .map(|Case { name, .. }| {
            json!({
                "match": {"path": format!("/case/{name}")},
                "direct_response": {
                    "status": 200,
                    "body": {"filename": place.path().join(format!("case-{name}"))},
                },
                "response_headers_to_add": [{"header": {"key": "content-encoding", "value": "gzip"}}],
            })
        })
        .chain([json!({"match": {"prefix": "/"}, "route": {"cluster": "upstream", "timeout": "60s"}})])
        .collect();
    let manager = json!({
        "@type": format!("{TYPE}.filters.network.http_connection_manager.v3.HttpConnectionManager"),
        "stat_prefix": "test",
        "route_config": {
            "max_direct_response_body_size_bytes": 3_000_000,
            "virtual_hosts": [{"name": "all", "domains": ["*"], "routes": routes}],
        },
        "http_filters": [
            {"name": "decompressor", "typed_config": {
                "@type": format!("{TYPE}.filters.http.decompressor.v3.Decompressor"),
                "decompressor_library": {"name": "gzip", "typed_config": library},
            }},
            {"name": "router", "typed_config": {"@type": format!("{TYPE}.filters.http.router.v3.Router")}},
        ],
    });
    json!({
        "admin": {"address": {"pipe": {"path": admin}}},
        "layered_runtime": {"layers": [{"name": "static", "static_layer": settings.runtime}]},
        "static_resources": {
            "listeners": [{
                "name": "listener",
                "address": {"pipe": {"path": socket}},
                "filter_chains": [{"filters": [{"name": "manager", "typed_config": manager}]}],
            }],
            "clusters": [place.cluster()],
        },
    })
}

/// Asserts that both do the same with every case.
pub(crate) fn compare_all(release: &str) {
    let cases = cases();
    let unprotected = json!({"envoy.reloadable_features.enable_compression_bomb_protection": false});
    for settings in [
        Settings::new(json!({})),
        Settings::new(json!({"chunk_size": 8192, "max_inflate_ratio": 3})),
        Settings { gzip: json!({}), runtime: unprotected },
    ] {
        let place = Place::new();
        let stock = Subject::start(&place, release, &cases, &settings, How::Stock).outcomes(&cases);
        let ours = Subject::start(&place, release, &cases, &settings, How::Accelerated(&[]));
        for (stock, ours) in stock.iter().zip(ours.outcomes(&cases)) {
            assert!(stock.2 == ours.2, "{release} {settings:?} {}: another body", stock.0);
            assert_eq!((stock.1, &stock.3), (ours.1, &ours.3), "{release} {settings:?} {}", stock.0);
        }
        let counters = ours.envoy.counters();
        assert!(counters[Event::InflateStreams] >= cases.len() as u64, "{settings:?}");
        assert!(counters[Event::InflateHasten] > 4_000_000, "{settings:?}");
        ours.envoy.finish();
    }
}

#[test]
fn bodies_and_statistics_are_the_same() {
    for release in RELEASES {
        compare_all(release);
    }
}

/// Bodies of an upstream come in the pieces in which Envoy reads them.
#[test]
fn bodies_in_pieces_are_the_same() {
    let place = Place::new();
    let settings = Settings::new(json!({}));
    let cases = [case("nothing", pack(b"", 6))];
    let start = |how| Subject::start(&place, RELEASES[0], &cases, &settings, how).envoy;
    let (stock, ours) = (start(How::Stock), start(How::Accelerated(&[])));
    for length in [1, 1000, 20_000, 100_000, 3_000_000] {
        let path = format!("/packed/{length}");
        let [stock, ours] = [&stock, &ours].map(|envoy| envoy.client().get(&path).expect(&path));
        assert_eq!(ours.header("content-encoding"), None, "{path}");
        assert!(ours.body == stock.body && ours.body == bodies::page(length), "{path}");
    }
    let counters = ours.counters();
    assert!(counters[Event::InflateHasten] >= 3_121_001, "{counters:?}");
    ours.finish();
}

/// A smaller window makes a stream with larger distances damaged for the original, so it is left to it.
#[test]
fn small_window_is_left_to_the_original() {
    let place = Place::new();
    let cases = cases();
    let settings = Settings::new(json!({"window_bits": 9}));
    let stock = Subject::start(&place, RELEASES[0], &cases, &settings, How::Stock).outcomes(&cases);
    let ours = Subject::start(&place, RELEASES[0], &cases, &settings, How::Accelerated(&[]));
    assert!(ours.outcomes(&cases) == stock);
    let counters = ours.envoy.counters();
    assert_eq!(counters[Event::InflateStreams], 0);
    assert!(counters[Reason::UnsupportedParameters] >= cases.len() as u64);
}

/// Clients that go away in the middle of a body leave nothing behind.
#[test]
fn abandoned_bodies_are_freed() {
    let place = Place::new();
    let cases = [case("nothing", pack(b"", 6)), case("long", pack(&bodies::page(60_000), 6))];
    let settings = Settings::new(json!({}));
    let ours = Subject::start(&place, RELEASES[0], &cases, &settings, How::Accelerated(&[])).envoy;
    let abandon = |count: u64| {
        let before = ours.counters()[Event::InflateStreams];
        for _ in 0..count {
            drop(ours.client().ask("/case/long").expect("a connection"));
        }
        wait::until("Envoy to have served them", || ours.counters()[Event::InflateStreams] >= before + count);
    };
    abandon(1000);
    let before = ours.memory();
    abandon(1000);
    let grown = ours.memory().saturating_sub(before);
    // A stream and its window take more than 40 KiB: 1000 of them would be 40 MiB.
    assert!(grown < 16_000, "{grown} KiB more than after the first thousand");
    ours.finish();
}
