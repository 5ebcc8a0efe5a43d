//! Numbers as text. They are written for every request, so eight digits are computed at once, one
//! in each byte of a 64-bit word.

/// Digits in a word.
const DIGITS: usize = 8;

/// The smallest number with more decimal digits than a word holds.
const DECIMAL_WORD: u64 = 100_000_000;

/// The character `0` in each byte.
const ZEROS: u64 = u64::from_ne_bytes([b'0'; DIGITS]);

/// Appends a number in decimal digits.
pub(crate) fn write_decimal(number: u64, out: &mut Vec<u8>) {
    let (above, below) = (number / DECIMAL_WORD, number % DECIMAL_WORD);
    let digits = decimal_digits(below);
    let mut unused = 0;
    if above > 0 {
        write_decimal(above, out);
    } else {
        // The last digit is written even if it is a zero.
        unused = (digits.trailing_zeros() as usize / 8).min(DIGITS - 1);
    }

    let text = (digits | ZEROS) >> (8 * unused);
    out.extend_from_slice(&text.to_le_bytes());
    out.truncate(out.len() - unused);
}

/// The digits of a number below [`DECIMAL_WORD`], the first one in the lowest byte.
///
/// Each step splits every part of the word in two. A single multiplication by 2^20 / 100 or 2^10 /
/// 10, rounded up, divides all parts at once; for numbers this small, the quotients are exact.
fn decimal_digits(number: u64) -> u64 {
    let fours = (number / 10_000) | (number % 10_000) << 32;
    let hundreds = (fours * 10_486) >> 20 & 0x0000_007f_0000_007f;
    let twos = hundreds | (fours - hundreds * 100) << 16;
    let tens = (twos * 103) >> 10 & 0x000f_000f_000f_000f;
    tens | (twos - tens * 10) << 8
}

/// A number in hexadecimal digits, with leading zeros.
pub(crate) fn hexadecimal(number: u32) -> [u8; DIGITS] {
    // Moves the first byte to the lowest position, then spreads the bytes, then the digits.
    let bytes = u64::from(number.swap_bytes());
    let pairs = (bytes | bytes << 16) & 0x0000_ffff_0000_ffff;
    let pairs = (pairs | pairs << 8) & 0x00ff_00ff_00ff_00ff;
    let digits = (pairs >> 4 | pairs << 8) & 0x0f0f_0f0f_0f0f_0f0f;

    let are_letters = (digits + 0x0606_0606_0606_0606) >> 4 & 0x0101_0101_0101_0101;
    let from_zero_to_letters = u64::from(b'a' - 10 - b'0');
    (digits + ZEROS + are_letters * from_zero_to_letters).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::random::scatter;

    /// Numbers of all lengths, and those around each power of the base.
    fn numbers(base: u64) -> impl Iterator<Item = u64> {
        let powers = (0..64).map_while(move |exponent| base.checked_pow(exponent));
        let around = powers.flat_map(|power| [power - 1, power, power.saturating_add(1)]);
        let any = (0..100_000).map(|place| scatter(1, place) >> (place % 64));
        around.chain(any).chain([u64::MAX])
    }

    #[test]
    fn decimal_numbers_are_written_in_full() {
        let mut out = b"before".to_vec();
        for number in numbers(10).chain(0..20_000) {
            out.truncate(6);
            write_decimal(number, &mut out);
            assert_eq!(out, format!("before{number}").into_bytes());
        }
    }

    #[test]
    fn hexadecimal_numbers_have_all_their_digits() {
        for number in numbers(16).map(|number| number as u32) {
            assert_eq!(hexadecimal(number), *format!("{number:08x}").as_bytes());
        }
    }
}
