//! Unpacks Zstandard frames (RFC 8878): long events and transcripts were stored so.
//!
//! Read only, without dictionaries, and whole in memory up to a bound the caller names: what it unpacks are single
//! events and single transcripts. A crate would bring an encoder and far more than is needed here.

use std::cmp::Ordering;

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

/// Bits read from the end of a stream to its beginning.
struct Bits<'b> {
    bytes: &'b [u8],
    /// Bits not read yet; below zero for zeros read past the beginning.
    left: i64,
}

impl<'b> Bits<'b> {
    fn new(bytes: &'b [u8]) -> Result<Self> {
        let last = *bytes.last().filter(|last| **last != 0).ok_or(BROKEN)?;
        let left = bytes.len() as i64 * 8 - i64::from(last.leading_zeros()) - 1;
        Ok(Self { bytes, left })
    }

    /// Takes up to 32 bits. Zeros come before the beginning, as many as one table's state is wide.
    fn take(&mut self, count: u32) -> Result<u64> {
        self.left -= i64::from(count);
        if self.left < -64 {
            return Err(BROKEN);
        }
        let mut number = 0;
        for bit in (0..i64::from(count)).rev() {
            let at = self.left + bit;
            let is_set = at >= 0 && self.bytes[(at / 8) as usize] >> (at % 8) & 1 == 1;
            number = number << 1 | u64::from(is_set);
        }
        Ok(number)
    }
}

/// A cell of a table of finite states.
#[derive(Clone, Copy, Debug, Default)]
struct Cell {
    symbol: u8,
    bits: u32,
    base: usize,
}

/// A table of finite states.
struct Fse {
    cells: Vec<Cell>,
    log: u32,
}

impl Fse {
    fn one(symbol: u8) -> Self {
        let cell = Cell {
            symbol,
            bits: 0,
            base: 0,
        };
        Self {
            cells: vec![cell],
            log: 0,
        }
    }

    fn new(counts: &[i16], log: u32) -> Result<Self> {
        let size = 1_usize << log;
        let mut cells = vec![Cell::default(); size];
        let mut high = size;
        for (symbol, _) in counts.iter().enumerate().filter(|(_, count)| **count == -1) {
            high = high.checked_sub(1).ok_or(BROKEN)?;
            cells[high].symbol = symbol as u8;
        }
        let (step, mask) = ((size >> 1) + (size >> 3) + 3, size - 1);
        let mut at = 0;
        for (symbol, count) in counts.iter().enumerate().filter(|(_, count)| **count > 0) {
            for _ in 0..*count {
                cells[at].symbol = symbol as u8;
                at = (at + step) & mask;
                while at >= high && high > 0 {
                    at = (at + step) & mask;
                }
            }
        }
        let mut next: Vec<usize> = counts
            .iter()
            .map(|count| usize::from(count.unsigned_abs()))
            .collect();
        for cell in &mut cells {
            let state = next
                .get_mut(usize::from(cell.symbol))
                .filter(|state| **state > 0)
                .ok_or(BROKEN)?;
            cell.bits = log - state.ilog2();
            cell.base = (*state << cell.bits) - size;
            *state += 1;
        }
        Ok(Self { cells, log })
    }

    fn next(&self, state: usize, bits: &mut Bits<'_>) -> Result<usize> {
        let cell = self.cells[state];
        Ok(cell.base + bits.take(cell.bits)? as usize)
    }
}

