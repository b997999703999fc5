//! Names of those facts about a target, and of parameters, by which the analysis decides. All others are for readers only.

use super::Target;

/// The database's own number.
pub const DATABASE_ID: &str = "db_id";
/// The containers that a report of a database is on: one alone in a report on a pluggable database, which bears the number of
/// the database that holds it.
pub const CONTAINERS: &str = "containers";
/// Whether an Oracle database is a cluster's, as its reports say: `YES` or `NO`.
pub const CLUSTERED: &str = "rac";
/// Which steps are jobs that ran at the same time: how many, if all of them did; else for each step a word that those which
/// ran together have in common, or [`TOGETHER_UNREPORTED`].
pub const JOBS_AT_ONCE: &str = "jobs_at_once";
/// The word of a step that ran beside others for a time that is not reported.
pub const TOGETHER_UNREPORTED: &str = "?";
/// Parameter of a step that loads some of several volumes: their letters, joined by [`VOLUMES_JOIN`], such as `A` or `A+B`.
pub const VOLUMES: &str = "VOLUMES";
/// Parameter of a step on an NFS server: connections of each thread to each path, where they are varied.
pub const CONNECTIONS: &str = "CONNECTIONS";
/// Parameter of order entry: how long users pause between two transactions. `5ms` is always as long, `1ms..3ms` has bounds (plain
/// numbers are seconds); what has none begins with a word, as `exp:5ms`.
pub const THINK_BETWEEN: &str = "THINK_BETWEEN";
/// The same of the pauses between the steps of a transaction.
pub const THINK_INSIDE: &str = "THINK_INSIDE";
/// Parameters of a load on processors: the kinds of work, the processors as the kernel lists them (`0-3,8`), and the memory that each
/// thread goes through.
pub const HOST_WORK: &str = "WORK";
#[expect(missing_docs, reason = "documented above")]
pub const HOST_PROCESSORS: &str = "PROCESSORS";
#[expect(missing_docs, reason = "documented above")]
pub const HOST_SIZE: &str = "SIZE";
/// Parameter of a load on processors: the buffer cache of its logical reads.
pub const HOST_CACHE: &str = "CACHE";
/// Parameter of a load on processors: the processor of another NUMA node that the memory is near to.
pub const HOST_MEMORY_OF: &str = "MEMORY_OF";
/// Parameter of a load on processors: the processor of the threads that are woken, where it is another than that of the threads which
/// wake them.
pub const HOST_WAKE_ON: &str = "WAKE_ON";
/// What stands between the letters of volumes.
pub const VOLUMES_JOIN: &str = "+";
/// Fact whose name ends in the letter of a volume: the path that it is.
pub const VOLUME_PATH: &str = "volume_";
/// Devices that lie below several volumes that are loaded together, blanks between them.
pub const DEVICES_SHARED: &str = "devices_shared";

