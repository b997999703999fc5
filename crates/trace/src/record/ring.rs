//! Pages of the kernel's ring buffer, as `trace_pipe_raw` gives them.
//!
//! A page begins with the time of its first event (u64) and the length of its events; both fields are where `events/header_page` says.
//! An event begins with a word of 32 bits: its type and length in the lower 5, the time since the event before it in the upper 27
//! (`struct ring_buffer_event`, include/linux/ring_buffer.h of the kernel).

/// Type and length: what is not one of these is a length in words.
const LONG: u32 = 0;
const PADDING: u32 = 29;
const TIME_EXTEND: u32 = 30;
const TIME_STAMP: u32 = 31;
/// Bits of a time that its event has.
const TIME_BITS: u32 = 27;

/// The length in the word of a page: above are marks of lost events.
const LENGTH_MASK: u64 = 0x000f_ffff;

/// Where the fields of a page are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct PageLayout {
    /// Of the length.
    pub(super) length_at: usize,
    /// Bytes of it: those of a word of the machine.
    pub(super) length_bytes: usize,
    /// Of the first event.
    pub(super) events_at: usize,
}

/// Calls `on_event` with the time and the bytes of each event of a page, in their order. What is not whole is left out.
pub(super) fn events(page: &[u8], layout: PageLayout, mut on_event: impl FnMut(u64, &[u8])) {
    let Some(mut at_ns) = number(page, 0, 8) else { return };
    let Some(length) = number(page, layout.length_at, layout.length_bytes) else { return };
    let end = layout.events_at.saturating_add((length & LENGTH_MASK) as usize).min(page.len());
    let mut at = layout.events_at;
    while let Some(word) = number(&page[..end], at, 4) {
        let (kind, delta) = (word as u32 & 0x1f, word >> 5);
        at += 4;
        let length = match kind {
            TIME_EXTEND | TIME_STAMP => {
                let Some(upper) = number(&page[..end], at, 4) else { return };
                let time = (upper << TIME_BITS) + delta;
                // A stamp has no room for the uppermost bits, which change once in 18 years.
                let absolute = (at_ns & !((1 << (TIME_BITS + 32)) - 1)) | time;
                at_ns = if kind == TIME_EXTEND { at_ns.saturating_add(time) } else { absolute };
                at += 4;
                continue;
            }
            PADDING if delta == 0 => return,
            PADDING | LONG => match number(&page[..end], at, 4) {
                // It counts its own word.
                Some(length) if length >= 4 => length as usize,
                _ => return,
            },
            words => words as usize * 4,
        };
        at_ns = at_ns.saturating_add(delta);
        let Some(event) = page[..end].get(at..at.saturating_add(length)) else { return };
        match kind {
            PADDING => {}
            LONG => on_event(at_ns, &event[4..]),
            _ => on_event(at_ns, event),
        }
        at += length;
    }
}

/// A number of so many bytes, in the order of this machine: the kernel's is the same.
pub(super) fn number(bytes: &[u8], at: usize, length: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(length)?)?;
    Some(match length {
        1 => u64::from(bytes[0]),
        2 => u64::from(u16::from_ne_bytes(bytes.try_into().ok()?)),
        4 => u64::from(u32::from_ne_bytes(bytes.try_into().ok()?)),
        8 => u64::from_ne_bytes(bytes.try_into().ok()?),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const LAYOUT: PageLayout = PageLayout { length_at: 8, length_bytes: 8, events_at: 16 };

    fn page(words: &[u32]) -> Vec<u8> {
        let mut page = 1_000_u64.to_ne_bytes().to_vec();
        // A mark of lost events must not count as length.
        page.extend(((words.len() as u64 * 4) | (1 << 31)).to_ne_bytes());
        page.extend(words.iter().flat_map(|word| word.to_ne_bytes()));
        page.resize(4_096, 0xee);
        page
    }

    fn found(page: &[u8]) -> Vec<(u64, Vec<u8>)> {
        let mut found = Vec::new();
        events(page, LAYOUT, |at_ns, event| found.push((at_ns, event.to_vec())));
        found
    }

    #[test]
    fn events_of_all_forms_have_their_time_and_bytes() {
        let short = [2 | 5 << 5, 0x0101_0101, 0x0202_0202];
        let extend = [TIME_EXTEND | 7 << 5, 1];
        let long = [LONG | 3 << 5, 8, 0x0303_0303];
        let discarded = [PADDING | 2 << 5, 8, 0x0404_0404];
        let stamp = [TIME_STAMP | 9 << 5, 2];
        let last = [1 | 1 << 5, 0x0505_0505];
        let page = page(&[&short[..], &extend, &long, &discarded, &stamp, &last].concat());
        let extended = 1_005 + (1 << TIME_BITS) + 7 + 3;
        let stamped = (2 << TIME_BITS) + 9 + 1;
        let expected =
            vec![(1_005, vec![1, 1, 1, 1, 2, 2, 2, 2]), (extended, vec![3, 3, 3, 3]), (stamped, vec![5, 5, 5, 5])];
        assert_eq!(found(&page), expected);
    }

    #[test]
    fn the_rest_of_a_page_is_padding() {
        let page = page(&[1 | 1 << 5, 0x0101_0101, PADDING, 0, 0]);
        assert_eq!(found(&page), [(1_001, vec![1, 1, 1, 1])]);
    }

    proptest! {
        #[test]
        fn any_bytes_end(bytes in proptest::collection::vec(any::<u8>(), 0..600)) {
            let mut calls = 0;
            events(&bytes, LAYOUT, |_, _| calls += 1);
            prop_assert!(calls <= bytes.len() / 4);
        }
    }
}
