//! Unpacks Zstandard frames (RFC 8878): long events and transcripts were stored so.
//!
//! Read only, without dictionaries, and whole in memory up to a bound the caller names: what it unpacks are single
//! events and single transcripts. A crate would bring an encoder and far more than is needed here.

mod entropy;

use entropy::{Bits, Fse, Huffman, counts};

/// Why bytes cannot be unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ZstdError {
    /// They end too early, or say what cannot be.
    #[error("it is no whole Zstandard frame")]
    Broken,
    /// They need a dictionary.
    #[error("it is packed with a dictionary that is not there")]
    Dictionary,
    /// They unpack to more than the bound.
    #[error("it unpacks to more than {0} bytes")]
    TooLarge(usize),
}

type Result<T> = std::result::Result<T, ZstdError>;
const BROKEN: ZstdError = ZstdError::Broken;

const MAGIC: u32 = 0xFD2F_B528;
/// Largest block, bytes.
const MAX_BLOCK: usize = 128 * 1024;

/// Unpacks all frames, to `max` bytes at most.
pub(crate) fn unpack(mut bytes: &[u8], max: usize) -> Result<Vec<u8>> {
    let mut out = Vec::new();
    while !bytes.is_empty() {
        let magic = u32::try_from(little(&mut bytes, 4)?).unwrap_or(0);
        if magic & 0xFFFF_FFF0 == 0x184D_2A50 {
            let size = usize::try_from(little(&mut bytes, 4)?).map_err(|_| BROKEN)?;
            take(&mut bytes, size)?;
        } else if magic == MAGIC {
            frame(&mut bytes, &mut out, max)?;
        } else {
            return Err(BROKEN);
        }
    }
    Ok(out)
}

fn take<'b>(bytes: &mut &'b [u8], count: usize) -> Result<&'b [u8]> {
    let (taken, rest) = bytes.split_at_checked(count).ok_or(BROKEN)?;
    *bytes = rest;
    Ok(taken)
}

fn little(bytes: &mut &[u8], count: usize) -> Result<u64> {
    let taken = take(bytes, count)?;
    Ok(taken
        .iter()
        .rev()
        .fold(0, |number, byte| number << 8 | u64::from(*byte)))
}

/// What one block hands to the next.
struct Tables {
    huffman: Option<Huffman>,
    sequences: [Option<Fse>; 3],
    offsets: [usize; 3],
}

fn frame(bytes: &mut &[u8], out: &mut Vec<u8>, max: usize) -> Result<()> {
    let start = out.len();
    let descriptor = little(bytes, 1)?;
    let is_single = descriptor & 0x20 != 0;
    if descriptor & 0x08 != 0 {
        return Err(BROKEN);
    }
    if !is_single {
        little(bytes, 1)?;
    }
    let dictionary = [0, 1, 2, 4][(descriptor & 3) as usize];
    if little(bytes, dictionary)? != 0 {
        return Err(ZstdError::Dictionary);
    }
    let size_bytes = match (descriptor >> 6, is_single) {
        (0, true) => 1,
        (0, false) => 0,
        (flag, _) => 1 << flag,
    };
    little(bytes, size_bytes)?;
    let mut tables = Tables {
        huffman: None,
        sequences: [None, None, None],
        offsets: [1, 4, 8],
    };
    loop {
        let header = little(bytes, 3)?;
        let size = (header >> 3) as usize;
        match header >> 1 & 3 {
            0 => out.extend_from_slice(take(bytes, size)?),
            1 => {
                let byte = take(bytes, 1)?[0];
                let size = if size > MAX_BLOCK {
                    return Err(BROKEN);
                } else {
                    size
                };
                out.resize(out.len() + size, byte);
            }
            2 => block(take(bytes, size)?, start, out, &mut tables)?,
            _ => return Err(BROKEN),
        }
        if out.len() > max {
            return Err(ZstdError::TooLarge(max));
        }
        if header & 1 != 0 {
            break;
        }
    }
    if descriptor & 4 != 0 {
        // A checksum of the unpacked bytes, which the row's or the file's own digest stands in for.
        little(bytes, 4)?;
    }
    Ok(())
}

