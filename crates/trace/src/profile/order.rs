//! Which of many places were used since one of them: the distances of a list by last use, without a list.
//!
//! Every use takes the next place; a block's last use is marked at its place, and the mark of the one before is removed. The
//! number of blocks used since is the number of marks behind the place (Bennett and Kruskal, "LRU Stack Processing", 1975). Marks
//! are bits: a Fenwick tree counts those of lines of 512, and the rest is counted within a line.

/// Places of one line.
const LINE: usize = 512;
const WORD: usize = u64::BITS as usize;
const WORDS: usize = LINE / WORD;

/// Marks at places.
#[derive(Debug)]
pub(super) struct Order {
    words: Vec<u64>,
    /// A Fenwick tree of the marks in each line.
    lines: Vec<u32>,
    marked: usize,
}

impl Order {
    /// With so many places, or up to a line more.
    pub(super) fn new(places: usize) -> Self {
        let lines = places.div_ceil(LINE);
        Self { words: vec![0; lines * WORDS], lines: vec![0; lines], marked: 0 }
    }

    pub(super) fn places(&self) -> usize {
        self.words.len() * WORD
    }

    /// Marks a place that was not marked.
    #[inline]
    pub(super) fn mark(&mut self, place: usize) {
        self.words[place / WORD] |= 1 << (place % WORD);
        self.marked += 1;
        let mut line = place / LINE;
        while let Some(sum) = self.lines.get_mut(line) {
            *sum += 1;
            line |= line + 1;
        }
    }

    /// Removes the mark of a place that was marked.
    #[inline]
    pub(super) fn unmark(&mut self, place: usize) {
        self.words[place / WORD] &= !(1 << (place % WORD));
        self.marked -= 1;
        let mut line = place / LINE;
        while let Some(sum) = self.lines.get_mut(line) {
            *sum -= 1;
            line |= line + 1;
        }
    }

    /// Marks at later places than one that is marked.
    #[inline]
    pub(super) fn later(&self, place: usize) -> usize {
        let (line, word) = (place / LINE, place / WORD);
        let mut until = 0;
        let mut rest = line;
        while rest > 0 {
            until += self.lines[rest - 1] as usize;
            rest &= rest - 1;
        }
        until += self.words[line * WORDS..word].iter().map(|word| word.count_ones() as usize).sum::<usize>();
        let up_to_place = u64::MAX >> (WORD - 1 - place % WORD);
        until += (self.words[word] & up_to_place).count_ones() as usize;
        self.marked - until
    }

    /// Whether a place is marked.
    pub(super) fn is_marked(&self, place: usize) -> bool {
        self.words[place / WORD] >> (place % WORD) & 1 == 1
    }

    /// Has marks at the first so many places, and no others.
    pub(super) fn reset(&mut self, marked: usize) {
        self.words.fill(0);
        self.lines.fill(0);
        self.marked = 0;
        (0..marked).for_each(|place| self.mark(place));
    }
}

#[cfg(test)]
mod tests {
    use model::workload::Rng;

    use super::*;

    #[test]
    fn later_marks_are_counted() {
        let mut order = Order::new(3_000);
        assert_eq!(order.places(), 3_072);
        let (mut rng, mut plain) = (Rng::new(3, 3), vec![false; 3_072]);
        for _ in 0..5_000 {
            let place = rng.below(3_072) as usize;
            if plain[place] {
                let later = plain[place + 1..].iter().filter(|marked| **marked).count();
                assert_eq!(order.later(place), later);
                order.unmark(place);
            } else {
                order.mark(place);
            }
            plain[place] = !plain[place];
            assert_eq!(order.is_marked(place), plain[place]);
        }
        order.reset(1_000);
        assert_eq!((order.later(0), order.later(999), order.is_marked(1_000)), (999, 0, false));
    }
}
