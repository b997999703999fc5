//! What is known of a target. By what the program decides has a field of its own; the rest is for readers, by name.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};

use super::at_once::JobsAtOnce;
use super::load::{Parameters, Shown};
use crate::config::io::{Durable, letter};
use crate::text::is_default;
use crate::units::Bytes;

/// Beginning of the names that settings of a server are shown by.
pub const SETTING: &str = "setting.";
/// End of the labels of steps whose updates in batches the server does not wait for, and of the names of their runs: such figures are
/// not those of others.
pub const UNWAITED_MARK: &str = "_nowait";

/// What several descriptions of a target may say or leave out.
trait Fact {
    /// Takes over what only `other` says.
    fn fill(&mut self, other: &Self);

    /// Leaves out what `other` does not say as well.
    fn keep_common(&mut self, other: &Self);
}

impl<T: Clone + PartialEq> Fact for Option<T> {
    fn fill(&mut self, other: &Self) {
        if self.is_none() {
            self.clone_from(other);
        }
    }

    fn keep_common(&mut self, other: &Self) {
        if self != other {
            *self = None;
        }
    }
}

impl<T: Clone + PartialEq> Fact for Vec<T> {
    fn fill(&mut self, other: &Self) {
        if self.is_empty() {
            self.clone_from(other);
        }
    }

    fn keep_common(&mut self, other: &Self) {
        if self != other {
            self.clear();
        }
    }
}

impl<K: Clone + Ord, V: Clone + PartialEq> Fact for BTreeMap<K, V> {
    fn fill(&mut self, other: &Self) {
        for (name, value) in other {
            self.entry(name.clone()).or_insert_with(|| value.clone());
        }
    }

    fn keep_common(&mut self, other: &Self) {
        self.retain(|name, value| other.get(name) == Some(value));
    }
}

