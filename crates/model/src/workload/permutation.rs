//! A keyed bijection that scatters logical neighbours over a whole table.

use super::rng::mix64;

/// Rounds of the Feistel network. Four rounds of independent random functions are a strong pseudo-random permutation
/// (Luby and Rackoff, 1988); ours need only look random to a disk array.
const ROUNDS: usize = 4;

/// A keyed bijection on `0..size`, in constant memory and without tables.
///
/// The construction is the generalised Feistel network with cycle walking of Black and Rogaway, "Ciphers with Arbitrary
/// Finite Domains" (CT-RSA 2002). A number is split into `column + row · columns`; each round adds a keyed function of
/// one half to the other, modulo that half's own range, which can be undone whatever the function is.
///
/// `columns` is a power of two between √(size / 2) and √(2·size), so that splitting needs no division, and
/// `rows = ⌈size / columns⌉`. Hence fewer than `columns` of the `columns · rows` numbers lie outside `0..size`; a number
/// that lands there is sent round again, which happens to less than one in √(size / 2) of them.
#[derive(Clone, Debug)]
pub struct Permutation {
    size: u64,
    rows: u64,
    column_bits: u32,
    column_mask: u64,
    round_keys: [u64; ROUNDS],
}

impl Permutation {
    /// The largest size that can be permuted: 2^62.
    pub const MAX_SIZE: u64 = 1 << 62;

    /// A bijection on `0..size`; different keys give unrelated ones.
    ///
    /// # Panics
    /// If `size` is 0 or above [`MAX_SIZE`](Self::MAX_SIZE).
    pub fn new(size: u64, key: u64) -> Self {
        assert!((1..=Self::MAX_SIZE).contains(&size), "a permutation of {size} numbers cannot be made");
        let column_bits = (u64::BITS - size.leading_zeros()) / 2;
        let columns = 1_u64 << column_bits;
        let chain = mix64(key);
        Self {
            size,
            rows: size.div_ceil(columns),
            column_bits,
            column_mask: columns - 1,
            round_keys: std::array::from_fn(|round| mix64(chain.wrapping_add(round as u64))),
        }
    }

    /// How many numbers are permuted.
    pub fn size(&self) -> u64 {
        self.size
    }

    /// The position of `index`, which must lie in `0..size`.
    #[inline]
    pub fn map(&self, index: u64) -> u64 {
        debug_assert!(index < self.size, "index {index} lies outside 0..{}", self.size);
        let mut number = index;
        loop {
            number = self.forward(number);
            if number < self.size {
                return number;
            }
        }
    }

    /// The index whose position is `position`, which must lie in `0..size`: undoes [`map`](Self::map).
    #[inline]
    pub fn invert(&self, position: u64) -> u64 {
        debug_assert!(position < self.size, "position {position} lies outside 0..{}", self.size);
        let mut number = position;
        loop {
            number = self.backward(number);
            if number < self.size {
                return number;
            }
        }
    }

    #[inline]
    fn forward(&self, number: u64) -> u64 {
        let (mut column, mut row) = (number & self.column_mask, number >> self.column_bits);
        let [first, second, third, fourth] = self.round_keys;
        // Neighbours differ in their column first, so the row is what the first round must move.
        row = self.add_to_row(row, column, first);
        column = (column + column_offset(row, second)) & self.column_mask;
        row = self.add_to_row(row, column, third);
        column = (column + column_offset(row, fourth)) & self.column_mask;
        row << self.column_bits | column
    }

    #[inline]
    fn backward(&self, number: u64) -> u64 {
        let (mut column, mut row) = (number & self.column_mask, number >> self.column_bits);
        let [first, second, third, fourth] = self.round_keys;
        column = column.wrapping_sub(column_offset(row, fourth)) & self.column_mask;
        row = self.take_from_row(row, column, third);
        column = column.wrapping_sub(column_offset(row, second)) & self.column_mask;
        row = self.take_from_row(row, column, first);
        row << self.column_bits | column
    }

    #[inline]
    fn add_to_row(&self, row: u64, column: u64, key: u64) -> u64 {
        let sum = row + self.row_offset(column, key);
        if sum >= self.rows { sum - self.rows } else { sum }
    }

    #[inline]
    fn take_from_row(&self, row: u64, column: u64, key: u64) -> u64 {
        let offset = self.row_offset(column, key);
        if row >= offset { row - offset } else { row + self.rows - offset }
    }

    /// A keyed function of the column in `0..rows`: the high half of a product stands in for a slow remainder.
    #[inline]
    fn row_offset(&self, column: u64, key: u64) -> u64 {
        ((u128::from(scramble(column, key)) * u128::from(self.rows)) >> 64) as u64
    }
}

