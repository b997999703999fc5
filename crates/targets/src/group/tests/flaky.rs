//! A member that fails when a test wants it to.

use std::any::Any;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::io::{
    Arena, Completion, Direction, Durability, EventFd, Patience, Request, StorageFile, VirtualFile, VirtualQueue, Waker,
};

/// A file that fails at will.
#[derive(Debug)]
pub struct Flaky {
    file: StorageFile,
    pub fail_writes: AtomicBool,
    /// Whether its queues can send nothing any more.
    pub is_gone: Arc<AtomicBool>,
    /// What whoever asks how the file is gets to hear, instead of an answer.
    pub asked: Mutex<Option<fn() -> io::Error>>,
    /// Offsets whose reads fail, until they are written.
    pub bad: Mutex<Vec<Range<u64>>>,
    pub reads: AtomicU64,
    pub written_bytes: AtomicU64,
}

impl Flaky {
    pub fn new(path: &Path) -> Arc<Self> {
        Arc::new(Self {
            file: StorageFile::open(path, Durability::OnSync).unwrap(),
            fail_writes: AtomicBool::new(false),
            is_gone: Arc::default(),
            asked: Mutex::default(),
            bad: Mutex::default(),
            reads: AtomicU64::new(0),
            written_bytes: AtomicU64::new(0),
        })
    }

    pub fn as_storage(self: &Arc<Self>) -> Arc<StorageFile> {
        let file: Arc<dyn VirtualFile> = Arc::clone(self) as Arc<dyn VirtualFile>;
        Arc::new(StorageFile::virtual_at(PathBuf::from("flaky"), file))
    }

    fn overlaps(range: &Range<u64>, offset: u64, bytes: usize) -> bool {
        range.start < offset + bytes as u64 && offset < range.end
    }
}

impl VirtualFile for Flaky {
    fn protocol(&self) -> &'static str {
        "flaky"
    }

    fn length(&self) -> io::Result<u64> {
        self.file.length()
    }

    fn is_linked(&self) -> io::Result<bool> {
        self.asked.lock().unwrap().map_or_else(|| self.file.is_linked(), |error| Err(error()))
    }

    fn unit_bytes(&self) -> u32 {
        512
    }

    fn sync(&self) -> io::Result<()> {
        if self.fail_writes.load(Ordering::Relaxed) { Err(io::Error::from_raw_os_error(libc::EIO)) } else { Ok(()) }
    }

    fn read_exact_at(&self, buffer: &mut [u8], offset: u64) -> io::Result<()> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        if self.bad.lock().unwrap().iter().any(|bad| Self::overlaps(bad, offset, buffer.len())) {
            return Err(io::Error::from_raw_os_error(libc::EIO));
        }
        self.file.read_exact_at(buffer, offset)
    }

    fn write_all_at(&self, buffer: &[u8], offset: u64) -> io::Result<()> {
        self.sync()?;
        self.written_bytes.fetch_add(buffer.len() as u64, Ordering::Relaxed);
        self.bad.lock().unwrap().retain(|bad| !(offset <= bad.start && bad.end <= offset + buffer.len() as u64));
        self.file.write_all_at(buffer, offset)
    }

    fn open_queue(
        &self,
        files: &[Arc<dyn VirtualFile>],
        arena: Arc<Arena>,
        _depth: u32,
    ) -> io::Result<Box<dyn VirtualQueue>> {
        let event = Arc::new(EventFd::new()?);
        let any = files.iter().filter_map(|file| (file.as_ref() as &dyn Any).downcast_ref::<Self>());
        let gone = any.map(|file| Arc::clone(&file.is_gone)).collect();
        Ok(Box::new(FlakyQueue { files: files.to_vec(), gone, arena, event, pushed: Vec::new() }))
    }
}

/// Requests that are served when somebody waits.
struct FlakyQueue {
    files: Vec<Arc<dyn VirtualFile>>,
    gone: Vec<Arc<AtomicBool>>,
    arena: Arc<Arena>,
    event: Arc<EventFd>,
    pushed: Vec<Request>,
}

impl FlakyQueue {
    fn serve(&self, request: &Request) -> io::Result<u32> {
        let file = &self.files[request.file as usize];
        let mut memory = super::super::buffer::Buffer::new(request.bytes as usize);
        let memory = &mut memory[..request.bytes as usize];
        match request.direction {
            Direction::Read => {
                file.read_exact_at(memory, request.file_offset)?;
                self.arena.store_bytes(request.arena_offset, memory);
            }
            Direction::Write => {
                for (word, bytes) in memory.chunks_exact_mut(8).enumerate() {
                    bytes.copy_from_slice(&self.arena.load(request.arena_offset + word as u64 * 8).to_le_bytes());
                }
                file.write_all_at(memory, request.file_offset)?;
            }
            Direction::Sync => file.sync()?,
            Direction::Discard => return Err(io::ErrorKind::Unsupported.into()),
            Direction::Nothing => {}
        }
        Ok(request.bytes)
    }
}

impl VirtualQueue for FlakyQueue {
    fn push(&mut self, request: Request) -> io::Result<()> {
        self.pushed.push(request);
        Ok(())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn wait(&mut self, _patience: Patience, done: &mut Vec<Completion>) -> io::Result<()> {
        if self.gone.iter().any(|gone| gone.load(Ordering::Relaxed)) {
            return Err(io::Error::other("no path to the server answers"));
        }
        for request in std::mem::take(&mut self.pushed) {
            done.push(Completion::new(request.token, self.serve(&request)));
        }
        Ok(())
    }

    fn in_flight(&self) -> u32 {
        self.pushed.len() as u32
    }

    fn waker(&self) -> Waker {
        Arc::clone(&self.event).into()
    }
}
