//! Office files: parts of XML in a zip archive. The archive is written by 60 lines of our own, since parts are small,
//! are stored as they are and have one date: the crates for it bring encryption, other compressions and clocks.

use flate2::Crc;

/// 1 January 1980, the first date that an archive can hold: the same parts give the same bytes.
const DATE: u16 = (1 << 5) | 1;
/// Names are UTF-8.
const FLAGS: u16 = 1 << 11;

/// An archive of these parts, each with its path.
pub fn zipped(parts: &[(&str, String)]) -> Vec<u8> {
    let (mut out, mut list) = (Vec::new(), Vec::new());
    for (name, text) in parts {
        let offset = out.len() as u32;
        let mut crc = Crc::new();
        crc.update(text.as_bytes());
        let size = text.len() as u32;
        // What the head of a part and its line in the list share.
        let mut shared = Vec::new();
        for word in [20, FLAGS, 0, 0, DATE] {
            shared.extend(word.to_le_bytes());
        }
        for word in [crc.sum(), size, size] {
            shared.extend(word.to_le_bytes());
        }
        shared.extend((name.len() as u16).to_le_bytes());
        shared.extend(0u16.to_le_bytes());
        out.extend(0x0403_4b50_u32.to_le_bytes());
        out.extend(&shared);
        out.extend(name.as_bytes());
        out.extend(text.as_bytes());
        list.extend(0x0201_4b50_u32.to_le_bytes());
        list.extend(20u16.to_le_bytes());
        list.extend(&shared);
        // No comment, the first disk, no attributes.
        list.extend([0u8; 10]);
        list.extend(offset.to_le_bytes());
        list.extend(name.as_bytes());
    }
    let (n, start) = (parts.len() as u16, out.len() as u32);
    out.extend(&list);
    out.extend(0x0605_4b50_u32.to_le_bytes());
    out.extend([0u8; 4]);
    for word in [n, n] {
        out.extend(word.to_le_bytes());
    }
    for word in [list.len() as u32, start] {
        out.extend(word.to_le_bytes());
    }
    out.extend(0u16.to_le_bytes());
    out
}