fn block(mut bytes: &[u8], start: usize, out: &mut Vec<u8>, tables: &mut Tables) -> Result<()> {
    let literals = literals(&mut bytes, tables)?;
    let mut literals = literals.as_slice();
    let mut count = little(&mut bytes, 1)? as usize;
    if count >= 255 {
        count = little(&mut bytes, 2)? as usize + 0x7F00;
    } else if count >= 128 {
        count = (count - 128) << 8 | little(&mut bytes, 1)? as usize;
    }
    if count > 0 {
        let modes = little(&mut bytes, 1)?;
        for (at, (codes, shift)) in [(&LITERAL_LENGTHS, 6), (&OFFSETS, 4), (&MATCH_LENGTHS, 2)]
            .into_iter()
            .enumerate()
        {
            match modes >> shift & 3 {
                0 => tables.sequences[at] = Some(Fse::new(codes.counts, codes.log)?),
                1 => tables.sequences[at] = Some(Fse::one(take(&mut bytes, 1)?[0])),
                2 => {
                    let (counts, log) = counts(&mut bytes, codes.max_log)?;
                    tables.sequences[at] = Some(Fse::new(&counts, log)?);
                }
                _ => {}
            }
        }
        sequences(bytes, count, &mut literals, start, out, tables)?;
    }
    out.extend_from_slice(literals);
    Ok(())
}

fn sequences(
    bytes: &[u8],
    count: usize,
    literals: &mut &[u8],
    start: usize,
    out: &mut Vec<u8>,
    tables: &mut Tables,
) -> Result<()> {
    let [Some(lengths), Some(distances), Some(matches)] = &tables.sequences else {
        return Err(BROKEN);
    };
    let began = out.len();
    let mut bits = Bits::new(bytes)?;
    let mut length = bits.take(lengths.log)? as usize;
    let mut distance = bits.take(distances.log)? as usize;
    let mut copy = bits.take(matches.log)? as usize;
    for at in 0..count {
        let code = u32::from(distances.cells[distance].symbol);
        if code > 31 {
            return Err(BROKEN);
        }
        let offset = (1_usize << code) + bits.take(code)? as usize;
        let copied = value(&MATCH_LENGTHS, matches.cells[copy].symbol, &mut bits)?;
        let own = value(&LITERAL_LENGTHS, lengths.cells[length].symbol, &mut bits)?;
        out.extend_from_slice(take(literals, own)?);
        let offset = real_offset(offset, own, &mut tables.offsets)?;
        if offset > out.len() - start {
            return Err(BROKEN);
        }
        if out.len() + copied - began > MAX_BLOCK {
            return Err(BROKEN);
        }
        for _ in 0..copied {
            out.push(out[out.len() - offset]);
        }
        if at + 1 < count {
            length = lengths.next(length, &mut bits)?;
            copy = matches.next(copy, &mut bits)?;
            distance = distances.next(distance, &mut bits)?;
        }
    }
    Ok(())
}

/// The three last offsets have short names.
fn real_offset(written: usize, own: usize, last: &mut [usize; 3]) -> Result<usize> {
    if written > 3 {
        *last = [written - 3, last[0], last[1]];
        return Ok(last[0]);
    }
    let offset = match written - 1 + usize::from(own == 0) {
        at @ 0..=2 => last[at],
        _ => last[0]
            .checked_sub(1)
            .filter(|offset| *offset > 0)
            .ok_or(BROKEN)?,
    };
    match written - 1 + usize::from(own == 0) {
        0 => {}
        1 => *last = [offset, last[0], last[2]],
        _ => *last = [offset, last[0], last[1]],
    }
    Ok(offset)
}