/// Reads how often each symbol occurs in a table; gives the table's size as well.
fn counts(bytes: &mut &[u8], max_log: u32) -> Result<(Vec<i16>, u32)> {
    let all = *bytes;
    let mut at = 0_usize;
    let peek = |at: usize, count: u32| -> Result<u32> {
        let bit = |bit: u32| {
            let at = at + bit as usize;
            let byte = all.get(at / 8).copied().unwrap_or(0);
            u32::from(byte >> (at % 8) & 1) << bit
        };
        if at / 8 > all.len() {
            return Err(BROKEN);
        }
        Ok((0..count).map(bit).sum())
    };
    let log = peek(at, 4)? + 5;
    at += 4;
    if log > max_log {
        return Err(BROKEN);
    }
    let mut counts = Vec::new();
    let mut left = (1_i32 << log) + 1;
    while left > 1 && counts.len() < 256 {
        let width = 32 - (left as u32).leading_zeros();
        let low = (1_u32 << (width - 1)) - 1;
        let spare = ((1_u32 << width) - 1) - left as u32;
        let full = peek(at, width)?;
        let number = if full & low < spare {
            at += width as usize - 1;
            full & low
        } else {
            at += width as usize;
            if full > low { full - spare } else { full }
        };
        let count = i16::try_from(number).map_err(|_| BROKEN)? - 1;
        left -= i32::from(count.unsigned_abs());
        counts.push(count);
        while count == 0 {
            let more = peek(at, 2)?;
            at += 2;
            counts.extend(std::iter::repeat_n(0, more as usize));
            if more < 3 {
                break;
            }
        }
    }
    if left != 1 || counts.len() > 256 {
        return Err(BROKEN);
    }
    take(bytes, at.div_ceil(8))?;
    Ok((counts, log))
}

/// A code of bytes of which frequent ones are short.
struct Huffman {
    /// By the next `log` bits: the byte and how many of the bits it takes.
    cells: Vec<(u8, u32)>,
    log: u32,
}

impl Huffman {
    fn read(bytes: &mut &[u8]) -> Result<Self> {
        let header = take(bytes, 1)?[0];
        let mut weights: Vec<u32> = if header >= 128 {
            let count = usize::from(header) - 127;
            let packed = take(bytes, count.div_ceil(2))?;
            let halves = packed
                .iter()
                .flat_map(|byte| [u32::from(byte >> 4), u32::from(byte & 15)]);
            halves.take(count).collect()
        } else {
            weights(take(bytes, usize::from(header))?)?
        };
        let sum: u32 = weights
            .iter()
            .filter(|weight| **weight > 0)
            .map(|weight| 1 << (weight - 1))
            .sum();
        if sum == 0 {
            return Err(BROKEN);
        }
        let log = sum.ilog2() + 1;
        let rest = (1_u32 << log) - sum;
        if !rest.is_power_of_two() || log > 11 {
            return Err(BROKEN);
        }
        weights.push(rest.ilog2() + 1);
        let mut cells = Vec::with_capacity(1 << log);
        for weight in 1..=log {
            for (byte, _) in weights
                .iter()
                .enumerate()
                .filter(|(_, own)| **own == weight)
            {
                let byte = u8::try_from(byte).map_err(|_| BROKEN)?;
                cells.extend(std::iter::repeat_n(
                    (byte, log + 1 - weight),
                    1 << (weight - 1),
                ));
            }
        }
        match cells.len().cmp(&(1 << log)) {
            Ordering::Equal => Ok(Self { cells, log }),
            _ => Err(BROKEN),
        }
    }

    fn unpack(&self, bytes: &[u8], count: usize, out: &mut Vec<u8>) -> Result<()> {
        let mut bits = Bits::new(bytes)?;
        for _ in 0..count {
            let before = bits.left;
            let (byte, length) = self.cells[bits.take(self.log)? as usize];
            bits.left = before - i64::from(length);
            if bits.left < 0 {
                return Err(BROKEN);
            }
            out.push(byte);
        }
        Ok(())
    }
}

/// Weights of a code, themselves packed by two interleaved states.
fn weights(mut bytes: &[u8]) -> Result<Vec<u32>> {
    let (counts, log) = counts(&mut bytes, 6)?;
    let table = Fse::new(&counts, log)?;
    let mut bits = Bits::new(bytes)?;
    let mut states = [bits.take(log)? as usize, bits.take(log)? as usize];
    let mut weights = Vec::new();
    for turn in 0.. {
        let own = turn % 2;
        let cell = table.cells[states[own]];
        weights.push(u32::from(cell.symbol));
        if weights.len() > 255 {
            return Err(BROKEN);
        }
        if bits.left < i64::from(cell.bits) {
            weights.push(u32::from(table.cells[states[1 - own]].symbol));
            break;
        }
        states[own] = table.next(states[own], &mut bits)?;
    }
    Ok(weights)
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
