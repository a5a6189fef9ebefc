//! The long file of the stand-in farm: a pattern whose period is prime, so that a lost or repeated piece is detected.

use bytes::Bytes;

const PIECE_BYTES: usize = 64 * 1024;
const PERIOD: usize = 251;

/// The pieces of a file of this many bytes.
pub fn long_file(bytes: u64) -> impl Iterator<Item = Bytes> + Send {
    let mut left = bytes;
    let mut start = 0_u64;
    // Slices of one buffer, so that a long file needs no memory.
    let pattern: Bytes =
        (0..PIECE_BYTES + PERIOD).map(|index| pattern_byte(index as u64)).collect::<Vec<_>>().into();
    std::iter::from_fn(move || {
        let length = usize::try_from(left.min(PIECE_BYTES as u64)).ok().filter(|length| *length > 0)?;
        let offset = usize::try_from(start % PERIOD as u64).ok()?;
        left -= length as u64;
        start += length as u64;
        Some(pattern.slice(offset..offset + length))
    })
}

/// The byte of a long file at an offset.
pub fn pattern_byte(offset: u64) -> u8 {
    u8::try_from(offset % PERIOD as u64).unwrap_or_default()
}