/// Makes structs of facts: what is not known is left out of the document.
macro_rules! facts {
    ($($(#[$of_group:meta])* $group:ident { $($(#[$of_fact:meta])* $fact:ident: $kind:ty,)+ })+) => {$(
        $(#[$of_group])*
        #[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
        #[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
        pub struct $group {
            $($(#[$of_fact])* #[serde(default, skip_serializing_if = "is_default")] pub $fact: $kind,)+
        }

        impl Fact for $group {
            fn fill(&mut self, other: &Self) {
                $(self.$fact.fill(&other.$fact);)+
            }

            fn keep_common(&mut self, other: &Self) {
                $(self.$fact.keep_common(&other.$fact);)+
            }
        }
    )+};
}

facts! {
    /// What is known of a target beyond its kind and sizes. Everything that could not be found out, or is not meant for such a target,
    /// is absent.
    TargetFacts {
        /// How files and devices are read and written.
        files: FileFacts,
        /// Volumes that are loaded alone and together.
        volumes: VolumeFacts,
        /// An NFS server and the way to it.
        nfs: NfsFacts,
        /// The largest packets on the way to a network's other end.
        path_mtu: PathMtu,
        /// A database server, as it is set and loaded.
        server: ServerFacts,
        /// Which database it is, as its own reports say.
        database: DatabaseFacts,
        /// Which steps of an imported run were jobs at the same time; absent where each ran by itself.
        jobs_at_once: Option<JobsAtOnce>,
        /// What is only shown to readers, by name: `schemas`, `redo_file_bytes`, `server_version`, …
        other: BTreeMap<String, String>,
    }

    /// How files and devices are read and written.
    FileFacts {
        /// Whether they are read and written past the page cache.
        direct_io: Option<bool>,
        /// When a write counts as durable.
        durable: Option<Durable>,
        /// How a volume lies on its members.
        layout: Option<VolumeLayout>,
        /// Files and devices that are the members of a volume.
        paths: Vec<String>,
        /// What sends requests: `io_uring`, `psync`, `nfs3`, or another program's word.
        io_engine: Option<String>,
        /// By what this program reaches members itself, past the kernel's file systems: `nfs3`, `nfs4.1` or `disk group`.
        protocol: Option<String>,
        /// The same of an embedded database's data files.
        data_protocol: Option<String>,
        /// The same of its redo files.
        redo_protocol: Option<String>,
        /// Devices and files of ORION's list, in its order.
        luns: Vec<LunFacts>,
    }

    /// Volumes that are loaded alone and together.
    VolumeFacts {
        /// Path of each: the first is `A`, the second `B`, and so on.
        paths: Vec<String>,
        /// Devices that lie below several of them.
        devices_shared: Vec<String>,
    }

    /// An NFS server and the way to it.
    NfsFacts {
        /// Size of the file system that the files lie in, as the server reports it, in bytes.
        volume_bytes: Option<u64>,
        /// Connections of each thread to each path, from 1 on; of a run that varies them, all numbers.
        connections: Vec<u32>,
        /// Calls that may be in flight on one connection, from 1 on.
        outstanding: Option<u32>,
        /// Calls at once that a server of NFS version 4.1 granted each session, of which every connection has one.
        slots: Option<u32>,
        /// What stands between a path of this machine and its server, where it is held against an NFS client of our own.
        kernel_client: Option<KernelClient>,
    }

    /// The largest packets of a path, in bytes, heads of IP included.
    PathMtu {
        /// What the interface of this host carries that leads there.
        interface_bytes: Option<u32>,
        /// What the kernel knows of the path (`IP_MTU`).
        kernel_bytes: Option<u32>,
        /// The largest that came to the other end, up to what the interface carries.
        up_bytes: Option<u32>,
        /// The largest that came from there.
        down_bytes: Option<u32>,
    }

    /// A database server, as it is set and loaded.
    ServerFacts {
        /// Whether the command that made the run started it.
        is_private: Option<bool>,
        /// Memory that it is limited to, page cache included, in bytes; absent where nothing of ours limits it.
        memory_limit_bytes: Option<u64>,
        /// Whether it reads data files past the page cache.
        reads_directly: Option<bool>,
        /// Whether it counts its reads from storage itself; else the operating system does.
        counts_device_reads: Option<bool>,
        /// Whether updates in batches are committed as SLOB's are: the server does not wait for each.
        commits_unwaited: Option<bool>,
        /// How the load is sent.
        sent_as: Option<SentAs>,
        /// How encryption was chosen, by the word of the server's own client, such as `verify-full`; absent over a socket of the server's
        /// machine.
        tls_mode: Option<String>,
        /// Whether the connections to it are encrypted; absent over a socket of the server's machine.
        is_encrypted: Option<bool>,
        /// Whether this host verified by a certificate that it is the server of that name; absent where they are not encrypted.
        is_verified: Option<bool>,
        /// Settings that matter to results, by the server's own names.
        settings: BTreeMap<String, String>,
        /// What it calls what sentences name.
        terms: BTreeMap<Term, String>,
    }

    /// Which database it is, as its own reports say.
    DatabaseFacts {
        /// Its own number.
        id: Option<u64>,
        /// The containers that a report is on: one alone in a report on a pluggable database, which bears the number of the database
        /// that holds it.
        containers: Vec<String>,
        /// Whether it is a cluster's.
        is_clustered: Option<bool>,
        /// First and last snapshot of a report, such as `7-8`.
        snapshots: Option<String>,
    }
}

/// One device or file of ORION's list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
pub struct LunFacts {
    /// Its path.
    pub path: String,
    /// Its size, in bytes.
    pub bytes: u64,
}

/// How a volume lies on its members.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum VolumeLayout {
    /// One member, as it is.
    Single,
    /// One member after the other.
    Concat,
    /// The same, but each member is a volume of its own that nothing but the address has to do with the others.
    Separate,
    /// Units go round the members.
    Stripe {
        /// Length of a unit, in bytes.
        unit_bytes: u64,
    },
    /// As a disk group with normal redundancy: units go round the members, and each has a copy on the member that
    /// follows. First copies lie in the lower half of each member, second copies in the upper half.
    Mirror {
        /// Length of a unit, in bytes.
        unit_bytes: u64,
    },
}

impl VolumeLayout {
    /// Length of a unit, in bytes; absent where no units go round.
    pub fn unit_bytes(self) -> Option<u64> {
        match self {
            Self::Single | Self::Concat | Self::Separate => None,
            Self::Stripe { unit_bytes } | Self::Mirror { unit_bytes } => Some(unit_bytes),
        }
    }

    /// The layout's name without its unit.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Single => "single",
            Self::Concat => "concat",
            Self::Separate => "separate",
            Self::Stripe { .. } => "stripe",
            Self::Mirror { .. } => "mirror",
        }
    }
}

impl fmt::Display for VolumeLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())?;
        match self.unit_bytes() {
            Some(unit_bytes) => write!(f, " {}", Bytes(unit_bytes)),
            None => Ok(()),
        }
    }
}

