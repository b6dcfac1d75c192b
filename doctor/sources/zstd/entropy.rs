//! Codes of frequent and rare symbols: tables of finite states, and of Huffman.

use std::cmp::Ordering;

use super::{BROKEN, Result, take};

/// Bits read from the end of a stream to its beginning.
pub(super) struct Bits<'b> {
    bytes: &'b [u8],
    /// Bits not read yet; below zero for zeros read past the beginning.
    pub(super) left: i64,
}

impl<'b> Bits<'b> {
    pub(super) fn new(bytes: &'b [u8]) -> Result<Self> {
        let last = *bytes.last().filter(|last| **last != 0).ok_or(BROKEN)?;
        let left = bytes.len() as i64 * 8 - i64::from(last.leading_zeros()) - 1;
        Ok(Self { bytes, left })
    }

    /// Takes up to 32 bits. Zeros come before the beginning, as many as one table's state is wide.
    pub(super) fn take(&mut self, count: u32) -> Result<u64> {
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
pub(super) struct Cell {
    pub(super) symbol: u8,
    bits: u32,
    base: usize,
}

/// A table of finite states.
pub(super) struct Fse {
    pub(super) cells: Vec<Cell>,
    pub(super) log: u32,
}

impl Fse {
    pub(super) fn one(symbol: u8) -> Self {
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

    pub(super) fn new(counts: &[i16], log: u32) -> Result<Self> {
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
            if high == 0 {
                return Err(BROKEN);
            }
            for _ in 0..*count {
                cells[at].symbol = symbol as u8;
                at = (at + step) & mask;
                while at >= high {
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

    pub(super) fn next(&self, state: usize, bits: &mut Bits<'_>) -> Result<usize> {
        let cell = self.cells[state];
        Ok(cell.base + bits.take(cell.bits)? as usize)
    }
}

/// Reads how often each symbol occurs in a table; gives the table's size as well.
pub(super) fn counts(bytes: &mut &[u8], max_log: u32) -> Result<(Vec<i16>, u32)> {
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
        // Behind one that does not occur, how many more do not.
        let mut is_more = count == 0;
        while is_more {
            let more = peek(at, 2)?;
            at += 2;
            counts.extend(std::iter::repeat_n(0, more as usize));
            is_more = more == 3;
        }
    }
    if left != 1 || counts.len() > 256 {
        return Err(BROKEN);
    }
    take(bytes, at.div_ceil(8))?;
    Ok((counts, log))
}

/// A code of bytes of which frequent ones are short.
pub(super) struct Huffman {
    /// By the next `log` bits: the byte and how many of the bits it takes.
    cells: Vec<(u8, u32)>,
    pub(super) log: u32,
}

impl Huffman {
    pub(super) fn read(bytes: &mut &[u8]) -> Result<Self> {
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

    pub(super) fn unpack(&self, bytes: &[u8], count: usize, out: &mut Vec<u8>) -> Result<()> {
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
