use proptest::prelude::*;

use super::*;

const LIMITS: Limits = Limits { head: 1 << 10, body: 1 << 20 };
const CHUNKED: &[u8] = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nX:y \r\n\r\n\
    3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\nTrailer: x\r\n\r\n";
const SIZED: &[u8] =
    b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 503 No\r\ncontent-length: 3\r\nConnection: close\r\n\r\nabc";
const EMPTY: &[u8] = b"HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n";
const TO_THE_END: &[u8] = b"HTTP/1.0 200 OK\n\nto the end";

fn whole(bytes: &[u8]) -> Result<Response, HttpError> {
    let mut response = Response::new(LIMITS);
    let taken = response.push(bytes)?;
    if taken == bytes.len() { Ok(response) } else { Err(HttpError::CutOff) }
}

#[test]
fn a_response_is_complete_at_its_last_byte_however_it_is_cut() {
    for (bytes, status, body, keeps) in
        [(CHUNKED, 200, &b"abc0123456789"[..], true), (SIZED, 503, b"abc", false), (EMPTY, 304, b"", true)]
    {
        let mut response = Response::new(LIMITS);
        for size in 1..=bytes.len() {
            let mut arrived = 0;
            for piece in bytes.chunks(size) {
                arrived += piece.len();
                assert_eq!(response.push(piece), Ok(piece.len()));
                assert_eq!(
                    response.is_complete(),
                    arrived == bytes.len(),
                    "pieces of {size}, {arrived} bytes"
                );
            }
            assert_eq!(response.head().map(Head::status), Some(status));
            assert_eq!((response.body(), response.keeps_alive()), (body, keeps));
            assert_eq!(response.received(), bytes.len() as u64);
            response.clear();
        }
    }
}

#[test]
fn fields_are_found_by_any_spelling_of_their_name() {
    let response = whole(CHUNKED).unwrap();
    let head = response.head().unwrap();
    assert_eq!([head.field("x"), head.field("TRANSFER-encoding")], [Some("y"), Some("chunked")]);
    assert_eq!(head.field("y"), None);
}

#[test]
fn the_end_of_the_connection_ends_only_what_has_no_other_end() {
    let mut response = whole(TO_THE_END).unwrap();
    assert!(!response.is_complete() && !response.is_delimited());
    response.end().unwrap();
    assert_eq!((response.body(), response.keeps_alive()), (&b"to the end"[..], false));
    for bytes in [&b""[..], &SIZED[..10], &SIZED[..SIZED.len() - 1], &CHUNKED[..CHUNKED.len() - 1]] {
        assert_eq!(whole(bytes).unwrap().end(), Err(HttpError::CutOff));
    }
}

#[test]
fn what_follows_a_response_is_not_taken() {
    let mut response = Response::new(LIMITS);
    let bytes = [SIZED, CHUNKED].concat();
    assert_eq!(response.push(&bytes), Ok(SIZED.len()));
    assert_eq!(response.push(CHUNKED), Ok(0));
}

#[test]
fn what_is_no_response_is_named() {
    let ssh = whole(b"SSH-2.0-OpenSSH_9.2\r\n").unwrap_err();
    assert_eq!(ssh.to_string(), "it begins with \"SSH-2.0-OpenSSH_9.2\", which is not HTTP/1");
    assert!(matches!(whole(b"HTTP/1.1 \r\n\r\n"), Err(HttpError::NotHttp(_))));
    let length = b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n";
    assert_eq!(whole(length).unwrap_err(), HttpError::Length);
    let head = [b"HTTP/1.1 200 OK\r\nX: ", &[b'x'; LIMITS.head][..]].concat();
    assert_eq!(whole(&head).unwrap_err(), HttpError::HeadTooLong(LIMITS.head));
    let body = [b"HTTP/1.1 200 OK\r\n\r\n", &vec![b'x'; LIMITS.body + 1][..]].concat();
    assert_eq!(whole(&body).unwrap_err(), HttpError::BodyTooLong(LIMITS.body));
    for chunk in [&b"zz\r\n"[..], b"3\r\nabcd\r\n", b"-1\r\n", &[b'1'; MAX_LINE + 1]] {
        let bytes = [b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", chunk].concat();
        assert_eq!(whole(&bytes).unwrap_err(), HttpError::Chunk, "{chunk:?}");
    }
}

#[test]
fn a_length_near_the_maximum_does_not_overflow() {
    let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\nx", usize::MAX);
    assert!(!whole(head.as_bytes()).unwrap().is_complete());
    let chunk = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nfffffffffffffff\r\nx";
    assert!(!whole(chunk).unwrap().is_complete());
}

/// Pieces of responses in any order, and anything between them.
fn streams() -> impl Strategy<Value = Vec<u8>> {
    let pieces = [
        &b"HTTP/1.1 200 OK\r\n"[..],
        b"HTTP/1.0 404\n",
        b"HTTP/1.1 100 Continue\r\n\r\n",
        b"\r\n",
        b"\n",
        b"Content-Length: 5\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Connection: close\r\n",
        b"5\r\nhello\r\n",
        b"0\r\n\r\n",
        b"hello",
        b": ",
    ];
    let piece = prop_oneof![
        8 => prop::sample::select(pieces.to_vec()).prop_map(<[u8]>::to_vec),
        1 => prop::collection::vec(any::<u8>(), 0..8),
    ];
    prop::collection::vec(piece, 0..12).prop_map(|pieces| pieces.concat())
}

/// Everything observable about it.
fn reported(
    response: &Response,
    outcome: &Result<usize, HttpError>,
) -> impl PartialEq + std::fmt::Debug + use<> {
    let head = response.head().map(|head| (head.status(), head.field("content-length").map(str::to_owned)));
    // How much had arrived before an error differs.
    let is_right = outcome.is_ok();
    is_right.then(|| (head, response.body().to_vec(), response.received(), response.keeps_alive()))
}

proptest! {
    #[test]
    fn how_bytes_are_cut_changes_nothing(bytes in streams(), size in 1_usize..9) {
        let mut response = Response::new(LIMITS);
        let outcome = response.push(&bytes);
        let mut cut = Response::new(LIMITS);
        let of_cut = bytes.chunks(size).try_fold(0, |sum, piece| Ok(sum + cut.push(piece)?));
        prop_assert_eq!(reported(&response, &outcome), reported(&cut, &of_cut));
        if outcome.is_ok() {
            prop_assert_eq!(outcome, of_cut);
        }
    }
}
