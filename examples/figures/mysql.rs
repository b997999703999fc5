//! MariaDB or MySQL in a private server: both ways of sending against rivals on the same server, loading against INSERT, and our
//! counts of reads against the server's and the kernel's.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::server::{
    GIB, SESSIONS, Server, UNTIL_RIVALS_BEGIN, WORK_UNIT, at_once, client_share, own_rate, traced_reads,
};
use crate::{Bench, Failure, Goal, children_cpu, figure, in_turn, median, number, ratios, text, verdict};

/// Blocks of each schema: 256 MiB in pages of 16 KiB.
const BLOCKS: usize = 16_384;

/// The SLOB method as one procedure that runs alone for the whole test, with static statements. Gives the seconds that it worked.
const LOOP: &str = "CREATE OR REPLACE PROCEDURE alone_{n}(IN begins DATETIME(6), IN seconds INT)
BEGIN
  DECLARE ends DATETIME(6) DEFAULT begins + INTERVAL seconds SECOND;
  DECLARE first_key BIGINT;
  DECLARE touched BIGINT;
  IF SYSDATE(6) > begins THEN
    SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'this session began late';
  END IF;
  DO SLEEP(TIMESTAMPDIFF(MICROSECOND, SYSDATE(6), begins) / 1e6);
  WHILE SYSDATE(6) < ends DO
    SET first_key = FLOOR(RAND() * ({blocks} - {unit} + 1));
    SELECT COUNT(c2) INTO touched FROM slob_{n} WHERE custid >= first_key AND custid < first_key + {unit};
  END WHILE;
  SELECT TIMESTAMPDIFF(MICROSECOND, begins, SYSDATE(6)) / 1e6;
END";

/// What sysbench's own point selects do, on our tables: one prepared statement of one row, again and again.
const POINTS: &str = "function thread_init()
  connection = sysbench.sql.driver():connect()
  statement = connection:prepare('SELECT c2 FROM slob_' .. (sysbench.tid % {sessions} + 1) .. ' WHERE custid = ?')
  key = statement:bind_create(sysbench.sql.type.INT)
  statement:bind_param(key)
end
function event()
  key:set(sysbench.rand.uniform(0, {blocks} - 1))
  statement:execute()
end
function thread_done()
  statement:close()
  connection:disconnect()
end
";

pub(crate) fn socket(server: &Server<'_>) -> String {
    server.directory().join("run/sock").display().to_string()
}

pub(crate) fn client(server: &Server<'_>, statements: &[&str]) -> Command {
    let mut command = Command::new("mariadb");
    command.args([
        "--no-defaults",
        "-u",
        "root",
        "-N",
        "-B",
        "--delimiter=//",
        "-S",
        &socket(server),
        "plimsoll",
        "-e",
    ]);
    command.arg(statements.join("//"));
    command
}

fn status(server: &Server<'_>, name: &str) -> Result<f64, Failure> {
    let asked = format!("SELECT variable_value FROM information_schema.global_status WHERE variable_name = '{name}'");
    Ok(text(&mut client(server, &[&asked]))?.trim().parse()?)
}

