//! Responses from a grammar of RFC 9112's corner cases, then damaged. One seed is one stream.

use rand::seq::IndexedRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::Case;

/// Bytes that change how a stream is parsed.
const DELIMITERS: &[u8] = b"\r\n :;,\t\0\x7f\x80\xff0159aFx-HT/.";

const FIELDS: &[&str] = &[
    "Server: s",
    "X-Empty:",
    "X-Spaces:   a  b\t ",
    "x-latin: \u{e9}",
    " folded: after another field",
    "X-Folded: one\r\n two\r\n\t three",
    "X-Space : before the colon",
    "X-Control: a\x01b",
    "no colon",
    "Trailer: T",
    "Keep-Alive: timeout=5",
    "Upgrade: h2c",
    "Date: Sun, 06 Nov 1994 08:49:37 GMT",
    "!#$%&'*+-.^_`|~: tokens",
    "Content-Lengths: 7",
    "Set-Cookie: a=b; Path=/",
];
const CONNECTION: &[&str] = &[
    "close",
    "Keep-Alive",
    "CLOSE",
    "upgrade, close",
    "keep-alive, close",
    "",
    "closed",
    "x,, close",
    "x,\r\n close",
    "\u{e9}, close",
];
const CODING: &[&str] = &[
    "gzip",
    "gzip, chunked",
    "chunked, gzip",
    "Chunked",
    "chunked,",
    "identity",
    "",
    "xchunked",
    " chunked ",
    "\u{e9}, chunked",
];
const LENGTH: &[&str] = &[
    "0",
    "+5",
    "-1",
    "5 5",
    "5,",
    "",
    "0x5",
    "005",
    "5, 5",
    "5, 6",
    "99999999999999999999",
    "18446744073709551615",
    "9223372036854775808",
    "\u{e9}",
];
const EXTENSIONS: &[&str] = &[
    "",
    "",
    "",
    "",
    " ",
    "\t ",
    ";a",
    ";a=b",
    " ; a=\"b c\"",
    " x",
    ";",
    ";\u{e9}",
];
const TRAILERS: &[&str] = &[
    "",
    "",
    "",
    "T: v\r\n",
    "T:\r\nU: w\r\n",
    "no colon\r\n",
    " folded\r\n",
    "T : v\r\n",
    "T: \u{e9}\r\n",
    "T: v\n",
    ":\r\n",
    "T: \x01\r\n",
];

pub(super) fn case(seed: u64) -> Case {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let request_is_head = rng.random_bool(0.1);
    let ends = rng.random_bool(0.4);
    let mut maker = Maker {
        rng,
        stream: Vec::new(),
    };
    maker.response();
    if maker.chance(0.4) {
        for _ in 0..maker.rng.random_range(1..=3) {
            maker.damage();
        }
    }

    Case {
        stream: maker.stream,
        request_is_head,
        ends,
    }
}

struct Maker {
    rng: ChaCha8Rng,
    stream: Vec<u8>,
}

impl Maker {
    fn chance(&mut self, probability: f64) -> bool {
        self.rng.random_bool(probability)
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        *choices.choose(&mut self.rng).expect("a choice")
    }

    /// Latin-1, so that a list of text can hold any byte.
    fn put(&mut self, text: &str) {
        self.stream.extend(text.chars().map(|letter| letter as u8));
    }

    fn line(&mut self, text: &str) {
        self.put(text);
        let end = if self.chance(0.01) { "\n" } else { "\r\n" };
        self.put(end);
    }

    fn response(&mut self) {
        if self.chance(0.05) {
            let lines = self.pick(&["\r\n", "\n", "\r\n\r\n\n"]);
            self.put(lines);
        }

        while self.chance(0.1) {
            let interim = self.pick(&["100 Continue", "103 Early Hints", "102 ", "199"]);
            self.line(&format!("HTTP/1.1 {interim}"));
            let field = self.pick(&[
                "Link: a",
                "Content-Length: 9",
                "Connection: close",
                "Transfer-Encoding: chunked",
            ]);
            if self.chance(0.4) {
                self.line(field);
            }
            self.line("");
        }

        self.status_line();
        self.fields_and_body();

        if self.chance(0.1) {
            let surplus = self.pick(&[
                "\r\n",
                "x",
                "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
                "\0",
            ]);
            self.put(surplus);
        }
    }

