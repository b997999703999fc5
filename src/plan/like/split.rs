//! Reads of one size in the mean, as reads of two.

use crate::plan::check::SCAN_REQUEST;

/// Reads of up to so many times a block are reads of one.
const ABOUT_A_BLOCK: f64 = 1.25;

/// Reads of one block per second, and bytes per second of large ones of [`SCAN_REQUEST`], that together are as many requests and as
/// many bytes as a database reads. Reads that are hardly larger than a block are all of one.
pub fn split(reads: Option<f64>, bytes: Option<f64>, block_bytes: u32) -> (Option<f64>, Option<f64>) {
    let (Some(all), Some(bytes)) = (reads, bytes) else { return (reads, None) };
    let (block, large) = (f64::from(block_bytes), SCAN_REQUEST.0 as f64);
    if bytes <= ABOUT_A_BLOCK * all * block || block >= large {
        return (reads, None);
    }
    let scans = ((bytes - all * block) / (large - block)).min(all);
    (Some(all - scans), Some((bytes - (all - scans) * block).round()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_and_their_bytes_are_split_into_single_blocks_and_a_scan() {
        assert_eq!(split(Some(8_000.0), None, 8_192), (Some(8_000.0), None), "sizes are not known");
        assert_eq!(split(Some(1_000.0), Some(8.3e6), 8_192), (Some(1_000.0), None), "single blocks");
        let (reads, scan) = split(Some(8_047.0), Some(525e6), 8_192);
        let (reads, scan) = (reads.unwrap(), scan.unwrap());
        assert!((reads * 8_192.0 + scan - 525e6).abs() < 1.0, "{reads} reads/s, {scan} B/s");
        assert!((reads + scan / 1_048_576.0 - 8_047.0).abs() < 0.01);
        let (reads, scan) = split(Some(100.0), Some(400e6), 8_192);
        assert_eq!((reads, scan), (Some(0.0), Some(400e6)), "larger requests than those of a scan");
    }
}