impl Bench {
    /// Sets the server up once, for all of the figures: a thirty-second of the data fits into its memory.
    fn mysql(&self) -> Result<Server<'_>, Failure> {
        let server = self.server("my");
        server.slob(&["setup", "-s", "16", "SCALE=256M", "SCAN_TABLE_SZ=0", "--db-cache", "128M"])?;
        for n in 1..=SESSIONS {
            let made = [("{n}", n), ("{blocks}", BLOCKS), ("{unit}", WORK_UNIT)]
                .iter()
                .fold(LOOP.to_owned(), |made, (word, value)| made.replace(word, &value.to_string()));
            text(&mut client(&server, &[&made]))?;
        }
        Ok(server)
    }

    /// Physical reads a second in batches against the procedure that runs alone, and rows a second as statements of one row
    /// against sysbench.
    pub(crate) fn mysql_reads(&self) -> Result<(), Failure> {
        let server = self.mysql()?;
        let script = self.data.with_file_name("points.lua");
        let filled = POINTS.replace("{sessions}", &SESSIONS.to_string()).replace("{blocks}", &BLOCKS.to_string());
        std::fs::write(&script, filled)?;
        let (mut batches, mut shares, mut points, mut costs) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for round in 0..self.rounds {
            let ((batch, share), alone) = in_turn(round, || self.batches(&server), || self.procedure_alone(&server))?;
            batches.push((batch, alone));
            shares.push(share);
            let (ours, theirs) = in_turn(round, || self.statements(&server), || self.sysbench(&server, &script))?;
            points.push((ours.0, theirs.0));
            costs.push((ours.1, theirs.1));
        }
        let what = format!(
            "InnoDB reads/s, {SESSIONS} sessions, WORK_UNIT {WORK_UNIT}, in batches, against one procedure alone"
        );
        ratios(&what, &batches, 0, Goal::AtLeast(1.0));
        let share = median(shares.into_iter()) * 100.0;
        figure(&format!(
            "| client's share of the processor time that the machine used, batches | {share:.2} % | - | - | at most 2 % | {} |",
            verdict(share <= 2.0)
        ));
        let what = format!(
            "rows/s of InnoDB, {SESSIONS} sessions, WORK_UNIT 1, as statements, against sysbench's point selects"
        );
        ratios(&what, &points, 0, Goal::AtLeast(0.95));
        ratios("the same: client's processor time for each row, us", &costs, 2, Goal::AtMost(1.0));
        server.drop()
    }

    /// Reads a second that InnoDB counted, and the client's share of the processor time used.
    fn batches(&self, server: &Server<'_>) -> Result<(f64, f64), Failure> {
        let run = server.reads(&["--send", "batch", "--no-trace", &format!("WORK_UNIT={WORK_UNIT}")])?;
        Ok((own_rate(&run, "Innodb_data_reads")?, client_share(&run)?))
    }

    fn procedure_alone(&self, server: &Server<'_>) -> Result<f64, Failure> {
        let before = status(server, "innodb_data_reads")?;
        let begins = text(&mut client(server, &[&format!("SELECT SYSDATE(6) + {UNTIL_RIVALS_BEGIN}")]))?;
        let worked_s = at_once(|n| {
            let level = "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED";
            let call = format!("CALL alone_{n}('{}', {})", begins.trim(), self.seconds);
            client(server, &["SET optimizer_switch = 'mrr=off'", level, &call])
        })?;
        Ok((status(server, "innodb_data_reads")? - before) / worked_s)
    }

    /// Rows a second, and the client's processor time for each in microseconds.
    fn statements(&self, server: &Server<'_>) -> Result<(f64, f64), Failure> {
        let run = server.reads(&["--send", "statement", "--no-trace", "WORK_UNIT=1"])?;
        let step = &run["steps"][0];
        let rows = number(&step["counters"]["operations"])?;
        let cpu = &step["process_cpu"];
        let cpu_ns = number(&cpu["user_ns"])? + number(&cpu["system_ns"])?;
        Ok((rows * 1e9 / number(&step["window"]["duration_ns"])?, cpu_ns / 1e3 / rows))
    }

    /// The same of sysbench. Its warm-up counts in both the time and the rows.
    fn sysbench(&self, server: &Server<'_>, script: &Path) -> Result<(f64, f64), Failure> {
        let before = children_cpu()?;
        let printed = text(Command::new("sysbench").arg(script).args([
            "--db-driver=mysql",
            "--mysql-user=root",
            "--mysql-db=plimsoll",
            &format!("--mysql-socket={}", socket(server)),
            &format!("--threads={SESSIONS}"),
            &format!("--time={}", self.seconds),
            "run",
        ]))?;
        let cpu_us = (children_cpu()? - before) * 1e6;
        // `    total number of events:              123456`
        let after = |label: &str| -> Result<f64, Failure> {
            let line = printed.lines().find(|line| line.trim_start().starts_with(label));
            let value = line.and_then(|line| line.split_whitespace().last()).ok_or("sysbench printed no result")?;
            Ok(value.trim_end_matches('s').parse()?)
        };
        let rows = after("total number of events:")?;
        Ok((rows / after("total time:")?, cpu_us / rows))
    }

    /// Set-up of one schema, until it can be used, against the same rows by SQL alone on the same server.
    pub(crate) fn mysql_load(&self) -> Result<(), Failure> {
        let server = self.server("my");
        let mut pairs = Vec::new();
        for round in 0..self.rounds {
            pairs.push(in_turn(round, || server.load(), || rival_load(&server))?);
        }
        ratios(
            "InnoDB leaves/s loaded, indexed and written out, 1 GiB, against INSERT ... SELECT",
            &pairs,
            0,
            Goal::AtLeast(1.5),
        );
        server.drop()
    }

    /// Reads that we report against those that the server and the kernel counted.
    pub(crate) fn mysql_counters(&self) -> Result<(), Failure> {
        let server = self.mysql()?;
        let (mut pages, mut traced) = (Vec::new(), Vec::new());
        for _ in 0..self.rounds {
            let run = server.reads(&[&format!("WORK_UNIT={WORK_UNIT}")])?;
            let step = &run["steps"][0];
            let reported =
                number(&step["counters"]["physical_reads"])? * 1e9 / number(&step["servers"][0]["elapsed_ns"])?;
            pages.push((reported, own_rate(&run, "Innodb_pages_read")?));
            traced.push((reported, traced_reads(&run)?));
        }
        for (whose, pairs) in [("Innodb_pages_read", pages), ("reads of data files traced in the kernel", traced)] {
            let off = median(pairs.iter().map(|(ours, theirs)| (ours / theirs - 1.0).abs())) * 100.0;
            let (ours, theirs) = (median(pairs.iter().map(|pair| pair.0)), median(pairs.iter().map(|pair| pair.1)));
            figure(&format!(
                "| physical reads/s that we report, against {whose} | {ours:.0} | {theirs:.0} | off by {off:.2} % | at most 1 % | {} |",
                verdict(off <= 1.0)
            ));
        }
        server.drop()
    }
}

