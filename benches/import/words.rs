//! Made-up text and numbers, the same for the same seed on every machine.

/// Words of the made-up language.
const VOCABULARY: usize = 20_000;
/// Longest message, bytes.
const LONGEST: f64 = 2_000.0;
/// Shortest message, bytes.
const SHORTEST: f64 = 15.0;

/// A source of texts: half of all words are of the commonest tenth, half of all messages shorter than 140 bytes.
pub(crate) struct Words {
    state: u64,
    vocabulary: Vec<String>,
}

impl Words {
    pub(crate) fn new(seed: u64) -> Self {
        const SYLLABLES: [&str; 24] = [
            "ba", "cor", "del", "fen", "gri", "hal", "jun", "kel", "lor", "mi", "nav", "ost",
            "pra", "quen", "ru", "sil", "tav", "ul", "vor", "wen", "xi", "yar", "zé", "сад",
        ];
        let mut words = Self {
            state: seed,
            vocabulary: Vec::new(),
        };
        words.vocabulary = (0..VOCABULARY)
            .map(|_| {
                let syllables = 1 + words.below(4);
                (0..syllables)
                    .map(|_| SYLLABLES[words.below(SYLLABLES.len())])
                    .collect()
            })
            .collect();
        words
    }

    /// The next 64 bits: SplitMix64, after Steele, Lea and Flood.
    fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut bits = self.state;
        bits = (bits ^ (bits >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        bits = (bits ^ (bits >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        bits ^ (bits >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        let wide = u128::from(self.next()) * bound as u128;
        usize::try_from(wide >> 64).unwrap()
    }

    /// A number from 0 to 1.
    fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// A message.
    pub(crate) fn message(&mut self) -> String {
        let bytes = SHORTEST + self.unit().powi(4) * (LONGEST - SHORTEST);
        self.text(bytes as usize)
    }

    /// About `bytes` bytes of words.
    pub(crate) fn text(&mut self, bytes: usize) -> String {
        let mut text = String::with_capacity(bytes + 16);
        while text.len() < bytes {
            let common = self.unit().powi(3) * VOCABULARY as f64;
            text.push_str(&self.vocabulary[common as usize]);
            text.push(' ');
        }
        text.truncate(text.trim_end().len());
        text
    }

    /// A vector of `dims` numbers from -1 to 1: little-endian 32-bit floats.
    pub(crate) fn vector(&mut self, dims: usize) -> Vec<u8> {
        let number = |_| (self.unit() * 2.0 - 1.0) as f32;
        (0..dims).map(number).flat_map(f32::to_le_bytes).collect()
    }
}
