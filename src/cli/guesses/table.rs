//! Names that people bring with them, from fio, from SLOB and from other programs' habits, and how the same is called here.

/// Flags, in small letters and with `-` between words, and what is written in their place: the first that the command has. `{}` is
/// the value; alone it is a run.
pub(super) const FLAGS: &[(&[&str], &[&str])] = &[
    (&["bs", "blocksize", "block-sz"], &["--block-size {}", "BLOCK_SZ={}"]),
    (&["runtime", "run-time", "time", "seconds", "length"], &["--duration {}"]),
    (&["iodepth", "io-depth", "queue-depth", "qd", "outstanding", "depth"], &["--depth {}", "--threads {}"]),
    (&["numjobs", "num-jobs", "jobs", "processes", "threads"], &["--jobs {}", "--threads {}"]),
    (&["sessions", "users", "clients", "concurrency"], &["--threads {}", "--depth {}"]),
    (&["rw", "readwrite", "pattern"], &["--pattern {}", "UPDATE_PCT={}"]),
    (&["rwmixread", "read-percent"], &["--read-pct {}"]),
    (&["rwmixwrite", "write-pct", "updates"], &["UPDATE_PCT={}"]),
    (&["filename", "file", "device", "directory", "dir", "path"], &["--path {}", "--target dir:{}"]),
    (&["target"], &["--path {}"]),
    (&["ioengine", "io-engine", "engine"], &["--engine {}", "--io-engine {}"]),
    (&["rate-iops", "iops"], &["--rate {}"]),
    (&["ramp-time"], &["--warmup {}"]),
    (&["randseed", "rand-seed", "random-seed"], &["--seed {}"]),
    (&["random-distribution"], &["--distribution {}"]),
    (&["fsync", "fdatasync"], &["--durable fsync:{}"]),
    (&["sync", "dsync"], &["--durable dsync"]),
    (&["target-latency"], &["--limit {}"]),
    (&["latency-target", "max-latency"], &["--limit p99={}"]),
    (&["scale", "size"], &["SCALE={}", "--size {}"]),
    (&["config", "slob-conf"], &["--conf {}"]),
    (&["schema"], &["--schemas {}"]),
    (&["output-format"], &["--format {}", "--json"]),
    (&["json"], &["--format json"]),
    (&["csv"], &["--format csv"]),
    (&["markdown", "md"], &["--format markdown"]),
    (&["html", "page"], &["--output {}", "--format html"]),
    (&["run", "id"], &["{}"]),
    (&["name"], &["{}", "--tag name={}"]),
    (&["tag"], &["{}"]),
    (&["runs-dir", "results", "store"], &["--runs {}"]),
    (&["force", "overwrite"], &["--replace", "--yes"]),
    (&["dryrun", "plan", "noop"], &["--dry-run"]),
    (&["silent"], &["--quiet"]),
];

/// Flags of fio for which nothing is written here.
pub(super) const NOT_NEEDED: &[&str] = &["time-based", "group-reporting", "thread", "norandommap", "randrepeat", "eta"];

/// Values that are called something else here, by the flag that they now belong to.
pub(super) const VALUES: &[(&str, &[&str], &str)] = &[
    ("--engine", &["io_uring", "libaio"], "io-uring"),
    ("--engine", &["sync", "pvsync", "posixaio"], "psync"),
    ("--io-engine", &["io_uring", "libaio"], "io-uring"),
    ("--io-engine", &["sync", "pvsync", "posixaio"], "psync"),
    ("UPDATE_PCT=", &["randread", "read"], "0"),
    ("UPDATE_PCT=", &["randwrite", "write"], "100"),
    ("UPDATE_PCT=", &["randrw", "rw", "readwrite"], "50"),
];

/// Commands, below which other command they were looked for, and where they are.
pub(super) const COMMANDS: &[(&str, &[&str], &[&str])] = &[
    ("", &["run", "bench", "benchmark", "test", "load", "start"], &["slob run", "io run"]),
    ("", &["sweep"], &["slob sweep", "io sweep"]),
    ("", &["setup", "init", "prepare"], &["slob setup"]),
    ("", &["verify"], &["slob verify"]),
    ("", &["drop"], &["slob drop"]),
    ("", &["info"], &["slob info"]),
    ("", &["fio"], &["io run"]),
    ("", &["soak"], &["io soak"]),
    ("", &["orion"], &["io orion"]),
    ("", &["calibrate"], &["io calibrate"]),
    ("", &["list", "ls", "history"], &["runs list"]),
    ("", &["show"], &["runs show"]),
    ("", &["rm", "delete", "remove"], &["runs rm"]),
    ("", &["diff"], &["compare"]),
    ("", &["plot", "chart", "graph", "html"], &["report"]),
    ("", &["capacity"], &["fit"]),
    ("", &["watch", "monitor", "top", "trace"], &["probe"]),
    ("", &["web", "server", "ui"], &["serve"]),
    ("", &["man"], &["manual"]),
    ("slob", &["init", "prepare", "load", "create"], &["setup"]),
    ("slob", &["start", "test", "bench"], &["run"]),
    ("slob", &["check"], &["verify"]),
    ("slob", &["list", "ls", "show", "status"], &["info"]),
    ("slob", &["delete", "remove", "rm", "clean", "cleanup"], &["drop"]),
    ("io", &["start", "test", "bench", "fio"], &["run"]),
    ("runs", &["delete", "remove"], &["rm"]),
    ("runs", &["info", "report"], &["show"]),
];
