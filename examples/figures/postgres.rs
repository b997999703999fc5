//! PostgreSQL in a private cluster: both ways of sending against the same loop inside the server, loading against COPY and
//! INSERT, and traced reads against the server's own count.

use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use serde_json::Value;

use crate::{Asked, Bench, Failure, figure, in_turn, median, number, ratios, run_of, text, verdict};

/// Sessions of the read figures, on as many schemas.
const SESSIONS: usize = 16;
const WORK_UNIT: usize = 64;

/// The SLOB method as one function that runs alone for the whole test, with static statements: the strongest form of it.
const LOOP: &str =
    "CREATE OR REPLACE FUNCTION plimsoll.alone_{n}(seconds integer, scale bigint) RETURNS bigint LANGUAGE plpgsql AS $$
DECLARE
  ends timestamptz := clock_timestamp() + make_interval(secs => seconds);
  first bigint;
  n bigint;
  done bigint := 0;
BEGIN
  WHILE clock_timestamp() < ends LOOP
    first := floor(random() * (scale - 63))::bigint;
    SELECT count(c2) INTO n FROM plimsoll.slob_{n} WHERE custid >= first AND custid < first + 64;
    done := done + 1;
  END LOOP;
  RETURN done;
END $$";

/// What the sessions of the load set for themselves.
const SESSION: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SET jit = off; \
                       SET max_parallel_workers_per_gather = 0; SET plan_cache_mode = force_generic_plan;";

impl Bench {
    fn cluster(&self) -> PathBuf {
        self.data.with_file_name("pg")
    }

    fn cluster_address(&self) -> String {
        format!("pg:{}", self.cluster().display())
    }

    /// A command on the cluster, which is kept running between them: an eighth of the data fits into its memory.
    fn on_cluster(&self, arguments: &[&str]) -> Result<Value, Failure> {
        let address = self.cluster_address();
        let mut all = vec!["slob"];
        all.extend_from_slice(arguments);
        all.extend_from_slice(&["--json", "--quiet", "--target", &address, "--keep-running"]);
        run_of(&self.plimsoll_text(&all)?)
    }

    fn psql(&self, statements: &[&str]) -> Command {
        let mut command = Command::new("psql");
        command.args(["-XqAt", "-v", "ON_ERROR_STOP=1", "-U", "plimsoll", "-d", "plimsoll", "-h"]);
        command.arg(self.cluster().join("run"));
        for statement in statements {
            command.args(["-c", statement]);
        }
        command
    }

    /// Sets the cluster up once, for all of the figures.
    fn with_cluster(&self) -> Result<(), Failure> {
        self.on_cluster(&[
            "setup",
            "-s",
            "16",
            "SCALE=256M",
            "SCAN_TABLE_SZ=0",
            "--db-cache",
            "128M",
            "--host-memory",
            "640M",
        ])?;
        for n in 1..=SESSIONS {
            text(&mut self.psql(&[&LOOP.replace("{n}", &n.to_string())]))?;
        }
        Ok(())
    }

    fn drop_cluster(&self) -> Result<(), Failure> {
        self.plimsoll_text(&["slob", "drop", "--yes", "--target", &self.cluster_address()])?;
        Ok(())
    }

    /// Buffer misses a second in batches and one by one, against the loop that runs alone.
    pub(crate) fn server_reads(&self) -> Result<(), Failure> {
        self.with_cluster()?;
        let (mut batches, mut statements, mut shares) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..self.rounds {
            let ((batch, share), (alone, _)) = in_turn(round, || self.sent("batch"), || Ok((self.alone()?, 0.0)))?;
            batches.push((batch, alone));
            shares.push(share);
            let ((statement, _), (alone, _)) = in_turn(round, || self.sent("statement"), || Ok((self.alone()?, 0.0)))?;
            statements.push((statement, alone));
        }
        let what = |how| {
            format!(
                "PostgreSQL buffer misses/s, {SESSIONS} sessions, WORK_UNIT {WORK_UNIT}, {how}, against one PL/pgSQL function alone"
            )
        };
        ratios(&what("in batches"), &batches, 0, Asked::AtLeast(1.0));
        ratios(&what("as statements"), &statements, 0, Asked::AtLeast(0.98));
        let share = median(shares.into_iter()) * 100.0;
        figure(&format!(
            "| client's share of the processor time that the machine used, batches | {share:.2} % | - | - | at most 2 % | {} |",
            verdict(share <= 2.0)
        ));
        self.drop_cluster()
    }

    /// One run of reads by all sessions, after a warm-up.
    fn read_on_cluster(&self, more: &[&str]) -> Result<Value, Failure> {
        let (run_time, runs) = (format!("RUN_TIME={}", self.seconds), self.runs.display().to_string());
        let words = [
            "run",
            "-s",
            "16",
            "-t",
            "1",
            "UPDATE_PCT=0",
            "WORK_UNIT=64",
            &run_time,
            "--warmup",
            "2s",
            "--runs",
            &runs,
        ];
        self.on_cluster(&[words.as_slice(), more].concat())
    }

    /// Buffer misses a second, and the client's share of the processor time used.
    fn sent(&self, how: &str) -> Result<(f64, f64), Failure> {
        let run = self.read_on_cluster(&["--send", how, "--no-trace"])?;
        let step = &run["steps"][0];
        let misses = number(&step["counters"]["buffer_misses"])? * 1e9 / number(&step["servers"][0]["elapsed_ns"])?;
        let busy = |cpu: &Value| Ok::<_, Failure>(number(&cpu["user_ns"])? + number(&cpu["system_ns"])?);
        Ok((misses, busy(&step["process_cpu"])? / busy(&step["host_cpu"])?))
    }