/// What stands between a path of this machine and the server of its files.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum KernelClient {
    /// The kernel's NFS client: `nfs4`, and the options of the mount.
    Mount(String),
    /// Something else, in words.
    Instead(String),
}

impl fmt::Display for KernelClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Mount(mount) => f.write_str(mount),
            Self::Instead(words) => write!(f, "none: {words}"),
        }
    }
}

/// How a load is sent to a server.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum SentAs {
    /// Each statement by itself.
    Statement,
    /// Operations in batches, of which a procedure of the server times each.
    Batch,
    /// Each transaction as one call of a procedure.
    Procedure,
}

impl SentAs {
    /// As it stands on the command line and in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Statement => "statement",
            Self::Batch => "batch",
            Self::Procedure => "procedure",
        }
    }
}

/// Something that sentences name as the server does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(any(test, feature = "schemas"), derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
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
    /// What it is called where the server's word is not known.
    pub(super) const fn plain(self) -> &'static str {
        match self {
            Self::Log => "log",
            Self::LogCapacity => "the limit of the log",
            Self::CheckpointInterval => "the time between checkpoints",
            Self::CheckpointCommand => "a checkpoint",
            Self::BufferCache => "the size of the buffer cache",
            Self::Sessions => "the server's list of sessions",
            Self::DirectReads => "direct reads",
            Self::SingleBlockReads => "no reading ahead of need",
            Self::ScansPastCache => "use a larger `SCAN_TABLE_SZ`",
        }
    }
}

impl ServerFacts {
    /// Settings by which a commit that was acknowledged may be lost, or data be torn, when the machine goes down, as `name=value`. Where
    /// the server's own names are given, by the manuals of PostgreSQL 15, MySQL 8.0 and MariaDB 10.11.
    pub fn loses_commits(&self) -> Vec<String> {
        let is_set = |name: &str, is_unsafe: &dyn Fn(&str) -> bool| {
            let value = self.settings.get(name)?.to_ascii_lowercase();
            is_unsafe(&value).then(|| format!("{name}={value}"))
        };
        let off = |value: &str| ["off", "0", "false", "no"].contains(&value);
        let keeps_binary_log = self.settings.get("log_bin").is_some_and(|value| !off(&value.to_ascii_lowercase()));
        let found = [
            is_set("fsync", &off),
            is_set("synchronous_commit", &off),
            is_set("full_page_writes", &off),
            is_set("innodb_flush_log_at_trx_commit", &|value| value != "1"),
            is_set("sync_binlog", &|value| keeps_binary_log && value != "1"),
            is_set("innodb_doublewrite", &|value| off(value) || value == "detect_only"),
            is_set("innodb_flush_method", &|value| ["nosync", "littlesync"].contains(&value)),
            (self.commits_unwaited == Some(true)).then(|| "commits are not waited for".to_owned()),
        ];
        found.into_iter().flatten().collect()
    }

    /// How it is connected to, in words.
    fn connection(&self) -> Option<String> {
        let mode = self.tls_mode.as_ref().map(|mode| format!(" ({mode})")).unwrap_or_default();
        let verified = match self.is_verified {
            Some(true) => ", server verified",
            // As PostgreSQL and MySQL spell it.
            Some(false) if matches!(self.tls_mode.as_deref(), Some("verify-ca" | "verify_ca")) => {
                ", who signed its certificate verified, its name not"
            }
            Some(false) => ", server not verified",
            None => "",
        };
        self.is_encrypted.map(|is| format!("{}encrypted{mode}{verified}", if is { "" } else { "not " }))
    }
}

