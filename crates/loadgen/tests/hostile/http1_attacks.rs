//! Attacks by a hostile HTTP/1.1 server.

use std::time::Duration;

use loadgen::Outcome::{self, BadBody, HttpStatus, Timeout};

use crate::attack::{Attack, closes, floods, sends};

const OK: &str = "HTTP/1.1 200 OK\r\n";
const CHUNKED: &str = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";
const HELLO: &str = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";

/// Pause of slow servers, short enough that the connection is never idle for long.
const SLOW: Duration = Duration::from_millis(20);

pub fn all() -> Vec<Attack> {
    [floods_of_bytes(), delays(), violations()].concat()
}

/// Sends without end.
fn floods_of_bytes() -> Vec<Attack> {
    let after = |start: &str, unit: &str, name| floods(name, unit).after(start);
    let hints = format!("HTTP/1.1 103 Early Hints\r\n{}\r\n", "a: b\r\n".repeat(100));
    vec![
        after(OK, "a", "a field name"),
        after(&format!("{OK}X: "), "a", "a field"),
        after(OK, "a: b\r\n", "fields"),
        after(&format!("{OK}X: a\r\n"), " b\r\n", "folded lines"),
        after("HTTP/1.1 200 ", "a", "a reason"),
        after("HTTP/1.1 2", "0", "a status"),
        after("HTTP/1.", "1", "a version"),
        floods("empty lines", "\r\n"),
        floods("returns", "\r"),
        floods("spaces", " "),
        floods("zeros", "\0"),
        floods("garbage", "\x00\u{ff}\r\n\x16\x03"),
        floods("100", "HTTP/1.1 100 Continue\r\n\r\n").ends_as(&[Timeout]),
        floods("103 with many fields", &hints).ends_as(&[Timeout]),
        floods("101", "HTTP/1.1 101 Switching Protocols\r\n\r\n"),
        after(&format!("{OK}\r\n"), "a", "a body").ends_as(&[Timeout]),
        after("HTTP/1.1 500 No\r\n\r\n", "a", "a body of an error").ends_as(&[Timeout]),
        after(CHUNKED, "1;a=b\r\nx\r\n", "chunks").ends_as(&[Timeout]),
        after(CHUNKED, "0", "a chunk size"),
        after(&format!("{CHUNKED}1;"), "a", "an extension"),
        after(&format!("{CHUNKED}0\r\nT: "), "a", "a trailer"),
        after(&format!("{CHUNKED}0\r\n"), "a: b\r\n", "trailers"),
        after(
            &format!("{CHUNKED}7FFFFFFFFFFFFFFF\r\n"),
            "a",
            "a huge chunk",
        )
        .ends_as(&[Timeout]),
        after(
            &format!("{OK}Content-Length: 9223372036854775807\r\n\r\n"),
            "a",
            "a huge length",
        )
        .ends_as(&[Timeout]),
    ]
}

/// Sends too little, or too slowly.
fn delays() -> Vec<Attack> {
    let silent = |name, start: &str| sends(name, start, Timeout);
    let slow = |name, start: &str, piece| silent(name, start).trickles(piece, SLOW);
    vec![
        silent("silence", ""),
        silent("half a status line", "HTTP/1.1 20"),
        silent("half a head", "HTTP/1.1 200 OK\r\nContent-"),
        silent(
            "half a body",
            "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
        ),
        silent("half a chunk", &format!("{CHUNKED}a\r\nhalf")),
        silent("no last chunk", &format!("{CHUNKED}2\r\nok\r\n")),
        silent("100 alone", "HTTP/1.1 100 Continue\r\n\r\n"),
        slow("a slow head", &format!("{OK}X: "), "a"),
        slow("slow fields", OK, "a: b\r\n"),
        slow(
            "a slow body",
            &format!("{OK}Content-Length: 1000\r\n\r\n"),
            "a",
        ),
        slow("slow chunks", CHUNKED, "1\r\na\r\n"),
        slow("slow 100", "", "HTTP/1.1 100 Continue\r\n\r\n"),
        silent("an unread request", "")
            .with_large_request()
            .unread(),
    ]
}

/// Ends the connection, or sends what HTTP forbids.
fn violations() -> Vec<Attack> {
    let head = |fields: &str| format!("{OK}{fields}\r\n\r\nhello");
    let forbidden = |name, fields| sends(name, head(fields), BadBody);
    let other = |name, start: &str| sends(name, start, BadBody);
    let chunked = |name, rest: &str| sends(name, format!("{CHUNKED}{rest}"), BadBody);
    vec![
        closes("the end", ""),
        closes("the end of half a head", "HTTP/1.1 200 OK\r\nContent-"),
        closes(
            "the end of half a body",
            "HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\nhalf",
        ),
        closes("the end of half a chunk", format!("{CHUNKED}a\r\nhalf")),
        closes(
            "the end before the last chunk",
            format!("{CHUNKED}2\r\nok\r\n"),
        ),
        closes("the end of half a trailer", format!("{CHUNKED}0\r\nT: ")),
        closes("the end after 100", "HTTP/1.1 100 Continue\r\n\r\n"),
        other("SSH", "SSH-2.0-OpenSSH_9.2\r\n"),
        other("SMTP", "220 mail.example ESMTP\r\n"),
        other("Redis", "-ERR unknown command\r\n"),
        other("TLS", "\x16\x03\x01\x02\x00\x01\x00"),
        other("HTTP/0.9", "<html>"),
        other("HTTP/2", "\0\0\x06\x04\0\0\0\0\0\0\x03\0\0\0\x64"),
        other("HTTP/2 in words", "HTTP/2 200 OK\r\n\r\n"),
        other("lower case", "http/1.1 200 OK\r\n\r\n"),
        other("status 99", "HTTP/1.1 099 Low\r\n\r\n"),
        other("status 1000", "HTTP/1.1 1000 High\r\n\r\n"),
        other("no status", "HTTP/1.1 OK\r\n\r\n"),
        forbidden("a negative length", "Content-Length: -5"),
        forbidden("two lengths", "Content-Length: 5\r\nContent-Length: 6"),
        forbidden("a list of lengths", "Content-Length: 5, 6"),
        forbidden(
            "a length of 20 digits",
            "Content-Length: 99999999999999999999",
        ),
        forbidden("a hexadecimal length", "Content-Length: 0x5"),
        forbidden("an empty length", "Content-Length:"),
        forbidden("no colon", "field"),
        forbidden("no name", ": field"),
        forbidden("a space before the colon", "Field : a"),
        forbidden("a zero in a field", "Field: a\0b"),
        forbidden("a fold without a field", " folded"),
        chunked("a chunk that is too long", "1\r\nxy\r\n"),
        chunked("a chunk size in words", "xyz\r\n"),
        chunked("a negative chunk size", "-1\r\n"),
        chunked("a chunk size of 17 digits", "FFFFFFFFFFFFFFFFF\r\n"),
        sends(
            "a body of a response without one",
            "HTTP/1.1 204 No Content\r\n\r\nhello",
            HttpStatus,
        ),
        sends(
            "an error",
            "HTTP/1.1 500 No\r\nContent-Length: 0\r\n\r\n",
            HttpStatus,
        )
        .once_per_connection(),
        sends(
            "more than the length",
            format!("{HELLO} and more"),
            Outcome::Ok,
        ),
        sends("two responses", format!("{HELLO}{HELLO}"), BadBody),
        sends("a response", HELLO, Outcome::Ok).once_per_connection(),
    ]
}
