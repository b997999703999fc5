//! PostgreSQL in a private cluster: both ways of sending against the same loop inside the server, loading against COPY and
//! INSERT, and traced reads against the server's own count.

use std::process::Command;
use std::time::Instant;

use crate::server::{
    GIB, SESSIONS, Server, UNTIL_RIVALS_BEGIN, WORK_UNIT, at_once, client_share, own_rate, traced_reads,
};
use crate::{Bench, Failure, Goal, figure, in_turn, median, ratios, text, verdict};

/// The SLOB method as one function that runs alone for the whole test, with static statements: the strongest form of it. Gives the
/// seconds that it worked.
const LOOP: &str =
    "CREATE OR REPLACE FUNCTION plimsoll.alone_{n}(begins timestamptz, seconds integer, scale bigint) RETURNS double precision
LANGUAGE plpgsql AS $$
DECLARE
  ends timestamptz := begins + make_interval(secs => seconds);
  first bigint;
  n bigint;
BEGIN
  IF clock_timestamp() > begins THEN
    RAISE EXCEPTION 'this session began late';
  END IF;
  PERFORM pg_sleep(extract(epoch FROM begins - clock_timestamp()));
  WHILE clock_timestamp() < ends LOOP
    first := floor(random() * (scale - 63))::bigint;
    SELECT count(c2) INTO n FROM plimsoll.slob_{n} WHERE custid >= first AND custid < first + 64;
  END LOOP;
  RETURN extract(epoch FROM clock_timestamp() - begins);
END $$";

/// What the sessions of the load set for themselves.
const SESSION: &str = "SET enable_seqscan = off; SET enable_bitmapscan = off; SET enable_indexonlyscan = off; SET jit = off; \
                       SET max_parallel_workers_per_gather = 0; SET plan_cache_mode = force_generic_plan;";

/// What every session of a cluster's own client begins with.
pub(crate) fn psql(cluster: &Server<'_>, statements: &[&str]) -> Command {
    let mut command = Command::new("psql");
    command.args(["-XqAt", "-v", "ON_ERROR_STOP=1", "-U", "plimsoll", "-d", "plimsoll", "-h"]);
    command.arg(cluster.directory().join("run"));
    for statement in statements {
        command.args(["-c", statement]);
    }
    command
}

/// Buffer misses a second, and the client's share of the processor time used.
fn sent(cluster: &Server<'_>, how: &str) -> Result<(f64, f64), Failure> {
    let run = cluster.reads(&["--send", how, "--no-trace", &format!("WORK_UNIT={WORK_UNIT}")])?;
    Ok((own_rate(&run, "pg_stat_database.blks_read")?, client_share(&run)?))
}

/// Rows a second into a table of the same shape, with the same index, vacuumed and checkpointed.
fn rival_load(cluster: &Server<'_>, how: &str) -> Result<f64, Failure> {
    let is_there = text(&mut psql(cluster, &["SELECT to_regclass('plimsoll.slob_1')"]));
    if is_there.map_or(true, |reported| reported.trim().is_empty()) {
        cluster.load()?;
    }
    // The server may write where its own files are.
    let rows = cluster.directory().join("data/rows.bin");
    let export = format!("COPY plimsoll.slob_1 TO '{}' (FORMAT binary)", rows.display());
    let fill = match how {
        "COPY" => format!("COPY public.rival FROM '{}' (FORMAT binary)", rows.display()),
        _ => "INSERT INTO public.rival SELECT * FROM plimsoll.slob_1 ORDER BY random()".to_owned(),
    };
    text(&mut psql(
        cluster,
        &[
            "DROP TABLE IF EXISTS public.rival",
            "CREATE TABLE public.rival (LIKE plimsoll.slob_1 INCLUDING STORAGE) WITH (fillfactor = 10)",
            &export,
            "CHECKPOINT",
        ],
    ))?;
    let finish = ["CREATE UNIQUE INDEX ON public.rival (custid)", "VACUUM (ANALYZE) public.rival", "CHECKPOINT"];
    let begin = Instant::now();
    text(&mut psql(cluster, &[&[fill.as_str()], finish.as_slice()].concat()))?;
    let elapsed = begin.elapsed().as_secs_f64();
    text(&mut psql(cluster, &["DROP TABLE public.rival"]))?;
    std::fs::remove_file(&rows)?;
    Ok(GIB / 8192.0 / elapsed)
}