/// Size of the file system that files on an NFS server lie in, as the server reports it, in bytes.
pub const NFS_VOLUME_BYTES: &str = "nfs_volume_bytes";
/// Connections of each thread to each path of an NFS server; of a run that varies them, all numbers.
pub const NFS_CONNECTIONS: &str = "nfs_connections";
/// What stands between a path of this machine and its server, where it is held against an NFS client of our own: the kernel's client, as
/// `nfs4 …` with the options of the mount, or [`NO_KERNEL_CLIENT`] and what there is instead.
pub const KERNEL_CLIENT: &str = "kernel_client";
/// Beginning of that fact where it is not the kernel's client.
pub const NO_KERNEL_CLIENT: &str = "none: ";
/// Calls that may be in flight on one connection to an NFS server.
pub const NFS_OUTSTANDING: &str = "nfs_outstanding";
/// Calls at once that a server of NFS version 4.1 granted each session, of which every connection has one.
pub const NFS_SLOTS: &str = "nfs_slots";
/// Parameter of a load on a network: its pattern, such as `redo-sync`.
pub const NET_PATTERN: &str = "PATTERN";
/// Parameter of bulk flows: `up` from this host, `down` to it, or `both`.
pub const NET_DIRECTION: &str = "DIRECTION";
/// Parameter of a load on a network: its connections, or flows in each direction.
pub const NET_CONNECTIONS: &str = "CONNECTIONS";
/// Parameter of a load on a network: operations under way on each connection at most.
pub const NET_OUTSTANDING: &str = "OUTSTANDING";
/// Parameter of round trips that are timed while bulk flows go: how many of those in each direction.
pub const NET_BESIDE_FLOWS: &str = "BESIDE_FLOWS";
/// Parameter of a run that asks what a network carries, without a load of the user's own; its value is `yes`.
pub const NET_SURVEY: &str = "SURVEY";
/// Parameter of a run on a network: it looked at several servers, one after the other and all at once.
pub const NET_MATRIX: &str = "MATRIX";
/// Parameter of a step of such a run: the only server that it had. Absent where it had all of them.
pub const NET_SERVER: &str = "SERVER";
/// Parameter of such a run: the redo that a database makes, in bytes per second.
pub const NET_REDO_RATE: &str = "REDO_BYTES_PER_S";
/// Parameter of such a run: bytes of each of its redo writes.
pub const NET_REDO_WRITE: &str = "REDO_WRITE_BYTES";
/// Fact about a network: the largest packet that reached the other end uncut, in bytes.
pub const PATH_MTU_UP: &str = "path_mtu_up";
/// The same from the other end to here.
pub const PATH_MTU_DOWN: &str = "path_mtu_down";
/// Fact about a network: the largest packet of the interface of this host that leads there, in bytes.
pub const INTERFACE_MTU: &str = "interface_mtu";
/// Fact about a network: what the kernel has learnt of the largest packet of the path (`IP_MTU`), in bytes.
pub const KERNEL_PATH_MTU: &str = "kernel_path_mtu";
/// Whether data files are read past the page cache; `yes` where they are.
pub const DIRECT_READS: &str = "direct_reads";
/// How updates in batches are committed where the server does not wait for each of them; absent where it does.
pub const UNWAITED_COMMITS: &str = "commits";
/// End of the labels of steps in which that is so, and of the names of their runs: such figures are not those of others.
pub const UNWAITED_MARK: &str = "_nowait";
/// Layer that counted the reads from storage: `server` where that was the database itself; absent where the operating system did.
pub const DEVICE_READS_LAYER: &str = "device_reads_layer";
/// Beginning of the facts that hold settings of a server by its own names.
pub const SETTING: &str = "setting.";
/// Beginning of the facts that say what a server calls something. They are words for sentences and no properties.
pub const TERM: &str = "term.";

/// Something that sentences name as the server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Term {
    /// The log that makes changes durable.
    Log,
    /// The setting that limits the log between two checkpoints.
    LogCapacity,
    /// The setting of the time between two checkpoints.
    CheckpointInterval,
    /// The command that asks for a checkpoint.
    CheckpointCommand,
    /// The setting of the size of the buffer cache.
    BufferCache,
    /// Where the server shows what its sessions do.
    Sessions,
    /// The setting that has data files read past the page cache.
    DirectReads,
    /// What has a session read each row's block by itself.
    SingleBlockReads,
    /// What has scans read past the buffer cache.
    ScansPastCache,
}

impl Term {
    /// The name of the fact that holds it, and what it is called where there is none.
    pub fn fact(self) -> (&'static str, &'static str) {
        match self {
            Self::Log => ("term.log", "log"),
            Self::LogCapacity => ("term.log_capacity", "the limit of the log"),
            Self::CheckpointInterval => ("term.checkpoint_interval", "the time between checkpoints"),
            Self::CheckpointCommand => ("term.checkpoint_command", "a checkpoint"),
            Self::BufferCache => ("term.buffer_cache", "the size of the buffer cache"),
            Self::Sessions => ("term.sessions", "the server's list of sessions"),
            Self::DirectReads => ("term.direct_reads", "direct reads"),
            Self::SingleBlockReads => ("term.single_block_reads", "no reading ahead of need"),
            Self::ScansPastCache => ("term.scans_past_cache", "use a larger `SCAN_TABLE_SZ`"),
        }
    }
}

impl Target {
    /// Whether the database itself counted its reads from storage, rather than the operating system.
    pub fn counts_device_reads(&self) -> bool {
        self.facts.get(DEVICE_READS_LAYER).is_some_and(|layer| layer == "server")
    }

    /// What the server calls it, or a plain word for it.
    pub fn term(&self, term: Term) -> &str {
        let (fact, plain) = term.fact();
        self.facts.get(fact).map_or(plain, String::as_str)
    }
}
