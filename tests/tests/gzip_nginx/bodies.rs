//! Every body, along every path, with every setting.

use std::fs;
use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use hasten_telemetry::Event;
use hasten_tests::http::{Client, Essence};
use hasten_tests::site::Site;
use hasten_tests::{Side, Subject, bodies, same_as_stock};

const LENGTHS: [usize; 7] = [0, 1, 20, 1000, 30_000, 100_000, 1_000_000];

/// Files named by their length.
fn with_files(site: Site, lengths: &[usize]) -> Site {
    lengths.iter().fold(site, |site, length| site.file(&format!("{length}.html"), &bodies::page(*length)))
}

/// Both servers deliver the same, which decompresses to the file; and the accelerated one has compressed it itself.
fn served(site: &Site, paths: &[(String, usize)]) -> Vec<Essence> {
    let essences = same_as_stock(&site.spec(), |server| {
        let essences: Vec<_> = paths.iter().map(|(path, _)| essence(&site.client(), path)).collect();
        if server.is_accelerated() {
            let counters = server.counters();
            assert!(counters[Event::DeflateStreams] > 0, "nothing was packed by the library");
            assert_eq!(counters[Event::DeflateMismatch], 0);
        }
        essences
    });
    for ((path, length), essence) in paths.iter().zip(&essences) {
        assert_eq!(essence.status, 200, "{path}");
        assert!(essence.plain.0 == bodies::page(*length), "{path}: {:?}", essence.plain);
    }
    essences
}

fn essence(client: &Client, path: &str) -> Essence {
    client.get(path).unwrap_or_else(|error| panic!("{path}: {error}")).essence()
}

/// Each of these locations with each length.
fn files_of(locations: &[String], lengths: &[usize]) -> Vec<(String, usize)> {
    let all = |name: &String| {
        let name = name.clone();
        lengths.iter().map(move |length| (format!("/{name}/{length}.html"), *length)).collect::<Vec<_>>()
    };
    locations.iter().flat_map(all).collect()
}

#[test]
fn files_at_every_level() {
    let mut site = with_files(Site::new(), &LENGTHS);
    let mut locations = Vec::new();
    for level in 1..=9 {
        for sendfile in ["on", "off"] {
            locations.push(format!("{level}-{sendfile}"));
            site = site.location(
                &locations[locations.len() - 1],
                &format!("gzip_comp_level {level}; sendfile {sendfile};"),
            );
        }
    }
    served(&site, &files_of(&locations, &LENGTHS));
}

#[test]
fn files_with_every_window_and_hash() {
    let lengths = [20, 30_000, 300_000];
    let mut site = with_files(Site::new(), &lengths);
    let mut locations = Vec::new();
    for window in ["512", "1k", "2k", "4k", "8k", "16k", "32k"] {
        for hash in ["512", "1k", "2k", "4k", "8k", "16k", "32k", "64k", "128k"] {
            locations.push(format!("{window}-{hash}"));
            let level = locations.len() % 9 + 1;
            let directives = format!("gzip_window {window}; gzip_hash {hash}; gzip_comp_level {level};");
            site = site.location(&locations[locations.len() - 1], &directives);
        }
    }
    served(&site, &files_of(&locations, &lengths));
}

#[test]
fn files_through_small_buffers() {
    let mut site = with_files(Site::new(), &LENGTHS);
    let mut locations = Vec::new();
    for (number, buffers) in ["1 64", "2 512", "3 1000", "1 4k", "64 8k", "1 1m"].iter().enumerate() {
        locations.push(format!("{number}"));
        let output = if number % 2 == 0 { "output_buffers 1 512;" } else { "output_buffers 2 32k;" };
        site = site.location(&locations[number], &format!("gzip_buffers {buffers}; sendfile off; {output}"));
    }
    served(&site, &files_of(&locations, &LENGTHS));
}

#[test]
fn bodies_of_an_upstream() {
    let mut site = Site::new();
    let mut paths = Vec::new();
    for (name, directives) in [
        ("buffered", ""),
        ("unbuffered", "proxy_buffering off;"),
        ("small", "proxy_buffers 2 1k; proxy_buffer_size 1k; proxy_busy_buffers_size 1k; gzip_buffers 2 1k;"),
        ("file", "proxy_buffers 2 4k; proxy_busy_buffers_size 4k; gzip_comp_level 6;"),
        ("postponed", "postpone_output 0; gzip_no_buffer on; proxy_buffering off; gzip_comp_level 9;"),
    ] {
        site = site.proxied(name, directives);
        for length in LENGTHS {
            paths.extend(["length", "chunked"].map(|way| (format!("/{name}/{way}/{length}"), length)));
        }
    }
    served(&site, &paths);
}

