//! Fuzzes the response decoder. No byte stream may cause a panic, a hang or high memory use, and
//! the result must not depend on how the stream is split.
//!
//! The decoder's sources are included, not linked, so that the library needs neither a feature nor
//! a hidden module for the fuzzer.

#![no_main]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};

use libfuzzer_sys::fuzz_target;

#[path = "../../src/http/chunked.rs"]
mod chunked;
#[path = "../../src/http/decoder.rs"]
mod decoder;
#[path = "../../src/http/malformed.rs"]
mod malformed;

use decoder::{Decoder, Head, KnownHead, Progress};
use malformed::Malformed;

/// While the buffer of a head (at most 1 MiB) grows, its old and new allocations need less than
/// 3 MiB. Cookies need at most 1 MiB more. The remainder is for the fields during parsing and for
/// the list of cookies.
const MAX_ALLOCATED_BYTES: usize = (3 + 1) * 1024 * 1024 + 128 * 1024;

/// Counts the allocated bytes.
struct Counting;

static LIVE_BYTES: AtomicUsize = AtomicUsize::new(0);
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is forwarded unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let live = LIVE_BYTES.fetch_add(layout.size(), Ordering::Relaxed) + layout.size();
        PEAK_BYTES.fetch_max(live, Ordering::Relaxed);
        // SAFETY: the caller fulfils the contract of `System`, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        LIVE_BYTES.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: as above.
        unsafe { System.dealloc(pointer, layout) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

#[derive(Debug, PartialEq, Eq)]
struct Decoded {
    head: Option<Head>,
    body: Vec<u8>,
    /// The number of bytes after a complete response; `None` if it is incomplete.
    end: Result<Option<usize>, Malformed>,
    is_complete_at_end: bool,
    set_cookies: Vec<Vec<u8>>,
}

/// The request whose response is decoded.
#[derive(Clone, Copy)]
struct Request {
    is_head: bool,
    wants_cookies: bool,
}

fn decode<'a>(
    decoder: &mut Decoder,
    known: &mut KnownHead,
    request: Request,
    length: usize,
    pieces: impl Iterator<Item = &'a [u8]>,
) -> Decoded {
    decoder.reset(request.is_head);
    let mut body = Vec::with_capacity(length);
    let before = LIVE_BYTES.load(Ordering::Relaxed);
    PEAK_BYTES.store(before, Ordering::Relaxed);
    if request.wants_cookies {
        decoder.keep_set_cookies();
    }

    let mut fed = 0;
    let mut end = Ok(None);
    for piece in pieces {
        match &mut end {
            Ok(None) => {
                fed += piece.len();
                end = match decoder.feed(piece, known, &mut |part| body.extend_from_slice(part)) {
                    Ok(Progress::NeedMore) => Ok(None),
                    Ok(Progress::Complete { surplus }) => {
                        assert!(surplus <= piece.len(), "the surplus is longer than the piece");
                        Ok(Some(surplus))
                    }
                    Err(Malformed) => Err(Malformed),
                };
                assert!(body.len() <= fed, "the body is longer than its input");
            }
            Ok(Some(surplus)) => *surplus += piece.len(),
            Err(Malformed) => {}
        }
    }

    let allocated = PEAK_BYTES.load(Ordering::Relaxed) - before;
    assert!(
        allocated <= MAX_ALLOCATED_BYTES,
        "{allocated} bytes allocated"
    );
    let is_complete_at_end = end.is_ok() && decoder.is_complete_at_end();
    Decoded {
        head: decoder.head(),
        body,
        end,
        is_complete_at_end,
        set_cookies: decoder.take_set_cookies(),
    }
}

/// Pieces with the lengths in `cuts`, in rotation; 0 means 256 bytes.
fn pieces<'a>(mut stream: &'a [u8], cuts: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
    let mut lengths = cuts.iter().cycle();
    std::iter::from_fn(move || {
        let length =
            lengths.next().map_or(
                usize::MAX,
                |&cut| if cut == 0 { 256 } else { usize::from(cut) },
            );
        let (piece, rest) = stream.split_at(length.min(stream.len()));
        stream = rest;
        (!piece.is_empty()).then_some(piece)
    })
}

// The first byte states whether the request was HEAD, whether cookies are collected, and the number
// of cuts. Then follow the cuts and the stream.
fuzz_target!(|data: &[u8]| {
    let Some((&first, rest)) = data.split_first() else {
        return;
    };
    let (cuts, stream) = rest.split_at(usize::from(first & 0x0f).min(rest.len()));
    let request = Request {
        is_head: first & 0x80 != 0,
        wants_cookies: first & 0x40 != 0,
    };
    let length = stream.len();
    let (mut decoder, mut known) = (Decoder::new(request.is_head), KnownHead::default());

    let whole = decode(
        &mut decoder,
        &mut known,
        request,
        length,
        std::iter::once(stream),
    );
    assert!(
        request.wants_cookies || whole.set_cookies.is_empty(),
        "cookies were collected without a request for them"
    );

    let again = decode(
        &mut decoder,
        &mut known,
        request,
        length,
        std::iter::once(stream),
    );
    assert_eq!(again, whole, "with a known head");

    let cut = decode(
        &mut decoder,
        &mut known,
        request,
        length,
        pieces(stream, cuts),
    );
    assert_eq!(cut, whole, "cut by {cuts:?}, in a reused decoder");

    let (mut fresh, mut other) = (Decoder::new(request.is_head), KnownHead::default());
    let byte_by_byte = decode(&mut fresh, &mut other, request, length, stream.chunks(1));
    assert_eq!(byte_by_byte, whole, "byte by byte");

    // Collecting cookies must not change anything else.
    let other_request = Request {
        wants_cookies: !request.wants_cookies,
        ..request
    };
    let otherwise = decode(
        &mut decoder,
        &mut known,
        other_request,
        length,
        pieces(stream, cuts),
    );
    assert_eq!(
        Decoded {
            set_cookies: Vec::new(),
            ..otherwise
        },
        Decoded {
            set_cookies: Vec::new(),
            ..whole
        }
    );
});
