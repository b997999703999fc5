//! Which processor a thread runs on.

use std::io;

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};

/// Keeps the calling thread on one processor from now on.
///
/// # Errors
/// When the processor is offline, or not allowed to this process.
pub(super) fn pin(processor: u32) -> io::Result<()> {
    let number = usize::try_from(processor).ok().filter(|number| *number < CpuSet::MAX_CPU);
    let mut one = CpuSet::new();
    one.set(number.ok_or(io::ErrorKind::InvalidInput)?);
    Ok(sched_setaffinity(None, &one)?)
}

/// Processors that this process may run on, in rising order.
///
/// # Errors
/// When the kernel does not say, which it does on machines of up to 1,024 processors.
pub fn allowed_processors() -> io::Result<Vec<u32>> {
    let allowed = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU as u32).filter(|number| allowed.is_set(*number as usize)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_stays_where_it_is_put_and_a_processor_that_is_not_there_is_refused() {
        let allowed = allowed_processors().unwrap();
        let last = *allowed.last().unwrap();
        std::thread::spawn(move || {
            pin(last).unwrap();
            assert_eq!(rustix::thread::sched_getcpu() as u32, last);
            assert_eq!(allowed_processors().unwrap(), [last]);
            assert!(pin(1_023).is_err() || last == 1_023);
            assert!(pin(u32::MAX).is_err());
        })
        .join()
        .unwrap();
    }
}
