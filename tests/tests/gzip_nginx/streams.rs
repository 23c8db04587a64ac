//! Answers that come bit by bit: everything the server has received is on its way before the next piece comes.

use std::io::BufRead;

use hasten_telemetry::{Event, Reason};
use hasten_tests::http::{Unpacker, read_chunk, read_head};
use hasten_tests::site::Site;
use hasten_tests::{Subject, same_as_stock};

const LINES: usize = 60;

fn line(number: usize) -> String {
    format!("event {number}: {}\n", "something happened ".repeat(number % 7))
}

/// Sends a line only once the previous one has arrived, decompressed: if one is held back, the wait is in vain.
fn converse(site: &Site, path: &str) {
    let mut answer = site.client().ask(path).unwrap();
    let (mut packed, mut unpacker, mut expected) = (Vec::new(), Unpacker::new(), String::new());
    for number in 0..LINES {
        let line = line(number);
        expected.push_str(&line);
        site.upstream().say(&line);
        if number == 0 {
            let (status, headers) = read_head(&mut answer).unwrap();
            assert_eq!(status, 200);
            assert!(headers.iter().any(|(name, value)| name == "content-encoding" && value == "gzip"));
        }
        while unpacker.unpack(&packed).len() < expected.len() {
            let more = read_chunk(&mut answer, &mut packed);
            assert!(more.unwrap_or_else(|error| panic!("line {number} does not arrive: {error}")));
        }
        assert_eq!(unpacker.unpack(&packed), expected.as_bytes());
    }
    site.upstream().hush();
    while read_chunk(&mut answer, &mut packed).unwrap() {}
    assert_eq!(unpacker.unpack(&packed), expected.as_bytes());
    assert!(answer.fill_buf().unwrap().is_empty());
}

#[test]
fn lines_arrive_when_they_are_said() {
    let mut site = Site::new();
    for level in [1, 6, 9] {
        site = site.proxied(&level.to_string(), &format!("proxy_buffering off; gzip_comp_level {level};"));
    }
    same_as_stock(&site.spec(), |server| {
        for level in [1, 6, 9] {
            converse(&site, &format!("/{level}/lines"));
        }
        if server.is_accelerated() {
            let counters = server.counters();
            let noticed = counters[Event::DeflateStreams] + counters[Reason::SmallFlushes];
            assert!(noticed >= 3, "the library did not see these streams");
        }
    });
}

/// A stream flushed line by line that then gets much at once, and vice versa.
#[test]
fn lines_and_floods_in_one_stream() {
    let site = Site::new().proxied("events", "proxy_buffering off; gzip_comp_level 6;");
    let server = Subject::accelerated(&site.spec());
    let mut answer = site.client().ask("/events/lines").unwrap();
    let (mut packed, mut unpacker, mut expected) = (Vec::new(), Unpacker::new(), String::new());
    for round in 0..12 {
        let text = if round % 3 == 2 { line(round).repeat(3000) } else { line(round) };
        expected.push_str(&text);
        site.upstream().say(&text);
        if round == 0 {
            read_head(&mut answer).unwrap();
        }
        while unpacker.unpack(&packed).len() < expected.len() {
            assert!(read_chunk(&mut answer, &mut packed).unwrap());
        }
    }
    site.upstream().hush();
    while read_chunk(&mut answer, &mut packed).unwrap() {}
    assert!(hasten_tests::http::unpack(&packed).unwrap() == expected.as_bytes());
    server.finish();
}
