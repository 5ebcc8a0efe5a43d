//! HPACK, the compression of heads: RFC 7541. It knows nothing of what the fields mean.

use std::collections::VecDeque;

use crate::http::http2::huffman;

/// Maximum size of the dynamic table, unless the settings say otherwise.
pub(crate) const TABLE_BYTES: usize = 4_096;

/// What an entry of the dynamic table uses in addition to its name and value; so does a field of a
/// header list.
pub(crate) const FIELD_OVERHEAD_BYTES: usize = 32;

/// A decoder whose buffer for decoded text has become larger than this releases it.
const KEPT_TEXT_BYTES: usize = 1_024;

/// Beginnings of representations, with the length of the prefix of their number in bits.
const INDEXED: (u8, u32) = (0x80, 7);
const INSERTED: (u8, u32) = (0x40, 6);
const SIZE_UPDATE: (u8, u32) = (0x20, 5);
const NOT_INSERTED: (u8, u32) = (0, 4);
const HUFFMAN: (u8, u32) = (0x80, 7);
const PLAIN: (u8, u32) = (0, 7);

/// RFC 7541, appendix A; index 1 comes first.
const STATIC: [(&[u8], &[u8]); 61] = [
    (b":authority", b""),
    (b":method", b"GET"),
    (b":method", b"POST"),
    (b":path", b"/"),
    (b":path", b"/index.html"),
    (b":scheme", b"http"),
    (b":scheme", b"https"),
    (b":status", b"200"),
    (b":status", b"204"),
    (b":status", b"206"),
    (b":status", b"304"),
    (b":status", b"400"),
    (b":status", b"404"),
    (b":status", b"500"),
    (b"accept-charset", b""),
    (b"accept-encoding", b"gzip, deflate"),
    (b"accept-language", b""),
    (b"accept-ranges", b""),
    (b"accept", b""),
    (b"access-control-allow-origin", b""),
    (b"age", b""),
    (b"allow", b""),
    (b"authorization", b""),
    (b"cache-control", b""),
    (b"content-disposition", b""),
    (b"content-encoding", b""),
    (b"content-language", b""),
    (b"content-length", b""),
    (b"content-location", b""),
    (b"content-range", b""),
    (b"content-type", b""),
    (b"cookie", b""),
    (b"date", b""),
    (b"etag", b""),
    (b"expect", b""),
    (b"expires", b""),
    (b"from", b""),
    (b"host", b""),
    (b"if-match", b""),
    (b"if-modified-since", b""),
    (b"if-none-match", b""),
    (b"if-range", b""),
    (b"if-unmodified-since", b""),
    (b"last-modified", b""),
    (b"link", b""),
    (b"location", b""),
    (b"max-forwards", b""),
    (b"proxy-authenticate", b""),
    (b"proxy-authorization", b""),
    (b"range", b""),
    (b"referer", b""),
    (b"refresh", b""),
    (b"retry-after", b""),
    (b"server", b""),
    (b"set-cookie", b""),
    (b"strict-transport-security", b""),
    (b"transfer-encoding", b""),
    (b"user-agent", b""),
    (b"vary", b""),
    (b"via", b""),
    (b"www-authenticate", b""),
];

/// The index of the newest entry of the dynamic table.
pub(crate) const NEWEST: usize = STATIC.len() + 1;

/// A head that cannot be decompressed: the connection cannot be used any longer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Incompressible;

/// A field of the dynamic table.
#[derive(Debug)]
struct Entry {
    text: Box<[u8]>,
    name_bytes: usize,
}

/// The server's dynamic table, and a buffer.
#[derive(Debug)]
pub(crate) struct Decoder {
    entries: VecDeque<Entry>,
    used_bytes: usize,
    max_bytes: usize,
    /// Whether the latest block changed the table.
    has_changed: bool,
    /// The name and the value of a literal field.
    text: Vec<u8>,
}

impl Default for Decoder {
    fn default() -> Self {
        Self {
            entries: VecDeque::new(),
            used_bytes: 0,
            max_bytes: TABLE_BYTES,
            has_changed: false,
            text: Vec::new(),
        }
    }
}

impl Decoder {
    /// Decodes a block, and reports each name and value.
    pub fn decode(
        &mut self,
        mut block: &[u8],
        mut on_field: impl FnMut(&[u8], &[u8]),
    ) -> Result<(), Incompressible> {
        self.has_changed = false;
        let mut is_first = true;
        while let Some(&first) = block.first() {
            if first & INDEXED.0 != 0 {
                let (name, value) = self.field(number(&mut block, INDEXED)?)?;
                on_field(name, value);
            } else if first & INSERTED.0 != 0 {
                let name_bytes = self.literal(&mut block, INSERTED)?;
                let (name, value) = self.text.split_at(name_bytes);
                on_field(name, value);
                self.insert(name_bytes);
            } else if first & SIZE_UPDATE.0 != 0 {
                let max_bytes = number(&mut block, SIZE_UPDATE)?;
                if !is_first || max_bytes > TABLE_BYTES {
                    return Err(Incompressible);
                }
                (self.max_bytes, self.has_changed) = (max_bytes, true);
                self.evict(0);
                continue;
            } else {
                let name_bytes = self.literal(&mut block, NOT_INSERTED)?;
                let (name, value) = self.text.split_at(name_bytes);
                on_field(name, value);
            }
            is_first = false;
        }

        if self.text.capacity() > KEPT_TEXT_BYTES {
            self.text = Vec::new();
        }
        Ok(())
    }

