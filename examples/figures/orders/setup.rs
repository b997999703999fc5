//! Set-up of order entry against the programs of the servers that load tables, and the audit of what a million customers have.

use std::process::Command;
use std::time::Instant;

use serde_json::Value;

use super::{need, shown};
use crate::mysql::{client, socket};
use crate::postgres::psql;
use crate::server::Server;
use crate::{Bench, Failure, Goal, figure, in_turn, median, number, ratios, text, verdict};

/// Connections that load, on both sides where the other program has several.
const STREAMS: &str = "2";
/// Rows that pgbench makes are 100,000 times this: about as many bytes of tables as ours.
const PGBENCH_SCALE: &str = "20";
/// Scale of the audit.
const AUDITED_SCALE: &str = "1";
/// Longest audit, in seconds.
const MAX_AUDIT_S: f64 = 30.0;
/// Where mariadb-import puts the rows.
const RIVAL: &str = "rival";

/// Rows and their bytes, and the seconds that loading them took.
struct Loaded {
    rows: f64,
    bytes: f64,
    seconds: f64,
}

/// Prints both rates.
fn rates(what: &str, of_what: &str, pairs: &[(Loaded, Loaded)]) {
    let each = |rate: fn(&Loaded) -> f64| -> Vec<(f64, f64)> {
        pairs.iter().map(|(ours, theirs)| (rate(ours), rate(theirs))).collect()
    };
    ratios(&format!("{what}: rows/s"), &each(|side| side.rows / side.seconds), 0, Goal::AtLeast(1.0));
    ratios(&format!("{what}: MB/s of {of_what}"), &each(|side| side.bytes / 1e6 / side.seconds), 0, Goal::Nothing);
}

impl Server<'_> {
    /// Makes all rows anew, without indexes, and says how many there are, and how many seconds loading them took, without what comes
    /// before and after.
    fn load_orders(&self) -> Result<(f64, f64), Failure> {
        let words =
            ["setup", "--scale", super::SCALE, "--seed", "1", "--streams", STREAMS, "--indexes", "none", "--replace"];
        let reported = self.command("orders", &words)?;
        let seconds = number(&reported["phases_ns"]["load"])? / 1e9;
        Ok((number(&reported["rows_written"])?, seconds))
    }

    /// Bytes of the tables of a schema.
    fn table_bytes(&self, schema: &str) -> Result<f64, Failure> {
        let asked = format!(
            "SELECT sum(pg_relation_size(oid)) FROM pg_class WHERE relkind = 'r' AND relnamespace = '{schema}'::regnamespace"
        );
        Ok(text(&mut psql(self, &[&asked]))?.trim().parse()?)
    }

    /// `pgbench -i`: tables are dropped and made, and filled by COPY from one stream; only the latter is timed, by pgbench itself.
    fn pgbench_load(&self) -> Result<Loaded, Failure> {
        let mut command = Command::new("pgbench");
        command.args(["-i", "-I", "dtg", "-q", "-s", PGBENCH_SCALE, "plimsoll", "-U", "plimsoll", "-h"]);
        // Else its tables would be among ours, as the schema has the name of the user.
        command.arg(self.directory().join("run")).env("PGOPTIONS", "-c search_path=public");
        let output = command.output()?;
        let printed = String::from_utf8_lossy(&output.stderr);
        let seconds = printed.split_once("client-side generate ").and_then(|(_, rest)| rest.split(' ').next());
        let seconds =
            seconds.ok_or_else(|| format!("pgbench says nothing about loading: {}", printed.trim()))?.parse()?;
        let asked = "SELECT (SELECT count(*) FROM public.pgbench_accounts) + (SELECT count(*) FROM public.pgbench_branches) \
                     + (SELECT count(*) FROM public.pgbench_tellers)";
        let rows = text(&mut psql(self, &[asked]))?.trim().parse()?;
        Ok(Loaded { rows, bytes: self.table_bytes("public")?, seconds })
    }

    /// Writes our rows to files, a table each, and makes the same tables beside ours. Gives the files, the largest first.
    fn export(&self) -> Result<Vec<String>, Failure> {
        let folder = self.directory().join("files");
        std::fs::create_dir_all(&folder)?;
        let owner = std::fs::metadata(self.directory().join("data"))?;
        std::os::unix::fs::chown(&folder, Some(std::os::unix::fs::MetadataExt::uid(&owner)), None)?;
        let named = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'plimsoll' AND table_name NOT LIKE \
                     'plimsoll%' ORDER BY data_length DESC";
        let names = text(&mut client(self, &[named]))?;
        let mut files = Vec::new();
        for name in names.lines() {
            let file = shown(&folder.join(format!("{name}.txt")));
            text(&mut client(self, &[&format!("SELECT * INTO OUTFILE '{file}' FROM plimsoll.{name}")]))?;
            files.push(file);
        }
        Ok(files)
    }

    /// Our rows by mariadb-import, into tables like ours.
    fn import(&self, files: &[String]) -> Result<(f64, f64), Failure> {
        let remake = [format!("DROP DATABASE IF EXISTS {RIVAL}"), format!("CREATE DATABASE {RIVAL}")];
        text(&mut client(self, &[&remake[0], &remake[1]]))?;
        for file in files {
            let name = std::path::Path::new(file).file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            text(&mut client(self, &[&format!("CREATE TABLE {RIVAL}.{name} LIKE plimsoll.{name}")]))?;
        }
        let mut command = Command::new("mariadb-import");
        command.args(["--no-defaults", "--local", "--silent", "--user=root"]);
        command.args([format!("--use-threads={STREAMS}"), format!("--socket={}", socket(self))]);
        command.arg(RIVAL).args(files);
        let began = Instant::now();
        text(&mut command)?;
        let seconds = began.elapsed().as_secs_f64();
        let mut rows = 0.0;
        for file in files {
            let name = std::path::Path::new(file).file_stem().and_then(|name| name.to_str()).unwrap_or_default();
            let counted = text(&mut client(self, &[&format!("SELECT COUNT(*) FROM {RIVAL}.{name}")]))?;
            rows += counted.trim().parse::<f64>()?;
        }
        Ok((rows, seconds))
    }
}