    /// Buffer misses a second of the loop inside the server.
    fn alone(&self) -> Result<f64, Failure> {
        let misses = || -> Result<f64, Failure> {
            let reported =
                text(&mut self.psql(&["SELECT blks_read FROM pg_stat_database WHERE datname = current_database()"]))?;
            Ok(reported.trim().parse()?)
        };
        let before = misses()?;
        let sessions: Vec<Child> = (1..=SESSIONS)
            .map(|n| {
                let call = format!("SELECT plimsoll.alone_{n}({}, 32768)", self.seconds);
                self.psql(&[SESSION, &call]).stdout(Stdio::null()).spawn()
            })
            .collect::<Result<_, _>>()?;
        for mut session in sessions {
            if !session.wait()?.success() {
                return Err("a session of the loop inside the server failed".into());
            }
        }
        Ok((misses()? - before) / f64::from(self.seconds))
    }

    /// Set-up of one schema, until it can be used, against the same rows by other means on the same server.
    pub(crate) fn server_load(&self) -> Result<(), Failure> {
        let (mut copies, mut inserts) = (Vec::new(), Vec::new());
        for round in 0..self.rounds {
            let (ours, theirs) = in_turn(round, || self.load(), || self.rival("COPY"))?;
            copies.push((ours, theirs));
            let (ours, theirs) = in_turn(round, || self.load(), || self.rival("INSERT"))?;
            inserts.push((ours, theirs));
        }
        let what = |rival| format!("PostgreSQL rows/s loaded, indexed and vacuumed, 1 GiB of blocks, against {rival}");
        ratios(&what("single-stream COPY"), &copies, 0, Asked::AtLeast(1.0));
        ratios(&what("INSERT ... SELECT ... ORDER BY random()"), &inserts, 0, Asked::AtLeast(1.5));
        self.drop_cluster()
    }

    const LOADED_ROWS: f64 = 131_072.0;

    fn load(&self) -> Result<f64, Failure> {
        let reported = self.on_cluster(&["setup", "-s", "1", "SCALE=1G", "SCAN_TABLE_SZ=0", "--replace"])?;
        Ok(Self::LOADED_ROWS * 1e9 / number(&reported["elapsed_ns"])?)
    }

    /// The same rows into a table of the same shape, with the same index, vacuumed and checkpointed.
    fn rival(&self, how: &str) -> Result<f64, Failure> {
        if text(&mut self.psql(&["SELECT to_regclass('plimsoll.slob_1')"]))
            .map_or(true, |reported| reported.trim().is_empty())
        {
            self.load()?;
        }
        // The server may write where its own files are.
        let rows = self.cluster().join("data/rows.bin");
        let export = format!("COPY plimsoll.slob_1 TO '{}' (FORMAT binary)", rows.display());
        let fill = match how {
            "COPY" => format!("COPY public.rival FROM '{}' (FORMAT binary)", rows.display()),
            _ => "INSERT INTO public.rival SELECT * FROM plimsoll.slob_1 ORDER BY random()".to_owned(),
        };
        text(&mut self.psql(&[
            "DROP TABLE IF EXISTS public.rival",
            "CREATE TABLE public.rival (LIKE plimsoll.slob_1 INCLUDING STORAGE) WITH (fillfactor = 10)",
            &export,
            "CHECKPOINT",
        ]))?;
        let begin = Instant::now();
        text(&mut self.psql(&[
            &fill,
            "CREATE UNIQUE INDEX ON public.rival (custid)",
            "VACUUM (ANALYZE) public.rival",
            "CHECKPOINT",
        ]))?;
        let elapsed = begin.elapsed().as_secs_f64();
        text(&mut self.psql(&["DROP TABLE public.rival"]))?;
        std::fs::remove_file(&rows)?;
        Ok(Self::LOADED_ROWS / elapsed)
    }

    /// Reads that the kernel saw against those that the server counted.
    pub(crate) fn traced_reads(&self) -> Result<(), Failure> {
        self.with_cluster()?;
        let mut pairs = Vec::new();
        for _ in 0..self.rounds {
            let run = self.read_on_cluster(&[])?;
            let step = &run["steps"][0];
            let traces = step["traces"].as_array().ok_or("nothing was traced")?;
            let reads = traces.iter().find(|trace| trace["layer"] == "OS file" && trace["event"] == "data read");
            let reads = reads.ok_or("no reads were traced")?;
            let server = &step["servers"][0];
            let rate = |count: &Value, elapsed: &Value| Ok::<_, Failure>(number(count)? * 1e9 / number(elapsed)?);
            pairs.push((
                rate(&reads["count"], &reads["elapsed_ns"])?,
                rate(&server["own"]["pg_stat_database.blks_read"], &server["elapsed_ns"])?,
            ));
        }
        let off = median(pairs.iter().map(|(traced, counted)| (traced / counted - 1.0).abs())) * 100.0;
        let (traced, counted) = (median(pairs.iter().map(|pair| pair.0)), median(pairs.iter().map(|pair| pair.1)));
        figure(&format!(
            "| data reads/s traced in the kernel, against the server's blks_read | {traced:.0} | {counted:.0} | off by {off:.2} % | at most 2 % | {} |",
            verdict(off <= 2.0)
        ));
        self.drop_cluster()
    }
}