/// A keyed function of the row, to be cut down to `0..columns`; columns have at most 31 bits.
#[inline]
fn column_offset(row: u64, key: u64) -> u64 {
    scramble(row, key) >> 32
}

/// A keyed function of one half whose upper 32 bits depend on every bit of the half.
///
/// One product alone would leave the halves of neighbours in arithmetic progression; the shift between two products
/// breaks that.
#[inline]
fn scramble(half: u64, key: u64) -> u64 {
    let product = (half ^ key).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (product ^ product >> 32).wrapping_mul(0xd6e8_feb8_6659_fd93)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::Permutation;

    const AWKWARD_SIZES: [u64; 28] = [
        1, 2, 3, 4, 5, 6, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 129, 1000, 1023, 1024, 1025, 10007, 65536,
        65537, 131_071,
    ];

    #[test]
    fn every_position_is_taken_once_for_awkward_sizes() {
        for size in AWKWARD_SIZES {
            for key in [0, 1, u64::MAX] {
                let permutation = Permutation::new(size, key);
                let mut taken = vec![false; size as usize];
                for index in 0..size {
                    let position = permutation.map(index);
                    assert!(!taken[position as usize], "position {position} of {size} is taken twice");
                    taken[position as usize] = true;
                    assert_eq!(permutation.invert(position), index, "size {size}");
                }
            }
        }
    }

    proptest! {
        #[test]
        fn inverting_gives_the_index_back(size in 1..=Permutation::MAX_SIZE, key: u64, at in 0.0..1.0_f64) {
            let permutation = Permutation::new(size, key);
            for index in [0, (size as f64 * at) as u64 % size, size - 1] {
                let position = permutation.map(index);
                prop_assert!(position < size);
                prop_assert_eq!(permutation.invert(position), index);
                prop_assert_eq!(permutation.map(permutation.invert(index)), index);
            }
        }

        #[test]
        fn few_numbers_lie_outside_the_size(size in 1..=Permutation::MAX_SIZE) {
            let permutation = Permutation::new(size, 0);
            let domain = u128::from(permutation.rows) << permutation.column_bits;
            let outside = domain - u128::from(size);
            prop_assert!(outside <= u128::from(permutation.column_mask));
            prop_assert!(outside * outside <= 2 * u128::from(size));
        }
    }

    #[test]
    fn different_keys_agree_no_more_than_chance() {
        let size = 100_003;
        let one = Permutation::new(size, 1);
        for key in [0, 2, 3, 1 << 63] {
            let other = Permutation::new(size, key);
            let agreements = (0..size).filter(|&index| one.map(index) == other.map(index)).count();
            assert!(agreements < 10, "{agreements} agreements with key {key}; chance gives about 1");
        }
    }

    #[test]
    fn neighbours_scatter_over_the_whole_range() {
        for size in [10_007_u64, 65_536, 131_072, 1_000_003] {
            for key in 0..4 {
                let permutation = Permutation::new(size, key);
                let (mut adjacent, mut fixed, mut travelled) = (0, 0, 0.0);
                for index in 0..size - 1 {
                    let (here, next) = (permutation.map(index), permutation.map(index + 1));
                    adjacent += u32::from(here.abs_diff(next) == 1);
                    fixed += u32::from(here == index);
                    travelled += here.abs_diff(next) as f64;
                }
                // Chance gives 2 adjacent pairs, 1 fixed point, and a third of the size between two random positions.
                assert!(adjacent < 12, "{adjacent} neighbours stayed neighbours, size {size} key {key}");
                assert!(fixed < 10, "{fixed} numbers stayed where they were, size {size} key {key}");
                let mean = travelled / (size - 1) as f64 / size as f64;
                assert!((mean - 1.0 / 3.0).abs() < 0.01, "mean distance {mean} of size {size} key {key}");
            }
        }
    }

    #[test]
    fn a_short_range_of_keys_fills_every_part_of_the_table_alike() {
        let (size, parts, keys) = (1_u64 << 34, 64, 64_000_u64);
        let permutation = Permutation::new(size, 9);
        let mut counts = vec![0_u32; parts];
        for index in 5_000_000..5_000_000 + keys {
            counts[(permutation.map(index) * parts as u64 / size) as usize] += 1;
        }
        let expected = keys as f64 / parts as f64;
        let chi_square: f64 = counts.iter().map(|&count| (f64::from(count) - expected).powi(2) / expected).sum();
        // 63 degrees of freedom: mean 63, standard deviation 11.2.
        assert!((25.0..120.0).contains(&chi_square), "chi-square {chi_square}");
    }

    #[test]
    #[should_panic(expected = "a permutation of 0 numbers")]
    fn nothing_cannot_be_permuted() {
        let _ = Permutation::new(0, 1);
    }
}
