//! Which events of the kernel tell of a process's own file I/O, and what each says.

use super::super::events::{Field, field, id};
use super::super::ring::number;

/// What a system call is to a recording.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Call {
    /// It reads where it says.
    ReadAt,
    /// It reads at the position of the file.
    Read,
    /// It writes where it says.
    WriteAt,
    /// It writes at the position of the file.
    Write,
    /// It makes a file durable.
    Flush,
    /// It gives a range back, or does something else to the space of a file.
    Allocate,
    /// It moves the position of a file.
    Seek,
    /// It closes a descriptor.
    Close,
    /// It closes several.
    CloseRange,
    /// It opens a file, and returns its descriptor.
    Open,
    /// It returns a further descriptor of a file.
    Duplicate,
    /// It hands requests to the kernel in a form that is not followed; returns how many.
    Submit,
    /// It may begin a thread that submits for its process.
    RingSetup,
    /// It moves data, or makes data durable, and is only counted: its place in [`COUNTED`].
    Counted(u8),
}

/// Calls that move data or make data durable, and are only counted.
pub(super) const COUNTED: [&str; 8] =
    ["sync_file_range", "sync", "syncfs", "msync", "copy_file_range", "sendfile64", "splice", "fallocate"];
/// The place of `fallocate` there, whose other uses than to punch holes are counted.
pub(super) const ALLOCATES: u8 = 7;

/// Both the begin and the end of these are followed.
const FOLLOWED: &[(&str, Call)] = &[
    ("pread64", Call::ReadAt),
    ("pwrite64", Call::WriteAt),
    ("preadv", Call::ReadAt),
    ("pwritev", Call::WriteAt),
    ("preadv2", Call::ReadAt),
    ("pwritev2", Call::WriteAt),
    ("read", Call::Read),
    ("write", Call::Write),
    ("readv", Call::Read),
    ("writev", Call::Write),
    ("fsync", Call::Flush),
    ("fdatasync", Call::Flush),
    ("fallocate", Call::Allocate),
    ("lseek", Call::Seek),
];
/// A descriptor may be given out again before its close has returned.
const BEGUN: &[(&str, Call)] = &[
    ("close", Call::Close),
    ("close_range", Call::CloseRange),
    // Which descriptor they duplicate.
    ("dup", Call::Duplicate),
    ("dup2", Call::Duplicate),
    ("dup3", Call::Duplicate),
];
const RETURNED: &[(&str, Call)] = &[
    ("open", Call::Open),
    ("creat", Call::Open),
    ("openat", Call::Open),
    ("openat2", Call::Open),
    ("dup", Call::Duplicate),
    ("dup2", Call::Duplicate),
    ("dup3", Call::Duplicate),
    ("io_submit", Call::Submit),
    ("io_uring_setup", Call::RingSetup),
];

/// Arguments of a call that are used.
pub(super) const ARGUMENTS: usize = 6;

/// What an event tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A call begins, with its arguments.
    Enter(Call, [u64; ARGUMENTS]),
    /// A call ends, with what it returns.
    Exit(Call, i64),
    /// A thread or process begins.
    Begun { task: u32, is_thread: bool },
    /// The thread ends.
    Ended,
    /// The process begins another program.
    Executed,
    /// A request is handed to io_uring.
    Ring,
}

/// An event, as it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Told {
    /// The thread that it happened on.
    pub(super) task: u32,
    pub(super) what: What,
}

/// An event that is recorded where the kernel has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Wanted {
    group: &'static str,
    begin: &'static str,
    end: &'static str,
    form: Form,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Enter(Call),
    Exit(Call),
    Begun,
    Ended,
    Executed,
    Ring,
}

impl Wanted {
    /// Where it is below `events/`.
    pub(super) fn place(self) -> String {
        format!("{}/{}{}", self.group, self.begin, self.end)
    }
}

