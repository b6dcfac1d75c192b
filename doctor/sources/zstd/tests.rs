//! Frames made by the `zstd` tool (1.5), each with size and SHA-256 of what was packed.

use sha2::{Digest, Sha256};

use super::{ZstdError, unpack};
use crate::doctor::units::hex;

#[test]
fn what_the_tool_packed_is_unpacked_to_the_byte() {
    for line in include_str!("tests.txt").lines() {
        let [name, packed, size, sha256] = line.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{line}")
        };
        let packed = bytes(packed);

        let found = unpack(&packed, 1 << 20).unwrap_or_else(|error| panic!("{name}: {error}"));

        assert_eq!(found.len().to_string(), size, "{name}");
        assert_eq!(hex(&Sha256::digest(&found)), sha256, "{name}");
        if !packed.is_empty() {
            let cut = unpack(&packed[..packed.len() - 5], 1 << 20);
            assert_eq!(cut, Err(ZstdError::Broken), "{name} without its end");
        }
    }
}

#[test]
fn no_bytes_make_it_fall_and_a_bound_is_kept() {
    let line = include_str!("tests.txt")
        .lines()
        .find(|line| line.starts_with("words-19"))
        .unwrap();
    let packed = bytes(line.split(' ').nth(1).unwrap());
    assert_eq!(unpack(&packed, 100), Err(ZstdError::TooLarge(100)));
    for at in (0..packed.len()).step_by(11) {
        for bit in 0..8 {
            let mut flipped = packed.clone();
            flipped[at] ^= 1 << bit;
            let _ = unpack(&flipped, 1 << 20);
        }
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits = hex.as_bytes().chunks_exact(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}