    /// Whether the latest block changed the table. If not, the same block means the same fields
    /// until another one does.
    pub fn has_changed(&self) -> bool {
        self.has_changed
    }

    fn field(&self, index: usize) -> Result<(&[u8], &[u8]), Incompressible> {
        if let Some(field) = index.checked_sub(1).and_then(|index| STATIC.get(index)) {
            return Ok(*field);
        }
        let index = index.checked_sub(NEWEST).ok_or(Incompressible)?;
        let entry = self.entries.get(index).ok_or(Incompressible)?;
        Ok(entry.text.split_at(entry.name_bytes))
    }

    /// Decodes a literal field into the buffer; returns the length of its name.
    fn literal(
        &mut self,
        block: &mut &[u8],
        representation: (u8, u32),
    ) -> Result<usize, Incompressible> {
        let index = number(block, representation)?;
        let mut text = std::mem::take(&mut self.text);
        text.clear();
        let taken = if index == 0 {
            take_string(block, &mut text)
        } else {
            self.field(index).map(|(name, _)| text.extend(name))
        };
        let name_bytes = text.len();
        let taken = taken.and_then(|()| take_string(block, &mut text));
        self.text = text;
        taken.map(|()| name_bytes)
    }

    /// Inserts the field in the buffer. One that is larger than the table empties it.
    fn insert(&mut self, name_bytes: usize) {
        self.has_changed = true;
        let entry_bytes = self.text.len() + FIELD_OVERHEAD_BYTES;
        self.evict(entry_bytes);
        if entry_bytes <= self.max_bytes {
            self.used_bytes += entry_bytes;
            self.entries.push_front(Entry {
                text: self.text.as_slice().into(),
                name_bytes,
            });
        }
    }

    /// Removes the oldest entries until there is room for this many bytes.
    fn evict(&mut self, bytes: usize) {
        while self.used_bytes + bytes > self.max_bytes
            && let Some(entry) = self.entries.pop_back()
        {
            self.used_bytes -= entry.text.len() + FIELD_OVERHEAD_BYTES;
        }
    }
}

/// Takes a number: RFC 7541, section 5.1.
fn number(block: &mut &[u8], (_, prefix_bits): (u8, u32)) -> Result<usize, Incompressible> {
    let max = (1 << prefix_bits) - 1;
    let (first, mut rest) = block.split_first().ok_or(Incompressible)?;
    let mut value = usize::from(*first) & max;
    if value == max {
        let mut shift = 0;
        loop {
            let (byte, after) = rest.split_first().ok_or(Incompressible)?;
            rest = after;
            value += usize::from(byte & 0x7f) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                break;
            }
            // No number is longer than what a frame can hold.
            if shift > 21 {
                return Err(Incompressible);
            }
        }
    }
    *block = rest;
    Ok(value)
}

/// Takes a string, and appends it.
fn take_string(block: &mut &[u8], out: &mut Vec<u8>) -> Result<(), Incompressible> {
    let is_encoded = block.first().is_some_and(|first| first & HUFFMAN.0 != 0);
    let bytes = number(block, HUFFMAN)?;
    let (string, rest) = block.split_at_checked(bytes).ok_or(Incompressible)?;
    *block = rest;
    if is_encoded {
        return huffman::decode(string, out).ok_or(Incompressible);
    }
    out.extend_from_slice(string);
    Ok(())
}

/// Appends a field that the static table or the dynamic one contains.
pub(crate) fn encode_index(index: usize, out: &mut Vec<u8>) {
    encode_number(index, INDEXED, out);
}

/// Appends the new size of the dynamic table, which must be the first of a block.
pub(crate) fn encode_size_update(bytes: usize, out: &mut Vec<u8>) {
    encode_number(bytes, SIZE_UPDATE, out);
}

/// Appends a field, by its index if the static table contains it; `inserts` adds it to the
/// dynamic table otherwise. Returns what it uses there.
pub(crate) fn encode_field(name: &[u8], value: &[u8], inserts: bool, out: &mut Vec<u8>) -> usize {
    let place_of = |field: &(&[u8], &[u8])| STATIC.iter().position(|one| one == field);
    if let Some(place) = place_of(&(name, value)) {
        encode_index(place + 1, out);
        return 0;
    }

    let form = if inserts { INSERTED } else { NOT_INSERTED };
    match STATIC.iter().position(|(other, _)| *other == name) {
        Some(place) => encode_number(place + 1, form, out),
        None => {
            encode_number(0, form, out);
            encode_string(name, out);
        }
    }
    encode_string(value, out);
    if inserts {
        name.len() + value.len() + FIELD_OVERHEAD_BYTES
    } else {
        0
    }
}

