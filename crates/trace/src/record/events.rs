//! What the kernel's block tracepoints say, by the places of their fields that the kernel itself names.

use super::ring::{PageLayout, number};
use crate::readers::numbers;
use model::trace::TraceKind;

/// The unit in which the block layer counts, whatever the device's own is.
pub(super) const SECTOR_BYTES: u64 = numbers::SECTOR;

/// A field of an event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Field {
    pub(super) at: usize,
    pub(super) bytes: usize,
}

impl Field {
    /// Its value in an event, without a sign.
    pub(super) fn value(self, event: &[u8]) -> Option<u64> {
        number(event, self.at, self.bytes)
    }
}

/// Where an event has what is used of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct EventLayout {
    /// The number by which the ring buffer names it.
    id: u64,
    pid: Field,
    device: Field,
    sector: Field,
    sectors: Field,
    does: Field,
}

/// A request as an event names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Seen {
    /// Its device, as the kernel numbers it inside.
    pub(super) device: u64,
    /// Thread that the event happened on.
    pub(super) pid: u32,
    pub(super) sector: u64,
    pub(super) sectors: u64,
    /// What it does; absent for what is neither read nor written, such as a reset of a zone.
    pub(super) does: Option<Does>,
}

/// What a request does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Does {
    pub(super) kind: TraceKind,
    pub(super) is_fua: bool,
    /// Whether the device is to flush before it: what is built on others passes that on.
    pub(super) is_preflush: bool,
}

/// The numbers that a text of the kernel gives a field, as `offset:8` and `size:4`.
pub(super) fn field(text: &str, name: &str) -> Option<Field> {
    let line = text.lines().map(str::trim).find(|line| {
        let declared = line.strip_prefix("field:").and_then(|line| line.split(';').next());
        let last = declared.and_then(|declared| declared.split_ascii_whitespace().next_back());
        last.is_some_and(|last| last.split('[').next() == Some(name))
    })?;
    let value = |key: &str| {
        let part = line.split(';').find_map(|part| part.trim().strip_prefix(key))?;
        part.parse().ok()
    };
    Some(Field { at: value("offset:")?, bytes: value("size:")? })
}

/// The number by which the ring buffer names an event, from the text of its `format`.
pub(super) fn id(text: &str) -> Option<u64> {
    text.lines().find_map(|line| line.strip_prefix("ID:"))?.trim().parse().ok()
}

impl EventLayout {
    /// From the text of `events/block/NAME/format`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let id = id(text)?;
        let fields = [field(text, "common_pid")?, field(text, "dev")?, field(text, "sector")?];
        let [pid, device, sector] = fields;
        Some(Self { id, pid, device, sector, sectors: field(text, "nr_sector")?, does: field(text, "rwbs")? })
    }

    /// What an event says, if it is one of these.
    pub(super) fn read(&self, event: &[u8]) -> Option<Seen> {
        if number(event, 0, 2)? != self.id {
            return None;
        }
        let value = |field: Field| number(event, field.at, field.bytes);
        let does = event.get(self.does.at..self.does.at.checked_add(self.does.bytes)?)?;
        let sectors = value(self.sectors)?;
        Some(Seen {
            device: value(self.device)?,
            pid: value(self.pid)? as u32,
            sector: value(self.sector)?,
            sectors,
            does: does_what(does, sectors),
        })
    }
}

/// What letters of the block layer say of a request of so many sectors, with a flush before it told apart.
fn does_what(letters: &[u8], sectors: u64) -> Option<Does> {
    let end = letters.iter().position(|letter| *letter == 0).unwrap_or(letters.len());
    let (kind, is_fua) = numbers::letters(&letters[..end], sectors.saturating_mul(SECTOR_BYTES))??;
    let is_preflush = kind != TraceKind::Flush && letters.first() == Some(&b'F');
    Some(Does { kind, is_fua: is_fua && kind == TraceKind::Write, is_preflush })
}

impl PageLayout {
    /// From the text of `events/header_page`.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let (length, data) = (field(text, "commit")?, field(text, "data")?);
        Some(Self { length_at: length.at, length_bytes: length.bytes, events_at: data.at })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "name: block_rq_issue\nID: 2104\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\nprint fmt: \"%d\", REC->dev\n";

    #[test]
    fn an_event_is_read_by_the_places_that_the_kernel_names() {
        let layout = EventLayout::parse(FORMAT).unwrap();
        let mut event = vec![0; 44];
        event[..2].copy_from_slice(&2104_u16.to_ne_bytes());
        event[4..8].copy_from_slice(&77_u32.to_ne_bytes());
        event[8..12].copy_from_slice(&(254_u32 << 20).to_ne_bytes());
        event[16..24].copy_from_slice(&4_096_u64.to_ne_bytes());
        event[24..28].copy_from_slice(&16_u32.to_ne_bytes());
        event[34..37].copy_from_slice(b"WFS");
        let does = Some(Does { kind: TraceKind::Write, is_fua: true, is_preflush: false });
        assert_eq!(layout.read(&event), Some(Seen { device: 254 << 20, pid: 77, sector: 4_096, sectors: 16, does }));
        assert_eq!(layout.read(&event[..40]), None, "an event that is not whole");
        event[..2].copy_from_slice(&2105_u16.to_ne_bytes());
        assert_eq!(layout.read(&event), None, "an event of another kind");
        assert_eq!(EventLayout::parse("ID: 5\n"), None);
    }

    #[test]
    fn letters_say_what_a_request_does() {
        let does = |letters: &str, sectors| {
            does_what(letters.as_bytes(), sectors).map(|does| (does.kind, does.is_fua, does.is_preflush))
        };
        assert_eq!(does("R", 8), Some((TraceKind::Read, false, false)));
        assert_eq!(does("RAM\0junk", 8), Some((TraceKind::Read, false, false)));
        assert_eq!(does("WS", 8), Some((TraceKind::Write, false, false)));
        assert_eq!(does("FWFS", 8), Some((TraceKind::Write, true, true)));
        // What an fsync is on LVM and MD, and on a disk.
        assert_eq!(does("FWS", 0), Some((TraceKind::Flush, false, false)));
        assert_eq!(does("FF", 0), Some((TraceKind::Flush, false, false)));
        assert_eq!(does("DE", 8), Some((TraceKind::Discard, false, false)));
        assert_eq!(does("N", 8), None);
        assert_eq!(does("", 8), None);
    }

    #[test]
    fn a_page_is_read_by_the_places_that_the_kernel_names() {
        let text = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
            \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
            \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
            \tfield: char data;\toffset:16;\tsize:4080;\tsigned:0;\n";
        let expected = PageLayout { length_at: 8, length_bytes: 8, events_at: 16 };
        assert_eq!(PageLayout::parse(text), Some(expected));
    }
}