/// All events that are recorded.
pub(super) fn wanted() -> Vec<Wanted> {
    let enter = |&(end, call): &(&'static str, Call)| Wanted {
        group: "syscalls",
        begin: "sys_enter_",
        end,
        form: Form::Enter(call),
    };
    let exit = |&(end, call): &(&'static str, Call)| Wanted {
        group: "syscalls",
        begin: "sys_exit_",
        end,
        form: Form::Exit(call),
    };
    let counted: Vec<(&str, Call)> =
        (0..ALLOCATES).zip(COUNTED).map(|(place, name)| (name, Call::Counted(place))).collect();
    let mut all: Vec<Wanted> = FOLLOWED.iter().chain(BEGUN).map(enter).collect();
    all.extend(FOLLOWED.iter().chain(RETURNED).chain(&counted).map(exit));
    let other = |group, end, form| Wanted { group, begin: "", end, form };
    all.push(other("task", "task_newtask", Form::Begun));
    all.push(other("sched", "sched_process_exit", Form::Ended));
    all.push(other("sched", "sched_process_exec", Form::Executed));
    // It has the second name since 6.0.
    all.push(other("io_uring", "io_uring_submit_sqe", Form::Ring));
    all.push(other("io_uring", "io_uring_submit_req", Form::Ring));
    all
}

/// Where an event has what is used of it.
#[derive(Debug, Clone)]
struct Layout {
    form: Form,
    task: Field,
    fields: Vec<Field>,
}

/// The events that are recorded, by their numbers.
#[derive(Debug, Default)]
pub(super) struct Layouts {
    by_id: Vec<Option<Box<Layout>>>,
}

/// `CLONE_THREAD` of the kernel.
const IS_THREAD: u64 = 0x1_0000;

impl Layouts {
    /// Adds an event by the text of its `format`; absent where the text is of another form.
    pub(super) fn add(&mut self, wanted: Wanted, text: &str) -> Option<()> {
        let place = usize::from(u16::try_from(id(text)?).ok()?);
        let fields = match wanted.form {
            Form::Enter(_) => arguments(text),
            Form::Exit(_) => vec![field(text, "ret")?],
            Form::Begun => vec![field(text, "pid")?, field(text, "clone_flags")?],
            Form::Ended | Form::Executed => Vec::new(),
            Form::Ring => vec![field(text, "opcode")?],
        };
        if fields.is_empty() && matches!(wanted.form, Form::Enter(_)) {
            return None;
        }
        if self.by_id.len() <= place {
            self.by_id.resize_with(place + 1, || None);
        }
        self.by_id[place] = Some(Box::new(Layout { form: wanted.form, task: field(text, "common_pid")?, fields }));
        Some(())
    }

    /// What an event tells, if it is one of these and whole.
    pub(super) fn read(&self, event: &[u8]) -> Option<Told> {
        let layout = self.by_id.get(number(event, 0, 2)? as usize)?.as_ref()?;
        let value = |place: usize| layout.fields.get(place)?.value(event);
        let what = match layout.form {
            Form::Enter(call) => {
                let mut arguments = [0; ARGUMENTS];
                for (argument, field) in arguments.iter_mut().zip(&layout.fields) {
                    *argument = field.value(event)?;
                }
                What::Enter(call, arguments)
            }
            Form::Exit(call) => What::Exit(call, signed(value(0)?, layout.fields[0].bytes)),
            Form::Begun => What::Begun { task: value(0)? as u32, is_thread: value(1)? & IS_THREAD != 0 },
            Form::Ended => What::Ended,
            Form::Executed => What::Executed,
            Form::Ring if is_of_file(value(0)?) => What::Ring,
            Form::Ring => return None,
        };
        Some(Told { task: layout.task.value(event)? as u32, what })
    }
}

/// A number with its sign: on a machine of 32 bits a word has half as many.
fn signed(value: u64, bytes: usize) -> i64 {
    if bytes == 4 { i64::from(value as u32 as i32) } else { value as i64 }
}

/// The arguments of a call: the fields after its number, in their order.
fn arguments(text: &str) -> Vec<Field> {
    let names = text.lines().filter_map(|line| {
        let declared = line.trim().strip_prefix("field:")?.split(';').next()?;
        declared.split_ascii_whitespace().next_back()
    });
    let after = names.skip_while(|name| *name != "__syscall_nr").skip(1);
    after.take(ARGUMENTS).map_while(|name| field(text, name)).collect()
}

/// Whether a request of io_uring reads, writes or flushes, by its number (`io_uring_op`, include/uapi/linux/io_uring.h of the kernel).
fn is_of_file(opcode: u64) -> bool {
    matches!(opcode, 1..=5 | 8 | 17 | 22 | 23 | 49 | 58 | 59)
}

#[cfg(test)]
mod tests {
    use super::super::super::ring::{PageLayout, events};
    use super::*;

