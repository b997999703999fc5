//! Numbers and fields of a line, and what a request may be.

use model::trace::{TraceKind, TraceRequest};

/// Bytes of a sector, in every format that counts in sectors.
pub(crate) const SECTOR: u64 = 512;

/// The longest read or write: the kernel and the known traces count its bytes in 32 bits.
const MAX_TRANSFER: u64 = u32::MAX as u64;

/// The largest offset, time and discard: arithmetic on two of them cannot overflow.
const MAX: u64 = i64::MAX as u64;

/// The longest latency: a kernel gives up on a request long before.
const MAX_LATENCY_NS: u64 = 86_400_000_000_000;

/// A number of digits only.
pub(super) fn whole(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let mut value = 0_u64;
    for byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// A number with an optional fraction, times ten to the power of `digits`; further digits are cut off.
pub(super) fn decimal(text: &[u8], digits: u32) -> Option<u64> {
    let scale = 10_u64.checked_pow(digits)?;
    let Some(point) = text.iter().position(|byte| *byte == b'.') else {
        return whole(text)?.checked_mul(scale);
    };
    let (before, after) = (text.get(..point)?, text.get(point + 1..)?);
    if !after.iter().all(u8::is_ascii_digit) {
        return None;
    }
    let kept = after.get(..after.len().min(digits as usize))?;
    let fraction = if kept.is_empty() { 0 } else { whole(kept)? };
    let fraction = fraction.checked_mul(10_u64.checked_pow(digits - u32::try_from(kept.len()).ok()?)?)?;
    whole(before)?.checked_mul(scale)?.checked_add(fraction)
}

/// The fields of a line of `N` fields with commas between them.
pub(super) fn fields<const N: usize>(line: &[u8]) -> Option<[&[u8]; N]> {
    let mut fields: [&[u8]; N] = [&[]; N];
    let mut split = line.split(|byte| *byte == b',');
    for field in &mut fields {
        *field = split.next()?;
    }
    split.next().is_none().then_some(fields)
}

/// The words of a line.
pub(super) fn words(line: &[u8]) -> impl Iterator<Item = &[u8]> {
    line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty())
}

/// Where a request is, if a device can have it: zero bytes are a place only of a flush.
pub(super) fn placed(kind: TraceKind, offset: u64, bytes: u64) -> Option<(u64, u64)> {
    match kind {
        TraceKind::Flush => Some((0, 0)),
        _ if bytes == 0 => None,
        TraceKind::Read | TraceKind::Write if bytes > MAX_TRANSFER => None,
        _ => (offset.checked_add(bytes)? <= MAX).then_some((offset, bytes)),
    }
}

/// A request of which every number is possible. Its time is that of the file.
pub(crate) fn request(
    at_ns: u64,
    device: u16,
    kind: TraceKind,
    (offset, bytes): (u64, u64),
    latency_ns: Option<u64>,
) -> Option<TraceRequest> {
    let (offset_bytes, bytes) = placed(kind, offset, bytes)?;
    if at_ns > MAX || latency_ns.is_some_and(|latency| latency > MAX_LATENCY_NS) {
        return None;
    }
    Some(TraceRequest { at_ns, device, kind, is_fua: false, offset_bytes, bytes, latency_ns })
}

/// What the letters of a request say that blkparse and biosnoop print: whether it is a request at all, its kind and FUA.
///
/// An `F` before the operation means a flush before it, one after it FUA (blktrace: `fill_rwbs` of `blkparse_fmt.c`; bcc:
/// `blk_fill_rwbs` of `libbpf-tools/biosnoop.c`). The outer absence means letters that are not known.
pub(crate) fn letters(text: &[u8], bytes: u64) -> Option<Option<(TraceKind, bool)>> {
    if text.is_empty() || text.len() > 8 || !text.iter().all(u8::is_ascii_uppercase) {
        return None;
    }
    let (flushes, rest) = text.strip_prefix(b"F").map_or((false, text), |rest| (true, rest));
    let is_fua = rest.get(1..).is_some_and(|modifiers| modifiers.contains(&b'F'));
    let kind = match rest.first() {
        Some(b'D') => (bytes > 0).then_some(TraceKind::Discard),
        Some(b'W' | b'R' | b'N') if flushes && bytes == 0 => Some(TraceKind::Flush),
        Some(b'W') => (bytes > 0).then_some(TraceKind::Write),
        Some(b'R') => (bytes > 0).then_some(TraceKind::Read),
        Some(b'N') => None,
        _ if flushes => return Some(Some((TraceKind::Flush, false))),
        _ => return None,
    };
    Some(kind.map(|kind| (kind, is_fua)))
}