    fn status_line(&mut self) {
        let version = match self.rng.random_range(0..100) {
            0 => self.pick(&["HTTP/1.2", "HTTP/2", "http/1.1", "HTTP/0.9", "ICY"]),
            1..12 => "HTTP/1.0",
            _ => "HTTP/1.1",
        };
        let status = match self.rng.random_range(0..100) {
            0..4 => self.pick(&[
                "000", "099", "101", "600", "999", "20", "2000", "-20", "100",
            ]),
            4..16 => self.pick(&["204", "304", "205", "404", "503", "301"]),
            _ => "200",
        };
        let reason = if self.chance(0.9) {
            " OK"
        } else {
            self.pick(&["", " ", " a\tb", " \u{e9}", "  OK", " \x01"])
        };
        self.line(&format!("{version} {status}{reason}"));
    }

    fn fields_and_body(&mut self) {
        let length = match self.rng.random_range(0..20) {
            0 => self.rng.random_range(100..700),
            1..5 => 0,
            _ => self.rng.random_range(1..20),
        };
        let body: Vec<u8> = (0..length)
            .map(|_| self.rng.random_range(b'a'..=b'z'))
            .collect();
        let framing = self.rng.random_range(0..10);
        let mut fields: Vec<String> = Vec::new();
        if framing < 5 || self.chance(0.05) {
            fields.push(format!("Content-Length: {length}"));
        }

        let is_chunked = (4..9).contains(&framing);
        if is_chunked {
            fields.push("Transfer-Encoding: chunked".to_owned());
        }

        self.further_fields(&mut fields);
        for field in fields {
            self.line(&field);
        }

        self.line("");
        if is_chunked {
            self.chunks(&body)
        } else {
            self.stream.extend_from_slice(&body)
        }
    }

    fn further_fields(&mut self, fields: &mut Vec<String>) {
        let odd = [
            (0.1, "Content-Length", LENGTH),
            (0.1, "transfer-encoding", CODING),
            (0.3, "CONNECTION", CONNECTION),
        ];
        for (probability, name, values) in odd {
            while self.chance(probability) {
                let value = self.pick(values);
                let at = self.rng.random_range(0..=fields.len());
                fields.insert(at, format!("{name}: {value}"));
            }
        }

        while self.chance(0.3) {
            let field = self.pick(FIELDS);
            let at = self.rng.random_range(0..=fields.len());
            // The unusual fields make most streams malformed, which leaves the rest untested.
            if self.chance(0.5) || field.starts_with("Server") {
                fields.insert(at, field.to_owned());
            }
        }

        if self.chance(0.01) {
            let count = self.pick(&[98, 99, 100, 101, 300]);
            fields.resize_with(count, || "a: b".to_owned());
        }
        if self.chance(0.0005) {
            let count = self.pick(&[999, 1_000, 1_001]);
            fields.resize_with(count, || "a: b".to_owned());
        }
    }

    fn chunks(&mut self, body: &[u8]) {
        let mut left = body;
        while !left.is_empty() {
            let (chunk, rest) = left.split_at(self.rng.random_range(1..=left.len()));
            self.size_line(chunk.len());
            self.stream.extend_from_slice(chunk);
            self.put("\r\n");
            left = rest;
        }

        self.size_line(0);
        let trailers = self.pick(TRAILERS);
        self.put(trailers);
        if self.chance(0.01) {
            let count = self.pick(&[99, 100, 101]);
            self.put(&"a: b\r\n".repeat(count));
        }

        self.put("\r\n");
    }

    fn size_line(&mut self, size: usize) {
        let zeros = if self.chance(0.1) {
            self.pick(&["0", "000", "0000000000000000000000"])
        } else {
            ""
        };
        let digits = if self.chance(0.5) {
            format!("{size:x}")
        } else {
            format!("{size:X}")
        };
        let extension = if self.chance(0.2) {
            self.pick(EXTENSIONS)
        } else {
            ""
        };
        let huge = if self.chance(0.01) {
            self.pick(&["FFFFFFFFFFFFFFFF", "10000000000000000", "g"])
        } else {
            ""
        };
        self.line(&format!("{zeros}{huge}{digits}{extension}"));
    }

    fn damage(&mut self) {
        let length = self.stream.len();
        if length == 0 {
            return;
        }

        let at = self.rng.random_range(0..length);
        let to = (at + self.rng.random_range(1..=12)).min(length);

        match self.rng.random_range(0..7) {
            0 => self.stream[at] ^= 1 << self.rng.random_range(0..8),
            1 => self.stream[at] = self.pick(DELIMITERS),
            2 => self.stream.truncate(at),
            3 => {
                self.stream.drain(at..to);
            }
            4 => {
                let byte = self.pick(DELIMITERS);
                self.stream.insert(at, byte);
            }
            5 => {
                let copy = self.stream[at..to].to_vec();
                let target = self.rng.random_range(0..=length);
                self.stream.splice(target..target, copy);
            }
            _ => {
                self.stream.remove(at);
            }
        }
    }
}
