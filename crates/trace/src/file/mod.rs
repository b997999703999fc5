//! The file of a trace: a Parquet table with a row for each request, compressed with Zstandard.
//!
//! | column | type | |
//! | --- | --- | --- |
//! | `at_ns` | INT64 | issue, nanoseconds after the beginning; never falls |
//! | `device` | INT32 | place in the list of devices |
//! | `kind` | STRING | `read`, `write`, `flush`, `discard` |
//! | `fua` | BOOLEAN | acknowledged only when on the medium |
//! | `offset_bytes` | INT64 | |
//! | `bytes` | INT64 | |
//! | `latency_ns` | INT64, optional | to within 1 in 128 |
//!
//! The metadata `plimsoll.trace` is the version of this form, `header`, `end` and `summary` are JSON.
//!
//! Parquet has its table of contents at the end, so a file that was cut off could not be read. The writer therefore adds a whole table
//! of contents from time to time. Readers skip it, and [`TraceFile`] takes the last whole one of a file that was cut off.

mod read;
mod write;

pub use read::TraceFile;
pub use write::TraceWriter;

use std::io;

use parquet::errors::ParquetError;

const MESSAGE: &str = concat!(
    "message trace {",
    " REQUIRED INT64 at_ns; REQUIRED INT32 device;",
    " REQUIRED BYTE_ARRAY kind (STRING); REQUIRED BOOLEAN fua;",
    " REQUIRED INT64 offset_bytes; REQUIRED INT64 bytes;",
    " OPTIONAL INT64 latency_ns;",
    " }"
);
/// Names of the columns in their order.
const COLUMNS: [&str; 7] = ["at_ns", "device", "kind", "fua", "offset_bytes", "bytes", "latency_ns"];

const VERSION_KEY: &str = "plimsoll.trace";
const VERSION: &str = "1";
const HEADER_KEY: &str = "header";
const END_KEY: &str = "end";
const SUMMARY_KEY: &str = "summary";

/// Bits of a latency that are kept: a histogram resolves no more, and the rest would be a third of the file.
const LATENCY_BITS: u32 = 7;

/// A latency to as many bits as are kept, rounded to the nearest.
fn rounded(latency_ns: u64) -> u64 {
    let drop = (u64::BITS - latency_ns.leading_zeros()).saturating_sub(LATENCY_BITS);
    match drop {
        0 => latency_ns,
        drop => (latency_ns.saturating_add(1 << (drop - 1)) >> drop) << drop,
    }
}

fn failed(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(source) => match source.downcast::<io::Error>() {
            Ok(error) => *error,
            Err(source) => io::Error::other(source),
        },
        error => io::Error::other(error),
    }
}

#[cfg(test)]
mod tests;
