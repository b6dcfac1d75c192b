//! A tiny seeded generator: the same seed gives the same install on every machine.

/// Xorshift64*, after Marsaglia and Vigna. Not for secrets.
#[derive(Debug, Clone)]
pub(crate) struct Rng(u64);

impl Rng {
    /// Starts from `seed`; zero, which the generator cannot leave, is replaced.
    pub(crate) fn new(seed: u64) -> Self {
        Self(if seed == 0 {
            0x9E37_79B9_7F4A_7C15
        } else {
            seed
        })
    }

    /// Starts from the words of a text (FNV-1a).
    pub(crate) fn of_text(text: &str) -> Self {
        let hash = text.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
        });
        Self::new(hash)
    }

    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D)
    }

    /// A number below `bound`, which must not be zero.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    /// A number from -1 to 1 in steps that every machine represents alike.
    pub(crate) fn signed_unit(&mut self) -> f32 {
        let step = i16::try_from(self.below(2001)).unwrap() - 1000;
        f32::from(step) / 1000.0
    }

    /// A vector of `dims` numbers as the old program stored it: little-endian f32, no header.
    pub(crate) fn vector(&mut self, dims: usize) -> Vec<u8> {
        (0..dims)
            .flat_map(|_| self.signed_unit().to_le_bytes())
            .collect()
    }

    /// About `bytes` bytes of made-up words, a few of them not ASCII.
    pub(crate) fn words(&mut self, bytes: usize) -> String {
        const SYLLABLES: [&str; 24] = [
            "ba", "cor", "del", "fen", "gri", "hal", "jun", "kel", "lor", "mi", "nav", "ost",
            "pra", "quen", "ru", "sil", "tav", "ul", "vor", "wen", "xi", "yar", "zé", "сад",
        ];
        let mut text = String::with_capacity(bytes + 16);
        while text.len() < bytes {
            for _ in 0..=self.below(3) {
                text.push_str(SYLLABLES[usize::try_from(self.below(24)).unwrap()]);
            }
            text.push(' ');
        }
        text.truncate(text.trim_end().len());
        text
    }
}