fn literals(bytes: &mut &[u8], tables: &mut Tables) -> Result<Vec<u8>> {
    let first = *bytes.first().ok_or(BROKEN)?;
    let (kind, format) = (first & 3, first >> 2 & 3);
    if kind < 2 {
        let (header, shift) = match format {
            0 | 2 => (1, 3),
            1 => (2, 4),
            _ => (3, 4),
        };
        let size = (little(bytes, header)? >> shift) as usize;
        return match kind {
            0 => Ok(take(bytes, size)?.to_vec()),
            _ if size > MAX_BLOCK => Err(BROKEN),
            _ => Ok(vec![take(bytes, 1)?[0]; size]),
        };
    }
    let (header, width) = match format {
        0 | 1 => (3, 10),
        2 => (4, 14),
        _ => (5, 18),
    };
    let sizes = little(bytes, header)? >> 4;
    let mask = (1_u64 << width) - 1;
    let (size, packed) = ((sizes & mask) as usize, (sizes >> width & mask) as usize);
    let mut packed = take(bytes, packed)?;
    if size > MAX_BLOCK {
        return Err(BROKEN);
    }
    if kind == 2 {
        tables.huffman = Some(Huffman::read(&mut packed)?);
    }
    let huffman = tables.huffman.as_ref().ok_or(BROKEN)?;
    let mut out = Vec::with_capacity(size);
    if format == 0 {
        huffman.unpack(packed, size, &mut out)?;
        return Ok(out);
    }
    let mut lengths = [0; 3];
    for length in &mut lengths {
        *length = little(&mut packed, 2)? as usize;
    }
    let quarter = size.div_ceil(4);
    for length in lengths {
        huffman.unpack(take(&mut packed, length)?, quarter, &mut out)?;
    }
    let left = size.checked_sub(out.len()).ok_or(BROKEN)?;
    huffman.unpack(packed, left, &mut out)?;
    Ok(out)
}

/// How one of the three numbers of a sequence is coded.
struct Codes {
    /// How often each code occurs where a block does not say.
    counts: &'static [i16],
    log: u32,
    max_log: u32,
    /// First codes that stand for themselves.
    plain: usize,
    /// What the others begin at, and how many bits are added.
    ranges: &'static [(usize, u32)],
}

fn value(codes: &Codes, code: u8, bits: &mut Bits<'_>) -> Result<usize> {
    let code = usize::from(code);
    let base = codes.first();
    if code < codes.plain {
        return Ok(base + code);
    }
    let (start, width) = *codes.ranges.get(code - codes.plain).ok_or(BROKEN)?;
    Ok(start + bits.take(width)? as usize)
}

impl Codes {
    /// The least number.
    fn first(&self) -> usize {
        if self.plain == 32 { 3 } else { 0 }
    }
}

static LITERAL_LENGTHS: Codes = Codes {
    counts: &[
        4, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2, 3, 2, 1, 1, 1,
        1, 1, -1, -1, -1, -1,
    ],
    log: 6,
    max_log: 9,
    plain: 16,
    ranges: &[
        (16, 1),
        (18, 1),
        (20, 1),
        (22, 1),
        (24, 2),
        (28, 2),
        (32, 3),
        (40, 3),
        (48, 4),
        (64, 6),
        (128, 7),
        (256, 8),
        (512, 9),
        (1024, 10),
        (2048, 11),
        (4096, 12),
        (8192, 13),
        (16384, 14),
        (32768, 15),
        (65536, 16),
    ],
};

static MATCH_LENGTHS: Codes = Codes {
    counts: &[
        1, 4, 3, 2, 2, 2, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1,
        1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1, -1, -1,
    ],
    log: 6,
    max_log: 9,
    plain: 32,
    ranges: &[
        (35, 1),
        (37, 1),
        (39, 1),
        (41, 1),
        (43, 2),
        (47, 2),
        (51, 3),
        (59, 3),
        (67, 4),
        (83, 4),
        (99, 5),
        (131, 7),
        (259, 8),
        (515, 9),
        (1027, 10),
        (2051, 11),
        (4099, 12),
        (8195, 13),
        (16387, 14),
        (32771, 15),
        (65539, 16),
    ],
};

static OFFSETS: Codes = Codes {
    counts: &[
        1, 1, 1, 1, 1, 1, 2, 2, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, -1, -1, -1, -1, -1,
    ],
    log: 5,
    max_log: 8,
    plain: 0,
    ranges: &[],
};

#[cfg(test)]
mod tests;