impl Bench {
    /// Sets the cluster up once, for all of the figures: an eighth of the data fits into its memory.
    fn cluster(&self) -> Result<Server<'_>, Failure> {
        let cluster = self.server("pg");
        let size =
            ["setup", "-s", "16", "SCALE=256M", "SCAN_TABLE_SZ=0", "--db-cache", "128M", "--host-memory", "640M"];
        cluster.slob(&size)?;
        for n in 1..=SESSIONS {
            text(&mut psql(&cluster, &[&LOOP.replace("{n}", &n.to_string())]))?;
        }
        Ok(cluster)
    }

    /// Buffer misses a second in batches and one by one, against the loop that runs alone.
    pub(crate) fn server_reads(&self) -> Result<(), Failure> {
        let cluster = self.cluster()?;
        let (mut batches, mut statements, mut shares) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..self.rounds {
            let ((batch, share), (alone, _)) =
                in_turn(round, || sent(&cluster, "batch"), || Ok((self.function_alone(&cluster)?, 0.0)))?;
            batches.push((batch, alone));
            shares.push(share);
            let ((statement, _), (alone, _)) =
                in_turn(round, || sent(&cluster, "statement"), || Ok((self.function_alone(&cluster)?, 0.0)))?;
            statements.push((statement, alone));
        }
        let what = |how| {
            format!(
                "PostgreSQL buffer misses/s, {SESSIONS} sessions, WORK_UNIT {WORK_UNIT}, {how}, against one PL/pgSQL function alone"
            )
        };
        ratios(&what("in batches"), &batches, 0, Goal::AtLeast(1.0));
        ratios(&what("as statements"), &statements, 0, Goal::AtLeast(0.98));
        let share = median(shares.into_iter()) * 100.0;
        figure(&format!(
            "| client's share of the processor time that the machine used, batches | {share:.2} % | - | - | at most 2 % | {} |",
            verdict(share <= 2.0)
        ));
        cluster.drop()
    }

    /// Buffer misses a second of the loop inside the server.
    fn function_alone(&self, cluster: &Server<'_>) -> Result<f64, Failure> {
        let misses = || -> Result<f64, Failure> {
            let asked = "SELECT blks_read FROM pg_stat_database WHERE datname = current_database()";
            Ok(text(&mut psql(cluster, &[asked]))?.trim().parse()?)
        };
        let before = misses()?;
        let begins = text(&mut psql(cluster, &[&format!("SELECT clock_timestamp() + {UNTIL_RIVALS_BEGIN}")]))?;
        let call = |n| format!("SELECT plimsoll.alone_{n}('{}', {}, 32768)", begins.trim(), self.seconds);
        let worked_s = at_once(|n| psql(cluster, &[SESSION, &call(n)]))?;
        Ok((misses()? - before) / worked_s)
    }

    /// Set-up of one schema, until it can be used, against the same rows by other means on the same server.
    pub(crate) fn server_load(&self) -> Result<(), Failure> {
        let cluster = self.server("pg");
        let load = || cluster.load();
        let (mut copies, mut inserts) = (Vec::new(), Vec::new());
        for round in 0..self.rounds {
            let (ours, theirs) = in_turn(round, load, || rival_load(&cluster, "COPY"))?;
            copies.push((ours, theirs));
            let (ours, theirs) = in_turn(round, load, || rival_load(&cluster, "INSERT"))?;
            inserts.push((ours, theirs));
        }
        let what = |rival| format!("PostgreSQL rows/s loaded, indexed and vacuumed, 1 GiB of blocks, against {rival}");
        ratios(&what("single-stream COPY"), &copies, 0, Goal::AtLeast(1.0));
        ratios(&what("INSERT ... SELECT ... ORDER BY random()"), &inserts, 0, Goal::AtLeast(1.5));
        cluster.drop()
    }

    /// Reads that the kernel saw against those that the server counted.
    pub(crate) fn traced_reads(&self) -> Result<(), Failure> {
        let cluster = self.cluster()?;
        let mut pairs = Vec::new();
        for _ in 0..self.rounds {
            let run = cluster.reads(&[&format!("WORK_UNIT={WORK_UNIT}")])?;
            pairs.push((traced_reads(&run)?, own_rate(&run, "pg_stat_database.blks_read")?));
        }
        let off = median(pairs.iter().map(|(traced, counted)| (traced / counted - 1.0).abs())) * 100.0;
        let (traced, counted) = (median(pairs.iter().map(|pair| pair.0)), median(pairs.iter().map(|pair| pair.1)));
        figure(&format!(
            "| data reads/s traced in the kernel, against the server's blks_read | {traced:.0} | {counted:.0} | off by {off:.2} % | at most 2 % | {} |",
            verdict(off <= 2.0)
        ));
        cluster.drop()
    }
}