fn encode_string(text: &[u8], out: &mut Vec<u8>) {
    let encoded_bytes = huffman::encoded_bytes(text);
    if encoded_bytes < text.len() {
        encode_number(encoded_bytes, HUFFMAN, out);
        huffman::encode(text, out);
    } else {
        encode_number(text.len(), PLAIN, out);
        out.extend_from_slice(text);
    }
}

fn encode_number(mut value: usize, (form, prefix_bits): (u8, u32), out: &mut Vec<u8>) {
    let max = (1 << prefix_bits) - 1;
    if value < max {
        return out.push(form | value as u8);
    }
    out.push(form | max as u8);
    value -= max;
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    type Fields = Vec<(String, String)>;

    fn decode(decoder: &mut Decoder, block: &[u8]) -> Result<Fields, Incompressible> {
        let mut fields = Vec::new();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        decoder.decode(block, |name, value| fields.push((text(name), text(value))))?;
        Ok(fields)
    }

    fn fields(text: &str) -> Fields {
        let split = |line: &str| line.rsplit_once(": ").map(|(a, b)| (a.into(), b.into()));
        text.lines().filter_map(split).collect()
    }

    #[test]
    fn the_responses_of_the_rfc_are_decoded() {
        // RFC 7541, section C.6: the table has room for 256 bytes.
        let mut decoder = Decoder {
            max_bytes: 256,
            ..Decoder::default()
        };
        for (block, expected) in [
            (
                &b"\x48\x82\x64\x02\x58\x85\xae\xc3\x77\x1a\x4b\x61\x96\xd0\x7a\xbe\x94\x10\x54\
                \xd4\x44\xa8\x20\x05\x95\x04\x0b\x81\x66\xe0\x82\xa6\x2d\x1b\xff\x6e\x91\x9d\x29\
                \xad\x17\x18\x63\xc7\x8f\x0b\x97\xc8\xe9\xae\x82\xae\x43\xd3"[..],
                ":status: 302\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\n\
                location: https://www.example.com",
            ),
            (
                b"\x48\x83\x64\x0e\xff\xc1\xc0\xbf",
                ":status: 307\ncache-control: private\ndate: Mon, 21 Oct 2013 20:13:21 GMT\n\
                location: https://www.example.com",
            ),
        ] {
            assert_eq!(decode(&mut decoder, block), Ok(fields(expected)));
            assert!(decoder.has_changed());
        }
        // ":status: 302" was evicted for ":status: 307".
        assert_eq!((decoder.entries.len(), decoder.used_bytes), (4, 222));
    }

    #[test]
    fn encoded_fields_are_decoded_again() {
        let long = "v".repeat(5_000);
        let all = [
            (":method", "GET"),
            (":path", "/a?b"),
            ("accept-encoding", "gzip, deflate"),
            ("user-agent", "x"),
            ("x-own", "\u{1}\u{2}"),
            ("x-long", &long),
            ("x-own", ""),
        ];
        for inserts in [false, true] {
            let (mut block, mut table_bytes) = (Vec::new(), 0);
            for (name, value) in all {
                let (name, value) = (name.as_bytes(), value.as_bytes());
                table_bytes = encode_field(name, value, inserts, &mut block);
            }
            let mut decoder = Decoder::default();
            let expected: Fields = all
                .iter()
                .map(|(a, b)| ((*a).into(), (*b).into()))
                .collect();
            assert_eq!(decode(&mut decoder, &block), Ok(expected), "{inserts}");
            assert_eq!(decoder.has_changed(), inserts);
            // The long field emptied the table.
            assert_eq!(decoder.used_bytes, table_bytes);
            assert_eq!(decoder.text.capacity(), 0, "the buffer was too large");
        }
    }

    #[test]
    fn a_smaller_table_loses_its_oldest_entries() {
        let mut decoder = Decoder::default();
        let mut block = Vec::new();
        for value in ["1", "2"] {
            encode_field(b"a", value.as_bytes(), true, &mut block);
        }
        assert!(decode(&mut decoder, &block).is_ok());

        let mut block = Vec::new();
        encode_size_update(34, &mut block);
        encode_index(NEWEST, &mut block);
        assert_eq!(decode(&mut decoder, &block), Ok(fields("a: 2")));
        let mut block = Vec::new();
        encode_index(NEWEST + 1, &mut block);
        assert_eq!(decode(&mut decoder, &block), Err(Incompressible));
    }

    #[test]
    fn invalid_blocks_are_refused() {
        for block in [
            &b"\x80"[..],
            b"\xbe",
            b"\xff",
            b"\xff\xff\xff\xff\xff\x00",
            b"\x00",
            b"\x00\x01",
            b"\x00\x01a\x02b",
            b"\x00\x81\x00\x00",
            b"\x88\x20",
            b"\x3f\xe2\x1f",
        ] {
            let decoded = decode(&mut Decoder::default(), block);
            assert_eq!(decoded, Err(Incompressible), "{block:?}");
        }
    }
}