impl TargetFacts {
    /// Takes over what only `other` says.
    pub fn fill(&mut self, other: &Self) {
        Fact::fill(self, other);
    }

    /// Leaves out what `other` does not say as well.
    pub fn keep_common(&mut self, other: &Self) {
        Fact::keep_common(self, other);
    }

    /// All of them as readers see them, by name. What a server calls things is no property, and not among them.
    pub fn shown(&self) -> Parameters {
        let Self { files, volumes, nfs, path_mtu, server, database, jobs_at_once, other } = self;
        let mut shown = Shown(other.clone());
        let word = |is: Option<bool>, yes: &'static str, no: &'static str| is.map(|is| if is { yes } else { no });
        let is = |is: Option<bool>, word: &'static str| is.filter(|is| *is).map(|_| word);
        let list = |all: &[String], between: &str| (!all.is_empty()).then(|| all.join(between));

        shown.add_some("direct_io", word(files.direct_io, "on", "off"));
        shown.add_some("durable", files.durable);
        shown.add_some("layout", files.layout);
        shown.add_some("paths", list(&files.paths, " "));
        shown.add_some("io_engine", files.io_engine.as_ref());
        shown.add_some("protocol", files.protocol.as_ref());
        shown.add_some("data_protocol", files.data_protocol.as_ref());
        shown.add_some("redo_protocol", files.redo_protocol.as_ref());
        let luns: Vec<String> = files.luns.iter().map(|lun| format!("{} {}", lun.path, lun.bytes)).collect();
        shown.add_some("luns", list(&luns, "\n"));

        volumes.paths.iter().zip(0..).for_each(|(path, at)| shown.add(&format!("volume_{}", letter(at)), path));
        shown.add_some("devices_shared", list(&volumes.devices_shared, " "));

        shown.add_some("nfs_volume_bytes", nfs.volume_bytes);
        let connections: Vec<String> = nfs.connections.iter().map(u32::to_string).collect();
        shown.add_some("nfs_connections", list(&connections, ","));
        shown.add_some("nfs_outstanding", nfs.outstanding);
        shown.add_some("nfs_slots", nfs.slots);
        shown.add_some("kernel_client", nfs.kernel_client.as_ref());

        shown.add_some("interface_mtu", path_mtu.interface_bytes);
        shown.add_some("kernel_path_mtu", path_mtu.kernel_bytes);
        shown.add_some("path_mtu_up", path_mtu.up_bytes);
        shown.add_some("path_mtu_down", path_mtu.down_bytes);

        shown.add_some("started_by_us", word(server.is_private, "yes", "no"));
        shown.add_some("host_memory", server.memory_limit_bytes.map(Bytes));
        shown.add_some("direct_reads", is(server.reads_directly, "yes"));
        shown.add_some("device_reads_layer", is(server.counts_device_reads, "server"));
        shown.add_some("commits", is(server.commits_unwaited, "as SLOB, not waited for"));
        shown.add_some("send", server.sent_as.map(SentAs::name));
        shown.add_some("connection", server.connection());
        server.settings.iter().for_each(|(name, value)| shown.add(&format!("{SETTING}{name}"), value));

        shown.add_some("db_id", database.id);
        shown.add_some("containers", list(&database.containers, ", "));
        shown.add_some("rac", word(database.is_clustered, "YES", "NO"));
        shown.add_some("snapshots", database.snapshots.as_ref());
        shown.add_some("jobs_at_once", jobs_at_once.as_ref());
        shown.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_that_may_lose_commits_are_known_by_their_values() {
        let loses = |settings: &[(&str, &str)]| {
            let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
            ServerFacts { settings, ..ServerFacts::default() }.loses_commits().join(", ")
        };
        let postgres = [("fsync", "on"), ("synchronous_commit", "remote_write"), ("full_page_writes", "on")];
        let mysql = [("innodb_flush_log_at_trx_commit", "1"), ("innodb_doublewrite", "DETECT_AND_RECOVER")];
        let binary_log = [("log_bin", "OFF"), ("sync_binlog", "0"), ("innodb_flush_method", "O_DIRECT_NO_FSYNC")];
        for safe in [&postgres[..], &mysql, &binary_log, &[]] {
            assert_eq!(loses(safe), "", "{safe:?}");
        }
        for (name, value) in [
            ("fsync", "off"),
            ("synchronous_commit", "off"),
            ("full_page_writes", "off"),
            ("innodb_flush_log_at_trx_commit", "2"),
            ("innodb_doublewrite", "off"),
            ("innodb_flush_method", "nosync"),
        ] {
            assert_eq!(loses(&[(name, value)]), format!("{name}={value}"));
        }
        assert_eq!(loses(&[("log_bin", "ON"), ("sync_binlog", "1000")]), "sync_binlog=1000");
        let oracle = ServerFacts { commits_unwaited: Some(true), ..ServerFacts::default() };
        assert_eq!(oracle.loses_commits(), ["commits are not waited for"]);
    }

    fn of(direct_io: Option<bool>, settings: &[(&str, &str)]) -> TargetFacts {
        let settings = settings.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        TargetFacts {
            files: FileFacts { direct_io, paths: vec!["/a".to_owned(), "/b".to_owned()], ..FileFacts::default() },
            server: ServerFacts {
                reads_directly: Some(false),
                settings,
                terms: [(Term::Log, "WAL".to_owned())].into(),
                ..ServerFacts::default()
            },
            ..TargetFacts::default()
        }
    }

    #[test]
    fn readers_see_what_is_known_by_its_name() {
        let facts = TargetFacts {
            volumes: VolumeFacts { paths: vec!["/dev/sdb".to_owned(), "/dev/sdc".to_owned()], ..Default::default() },
            nfs: NfsFacts { connections: vec![1, 3], ..NfsFacts::default() },
            other: [("schemas".to_owned(), "8".to_owned())].into(),
            ..of(Some(true), &[("wal_level", "replica")])
        };
        let shown: Vec<String> = facts.shown().into_iter().map(|(name, value)| format!("{name}={value}")).collect();
        let names = "direct_io=on nfs_connections=1,3 paths=/a /b schemas=8 setting.wal_level=replica volume_A=/dev/sdb volume_B=/dev/sdc";
        assert_eq!(shown.join(" "), names, "neither terms nor that a server does not read directly");
    }

    #[test]
    fn how_a_server_is_connected_to_is_said_where_it_is_known() {
        let connection = |mode: Option<&str>, is_encrypted, is_verified| {
            let tls_mode = mode.map(str::to_owned);
            let server = ServerFacts { tls_mode, is_encrypted, is_verified, ..ServerFacts::default() };
            TargetFacts { server, ..TargetFacts::default() }.shown().remove("connection")
        };
        assert_eq!(connection(Some("prefer"), None, None), None);
        assert_eq!(connection(Some("prefer"), Some(false), None).unwrap(), "not encrypted (prefer)");
        assert_eq!(
            connection(Some("require"), Some(true), Some(false)).unwrap(),
            "encrypted (require), server not verified"
        );
        assert_eq!(
            connection(Some("verify-ca"), Some(true), Some(false)).unwrap(),
            "encrypted (verify-ca), who signed its certificate verified, its name not"
        );
        assert_eq!(connection(None, Some(true), Some(true)).unwrap(), "encrypted, server verified");
    }

    #[test]
    fn what_one_of_two_leaves_out_the_other_fills_in_and_both_have_in_common_what_is_equal() {
        let (one, other) = (of(None, &[("a", "1"), ("b", "2")]), of(Some(false), &[("b", "3"), ("c", "4")]));
        let mut filled = one.clone();
        filled.fill(&other);
        assert_eq!(filled, of(Some(false), &[("a", "1"), ("b", "2"), ("c", "4")]));
        let mut common = filled.clone();
        common.keep_common(&other);
        assert_eq!(common, of(Some(false), &[("c", "4")]));
    }
}