impl Bench {
    /// Loading on PostgreSQL against `pgbench -i`.
    pub(crate) fn orders_load(&self) -> Result<(), Failure> {
        need(&["pgbench", "psql"])?;
        self.on_orders("pg", super::SCALE, |server| {
            let mut pairs = Vec::new();
            for round in 0..self.rounds {
                pairs.push(in_turn(
                    round,
                    || {
                        let (rows, seconds) = server.load_orders()?;
                        Ok(Loaded { rows, bytes: server.table_bytes("plimsoll")?, seconds })
                    },
                    || server.pgbench_load(),
                )?);
            }
            let scale = super::SCALE;
            rates(
                &format!("PostgreSQL, set-up at scale {scale}, {STREAMS} streams, against `pgbench -i`"),
                "tables",
                &pairs,
            );
            Ok(())
        })
    }

    /// Loading on MariaDB against `mariadb-import` of files with the same rows, which have to be made first.
    pub(crate) fn orders_import(&self) -> Result<(), Failure> {
        need(&["mariadb-import", "mariadb"])?;
        self.on_orders("my", super::SCALE, |server| {
            server.load_orders()?;
            let files = server.export()?;
            // Of both, since both load the same rows.
            let bytes =
                files.iter().map(|file| Ok(std::fs::metadata(file)?.len())).sum::<Result<u64, std::io::Error>>()?;
            let bytes = bytes as f64;
            let mut pairs = Vec::new();
            for round in 0..self.rounds {
                let ((rows, ours), (imported, theirs)) =
                    in_turn(round, || server.load_orders(), || server.import(&files))?;
                if rows != imported {
                    return Err(format!("mariadb-import loaded {imported} of {rows} rows").into());
                }
                let side = |seconds| Loaded { rows, bytes, seconds };
                pairs.push((side(ours), side(theirs)));
            }
            let scale = super::SCALE;
            let what = format!("MariaDB, set-up at scale {scale}, {STREAMS} streams, against `mariadb-import`");
            rates(&what, "rows as text", &pairs);
            std::fs::remove_dir_all(server.directory().join("files")).map_err(Failure::from)?;
            text(&mut client(server, &[&format!("DROP DATABASE {RIVAL}")])).map(drop)
        })
    }

    /// The audit of data that nobody has worked on, but all of them.
    pub(crate) fn orders_audit(&self) -> Result<(), Failure> {
        self.on_orders("pg", AUDITED_SCALE, |server| {
            let mut times = Vec::new();
            for _ in 0..self.rounds {
                let words = ["orders", "verify", "--json", "--target", &server.address(), "--keep-running"];
                let audit: Value = serde_json::from_str(&self.plimsoll_text(&words)?)?;
                times.push(number(&audit["elapsed_ns"])? / 1e9);
            }
            let took = median(times.into_iter());
            figure(&format!(
                "| PostgreSQL, audit at scale {AUDITED_SCALE}, s | {took:.1} | - | - | at most {MAX_AUDIT_S} | {} |",
                verdict(took <= MAX_AUDIT_S)
            ));
            Ok(())
        })
    }
}
