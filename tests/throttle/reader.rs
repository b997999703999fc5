//! Somebody else on the disk, who comes and goes.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plimsoll::workload::Rng;

/// Requests outstanding, each of a thread, and their size.
const DEPTH: u64 = 64;
const BYTES: usize = 32_768;
const FILE_BYTES: u64 = 256 << 20;

/// Reads at random places past the page cache, for one to three seconds at a time and a fifth of the time, until it is
/// dropped. It is in no control group.
pub struct Reader {
    ends: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

/// What all threads agree on: when the reader is there, in seconds from its start.
fn visits(seed: u64) -> impl FnMut(f64) -> bool {
    let mut rng = Rng::new(seed, 0);
    let mut length = move || 1.0 + 2.0 * rng.unit_f64();
    let mut visit = length();
    // The first pause is cut short at random.
    let mut begins = 4.0 * visit * (seed % 7) as f64 / 7.0;
    move |now| {
        while now >= begins + visit {
            begins += 5.0 * visit;
            visit = length();
        }
        now >= begins
    }
}

impl Reader {
    /// Lays out a file and begins.
    pub fn start(directory: &Path, seed: u64) -> Self {
        let path = directory.join("others");
        if !path.exists() {
            lay_out(&path);
        }
        let (ends, from) = (Arc::new(AtomicBool::new(false)), Instant::now());
        let thread = |number: u64| {
            let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECT).open(&path).unwrap();
            let (ends, mut is_there, mut rng) = (Arc::clone(&ends), visits(seed), Rng::new(seed, 1 + number));
            std::thread::spawn(move || {
                let mut memory = vec![0; 2 * BYTES];
                let at = memory.as_ptr().align_offset(4_096);
                while !ends.load(Ordering::Relaxed) {
                    if is_there(from.elapsed().as_secs_f64()) {
                        let place = rng.below(FILE_BYTES / BYTES as u64) * BYTES as u64;
                        file.read_exact_at(&mut memory[at..at + BYTES], place).unwrap();
                    } else {
                        std::thread::sleep(Duration::from_millis(20));
                    }
                }
            })
        };
        let threads = (0..DEPTH).map(thread).collect();
        Self { ends, threads }
    }
}

fn lay_out(path: &Path) {
    let mut file = File::create(path).unwrap();
    let mut rng = Rng::new(1, 1);
    for _ in 0..FILE_BYTES >> 20 {
        let block: Vec<u8> = (0..1 << 17).flat_map(|_| rng.below(u64::MAX).to_ne_bytes()).collect();
        file.write_all(&block).unwrap();
    }
    file.sync_all().unwrap();
}

impl Drop for Reader {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}