    fn format(id: u16, fields: &str) -> String {
        format!(
            "name: x\nID: {id}\nformat:\n\tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
             \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n{fields}\nprint fmt: \"x\", REC->ret\n"
        )
    }

    fn of(place: &str) -> Wanted {
        wanted().into_iter().find(|wanted| wanted.place() == place).unwrap()
    }

    fn layouts() -> Layouts {
        let call = "\tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n";
        let word = |name: &str, at: usize| format!("\tfield:{name};\toffset:{at};\tsize:8;\tsigned:0;\n");
        let words = ["unsigned int fd", "char * buf", "size_t count", "loff_t pos"];
        let words: String = words.iter().zip([16, 24, 32, 40]).map(|(name, at)| word(name, at)).collect();
        let task = "\tfield:pid_t pid;\toffset:8;\tsize:4;\tsigned:1;\n\
                    \tfield:char comm[16];\toffset:12;\tsize:16;\tsigned:0;\n\
                    \tfield:unsigned long clone_flags;\toffset:32;\tsize:8;\tsigned:0;\n";
        let ring = "\tfield:u8 opcode;\toffset:32;\tsize:1;\tsigned:0;\n";
        let mut layouts = Layouts::default();
        for (place, text) in [
            ("syscalls/sys_enter_pread64", format(838, &format!("{call}{words}"))),
            ("syscalls/sys_exit_pread64", format(837, &format!("{call}{}", word("long ret", 16)))),
            ("task/task_newtask", format(90, task)),
            ("io_uring/io_uring_submit_req", format(91, ring)),
        ] {
            assert_eq!(layouts.add(of(place), &text), Some(()), "{place}");
        }
        layouts
    }

    /// An event as the ring buffer has it: its head, then its bytes.
    fn event(id: u16, task: u32, words: &[(usize, u64)]) -> Vec<u8> {
        let mut event = vec![0; 48];
        event[..2].copy_from_slice(&id.to_ne_bytes());
        event[4..8].copy_from_slice(&task.to_ne_bytes());
        for (at, word) in words {
            event[*at..at + 8].copy_from_slice(&word.to_ne_bytes());
        }
        [&(12_u32 | 10 << 5).to_ne_bytes()[..], &event].concat()
    }

    #[test]
    fn a_page_of_calls_is_read_by_the_places_that_the_kernel_names() {
        let body = [
            event(838, 70, &[(16, 5), (24, 99), (32, 8_192), (40, 4_096)]),
            event(837, 70, &[(16, (-5_i64) as u64)]),
            event(90, 70, &[(8, 71), (32, IS_THREAD | 0xff)]),
            event(91, 70, &[(32, 22)]),
            // A poll is not I/O of a file, and an event of another number is not one of these.
            event(91, 70, &[(32, 6)]),
            event(92, 70, &[]),
        ]
        .concat();
        let mut page = 1_000_u64.to_ne_bytes().to_vec();
        page.extend((body.len() as u64).to_ne_bytes());
        page.extend(&body);
        page.resize(4_096, 0);
        let (layouts, mut told) = (layouts(), Vec::new());
        let layout = PageLayout { length_at: 8, length_bytes: 8, events_at: 16 };
        events(&page, layout, |at_ns, bytes| told.extend(layouts.read(bytes).map(|one| (at_ns, one.task, one.what))));
        let expected = [
            (1_010, 70, What::Enter(Call::ReadAt, [5, 99, 8_192, 4_096, 0, 0])),
            (1_020, 70, What::Exit(Call::ReadAt, -5)),
            (1_030, 70, What::Begun { task: 71, is_thread: true }),
            (1_040, 70, What::Ring),
        ];
        assert_eq!(told, expected);
        let cut = &event(838, 70, &[])[4..40];
        assert_eq!(layouts.read(cut), None, "an event that is not whole");
    }

    #[test]
    fn a_text_of_another_form_is_refused() {
        let mut layouts = Layouts::default();
        assert_eq!(layouts.add(of("syscalls/sys_exit_read"), &format(5, "")), None);
        assert_eq!(layouts.add(of("syscalls/sys_enter_read"), &format(5, "")), None);
    }

    #[test]
    fn every_event_is_wanted_once() {
        let places: std::collections::BTreeSet<String> = wanted().into_iter().map(Wanted::place).collect();
        assert_eq!(places.len(), wanted().len());
        assert!(COUNTED.iter().all(|name| places.contains(&format!("syscalls/sys_exit_{name}"))));
    }
}
