//! The Huffman code of HPACK: RFC 7541, appendix B. It is canonical, so the lengths of its codes
//! define it.

/// Lengths of the codes in bits, by symbol. The last symbol means the end and is never sent.
#[rustfmt::skip]
const LENGTHS: [u8; 257] = [
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28,
    28, 28, 28, 28, 28, 28, 28, 28, 6, 10, 10, 12, 13, 6, 8, 11, 10, 10, 8, 11, 8, 6, 6, 6,
    5, 5, 5, 6, 6, 6, 6, 6, 6, 6, 7, 8, 15, 6, 12, 10, 13, 6, 7, 7, 7, 7, 7, 7,
    7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 7, 8, 7, 8, 13, 19, 13, 14, 6,
    15, 5, 6, 5, 6, 5, 6, 6, 6, 5, 7, 7, 6, 6, 6, 5, 6, 7, 6, 5, 5, 6, 7, 7,
    7, 7, 7, 15, 11, 14, 13, 28, 20, 22, 20, 20, 22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23,
    24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22, 23, 23, 21,
    23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23,
    26, 26, 20, 19, 22, 23, 22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24,
    21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21, 23, 22, 22, 25, 25, 24, 24, 26, 23,
    26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30,
];

const END: u16 = 256;
const MAX_LENGTH: usize = 30;
/// Codes of common characters are at most this long.
const SHORT_LENGTH: usize = 8;

/// All codes, and the same by length.
struct Code {
    codes: [u32; 257],
    /// The symbols in the order of their codes.
    sorted: [u16; 257],
    /// The first code of each length, and its index in `sorted`.
    first: [(u32, usize); MAX_LENGTH + 2],
    /// Symbol and length of the short code with which these 8 bits begin; length 0 if it is longer.
    short: [(u8, u8); 1 << SHORT_LENGTH],
}

static CODE: Code = code();

const fn code() -> Code {
    let mut all = Code {
        codes: [0; 257],
        sorted: [0; 257],
        first: [(0, 0); MAX_LENGTH + 2],
        short: [(0, 0); 1 << SHORT_LENGTH],
    };
    let (mut next, mut count, mut length) = (0, 0, 1);
    while length <= MAX_LENGTH {
        all.first[length] = (next, count);
        let mut symbol = 0;
        while symbol < LENGTHS.len() {
            if LENGTHS[symbol] as usize == length {
                all.codes[symbol] = next;
                all.sorted[count] = symbol as u16;
                let mut bits = if length <= SHORT_LENGTH {
                    next << (SHORT_LENGTH - length)
                } else {
                    1 << SHORT_LENGTH
                };
                while bits < 1 << SHORT_LENGTH && bits >> (SHORT_LENGTH - length) == next {
                    all.short[bits as usize] = (symbol as u8, length as u8);
                    bits += 1;
                }
                next += 1;
                count += 1;
            }
            symbol += 1;
        }
        next <<= 1;
        length += 1;
    }
    all.first[length] = (next, count);
    all
}

/// Appends the decoded text; `None` if it is not valid.
pub(crate) fn decode(encoded: &[u8], out: &mut Vec<u8>) -> Option<()> {
    let mut rest = encoded.iter();
    // The next bits, from the highest on.
    let (mut bits, mut count) = (0_u64, 0);
    loop {
        while count <= 56
            && let Some(byte) = rest.next()
        {
            bits |= u64::from(*byte) << (56 - count);
            count += 8;
        }

        let (symbol, length) = next_symbol(bits);
        if length > count {
            // Fewer than 8 bits are left: the padding, which is the beginning of the end.
            let is_padding = count < 8 && (!bits).leading_zeros() >= count;
            return is_padding.then_some(());
        }
        out.push(u8::try_from(symbol).ok()?);
        bits <<= length;
        count -= length;
    }
}

/// The symbol whose code these bits begin with, and the length of the code.
#[inline]
fn next_symbol(bits: u64) -> (u16, u32) {
    let (symbol, length) = CODE.short[(bits >> (64 - SHORT_LENGTH)) as usize];
    if length > 0 {
        return (u16::from(symbol), u32::from(length));
    }

    for length in SHORT_LENGTH + 1..=MAX_LENGTH {
        let code = (bits >> (64 - length)) as u32;
        let ((first, index), (_, end)) = (CODE.first[length], CODE.first[length + 1]);
        let offset = (code - first) as usize;
        if index + offset < end {
            return (CODE.sorted[index + offset], length as u32);
        }
    }
    (END, MAX_LENGTH as u32)
}

/// Length of the encoded text in bytes.
pub(crate) fn encoded_bytes(text: &[u8]) -> usize {
    let bits: usize = text
        .iter()
        .map(|byte| usize::from(LENGTHS[usize::from(*byte)]))
        .sum();
    bits.div_ceil(8)
}

/// Appends the encoded text.
pub(crate) fn encode(text: &[u8], out: &mut Vec<u8>) {
    let (mut bits, mut count) = (0_u64, 0);
    for symbol in text.iter().map(|byte| usize::from(*byte)) {
        bits = bits << LENGTHS[symbol] | u64::from(CODE.codes[symbol]);
        count += LENGTHS[symbol];
        while count >= 8 {
            count -= 8;
            out.push((bits >> count) as u8);
        }
    }

    if count > 0 {
        out.push((bits << (8 - count)) as u8 | u8::MAX >> count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(encoded: &[u8]) -> Option<Vec<u8>> {
        let mut text = Vec::new();
        decode(encoded, &mut text).map(|()| text)
    }

    #[test]
    fn the_example_of_the_rfc_is_decoded() {
        // RFC 7541, section C.4.1.
        let encoded = b"\xf1\xe3\xc2\xe5\xf2\x3a\x6b\xa0\xab\x90\xf4\xff";
        assert_eq!(decoded(encoded).as_deref(), Some(&b"www.example.com"[..]));
        let mut out = Vec::new();
        encode(b"www.example.com", &mut out);
        assert_eq!(out, encoded);
    }

    #[test]
    fn every_symbol_and_every_length_is_decoded_again() {
        let all: Vec<u8> = (0..=u8::MAX).collect();
        for start in 0..all.len() {
            for text in [&all[start..], &all[start..=start]] {
                let mut encoded = Vec::new();
                encode(text, &mut encoded);
                assert_eq!(encoded.len(), encoded_bytes(text));
                assert_eq!(decoded(&encoded).as_deref(), Some(text));
            }
        }
    }

    #[test]
    fn wrong_padding_and_the_end_are_refused() {
        // "0" has the code 00000; its padding must be ones, and shorter than a byte.
        assert_eq!(decoded(&[0b0000_0111]).as_deref(), Some(&b"0"[..]));
        for wrong in [
            &[0b0000_0110][..],
            &[0b0000_0111, 0xff],
            &[0xff],
            &[0xff; 4],
            &[0xff; 9],
        ] {
            assert_eq!(decoded(wrong), None, "{wrong:?}");
        }
    }
}