/// Parts of a page that come from several requests go through one stream, with flushes between them.
#[test]
fn pages_of_parts() {
    let parts: String =
        LENGTHS.iter().map(|length| format!("<!--#include virtual=\"/parts/{length}.html\" -->")).collect();
    let site = with_files(Site::new(), &LENGTHS)
        .file("page.shtml", parts.as_bytes())
        .location("parts", "")
        .location("ssi", "ssi on; gzip_comp_level 5;")
        .location("around", "add_before_body /parts/30000.html; add_after_body /parts/20.html;");
    let whole: Vec<u8> = LENGTHS.iter().flat_map(|length| bodies::page(*length)).collect();
    let around: Vec<u8> = [30_000, 1000, 20].iter().flat_map(|length| bodies::page(*length)).collect();
    let essences = same_as_stock(&site.spec(), |_| {
        ["/ssi/page.shtml", "/around/1000.html"].map(|path| essence(&site.client(), path))
    });
    assert!(essences[0].plain.0 == whole, "{:?}", essences[0].plain);
    assert!(essences[1].plain.0 == around, "{:?}", essences[1].plain);
}

/// Compressed content is sent as it is, and decompressed for clients that cannot do so.
#[test]
fn packed_files_and_upstreams() {
    let mut site = Site::new();
    for length in LENGTHS {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(&bodies::page(length)).unwrap();
        site = site.file(&format!("{length}.html.gz"), &encoder.finish().unwrap());
    }
    let site = site
        .location("static", "gzip_static always; gunzip on;")
        .location("narrow", "gzip_static always; gunzip on; gunzip_buffers 2 512;")
        .proxied("proxied", "gunzip on;")
        .proxied("unbuffered", "gunzip on; proxy_buffering off; gunzip_buffers 1 1k;");
    let mut paths = files_of(&["static".to_owned(), "narrow".to_owned()], &LENGTHS);
    for name in ["proxied", "unbuffered"] {
        paths.extend(LENGTHS.map(|length| (format!("/{name}/packed/{length}"), length)));
    }
    let plain = site.client().without_gzip();
    let essences = same_as_stock(&site.spec(), |server| {
        let essences: Vec<_> =
            paths.iter().map(|(path, _)| [essence(&site.client(), path), essence(&plain, path)]).collect();
        assert!(
            !server.is_accelerated() || server.counters()[Event::InflateStreams] > 0,
            "nothing was unpacked by the library"
        );
        essences
    });
    for ((path, length), essences) in paths.iter().zip(&essences) {
        for essence in essences {
            assert!(essence.plain.0 == bodies::page(*length), "{path}: {:?}", essence.plain);
        }
    }
}

/// A broken compressed body ends for its client where it ends with the stock server.
#[test]
fn packed_bodies_that_are_broken() {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(&bodies::page(60_000)).unwrap();
    let good = encoder.finish().unwrap();
    let mut flipped = good.clone();
    flipped[5000] ^= 0x10;
    let mut checksum = good.clone();
    let at = checksum.len() - 6;
    checksum[at] ^= 1;
    let site = Site::new()
        .file("truncated.html.gz", &good[..good.len() / 2])
        .file("flipped.html.gz", &flipped)
        .file("checksum.html.gz", &checksum)
        .file("behind.html.gz", &[&good[..], b"and more"].concat())
        .file("none.html.gz", b"not packed at all")
        .location("static", "gzip_static always; gunzip on;");
    let client = site.client().without_gzip();
    let outcomes = same_as_stock(&site.spec(), |_| {
        ["truncated", "flipped", "checksum", "behind", "none"].map(|name| {
            let answer = client.get(&format!("/static/{name}.html"));
            answer.map(|answer| answer.essence()).map_err(|error| error.kind())
        })
    });
    assert!(outcomes.iter().any(Result::is_err), "{outcomes:?}");
}

#[test]
fn a_huge_body() {
    const HUGE: usize = 50 << 20;
    // Long stretches of it repeat: making it must not take longer than compressing it.
    let mut body = bodies::page(1 << 20).repeat(HUGE >> 20);
    body[HUGE / 2] = b'!';
    let site =
        Site::new().location("one", "gzip_comp_level 1;").location("six", "gzip_comp_level 6; sendfile off;");
    fs::write(site.dir().join("files/huge.html"), &body).unwrap();
    for side in [Side::Stock, Side::Accelerated] {
        let server = Subject::start(&site.spec(), side);
        for path in ["/one/huge.html", "/six/huge.html"] {
            // The stock server only shows that the test is right: once is enough.
            if side == Side::Stock && path.starts_with("/six") {
                continue;
            }
            let answer = site.client().get(path).unwrap();
            assert!(answer.is_packed() && answer.plain().unwrap() == body, "{path}");
        }
        server.finish();
    }
}

/// Incompressible data does not grow.
#[test]
fn noise_stays_as_long_as_it_is() {
    let noise = bodies::noise(500_000);
    let mut site = Site::new().file("noise.html", &noise);
    for level in 1..=9 {
        site = site.location(&level.to_string(), &format!("gzip_comp_level {level};"));
    }
    let server = Subject::accelerated(&site.spec());
    for level in 1..=9 {
        let answer = site.client().get(&format!("/{level}/noise.html")).unwrap();
        assert!(answer.plain().unwrap() == noise);
        assert!(
            answer.body.len() < noise.len() + noise.len() / 1000 + 100,
            "level {level}: {}",
            answer.body.len()
        );
    }
    server.finish();
}