/// Leaves a second into a table of the same layout: filled in the order of its key, which is the fastest, then rebuilt with two rows a leaf.
fn rival_load(server: &Server<'_>) -> Result<f64, Failure> {
    let is_there =
        "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = 'plimsoll' AND table_name = 'slob_1'";
    if text(&mut client(server, &[is_there])).map_or(true, |reported| reported.trim() != "1") {
        server.load()?;
    }
    let make =
        ["DROP TABLE IF EXISTS rival", "CREATE TABLE rival LIKE slob_1", "ALTER TABLE rival DROP INDEX slob_1_key"];
    text(&mut client(server, &make))?;
    let begin = Instant::now();
    let fill = [
        "INSERT INTO rival SELECT * FROM slob_1 ORDER BY place",
        "SET GLOBAL innodb_fill_factor = 10",
        "ALTER TABLE rival FORCE, ALGORITHM=INPLACE",
        "SET GLOBAL innodb_fill_factor = 100",
        "CREATE UNIQUE INDEX rival_key ON rival (custid)",
        "ANALYZE TABLE rival",
        "FLUSH TABLES rival FOR EXPORT",
        "UNLOCK TABLES",
    ];
    text(&mut client(server, &fill))?;
    let elapsed = begin.elapsed().as_secs_f64();
    text(&mut client(server, &["DROP TABLE rival"]))?;
    Ok(GIB / 16_384.0 / elapsed)
}
