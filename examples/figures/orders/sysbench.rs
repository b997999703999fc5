//! The load against sysbench, which sends the same statements by a script of its own kind.

use std::path::Path;
use std::process::Command;

use super::{Length, Outcome, USERS, need, shown};
use crate::mysql::socket;
use crate::server::Server;
use crate::{Bench, Failure, Goal, text};

/// What sysbench can do too: it cannot use what a prepared statement answers.
const MIXES: [(&str, &str); 2] =
    [("SQ=1", "sales rep query, one statement"), ("SQ=2,WQ=1,WA=1,BP=90", "mix of browsing and three queries")];

fn sysbench(server: &Server<'_>, script: &Path, length: Length) -> Command {
    let mut command = Command::new("sysbench");
    command.arg(script).arg(format!("--threads={USERS}"));
    if server.is_postgres() {
        command.args(["--db-driver=pgsql", "--pgsql-user=plimsoll", "--pgsql-db=plimsoll"]);
        command.arg(format!("--pgsql-host={}", shown(&server.directory().join("run"))));
    } else {
        command.args(["--db-driver=mysql", "--mysql-user=root", "--mysql-db=plimsoll"]);
        command.arg(format!("--mysql-socket={}", socket(server)));
    }
    match length {
        Length::Once => command.args(["--time=0".to_owned(), format!("--events={USERS}")]),
        Length::Seconds(seconds) => command.args(["--events=0".to_owned(), format!("--time={seconds}")]),
    };
    command.arg("run");
    command
}

/// Has sysbench put load on, and says how many transactions it did, and how many a second.
fn load(server: &Server<'_>, script: &Path, length: Length) -> Result<(f64, f64), Failure> {
    let printed = text(&mut sysbench(server, script, length))?;
    // `    total number of events:              123456`
    let after = |label: &str| -> Result<f64, Failure> {
        let line = printed.lines().find(|line| line.trim_start().starts_with(label));
        let value = line.and_then(|line| line.split_whitespace().last()).ok_or("sysbench printed no result")?;
        Ok(value.trim_end_matches('s').parse()?)
    };
    let done = after("total number of events:")?;
    Ok((done, done / after("total time:")?))
}

impl Bench {
    pub(crate) fn orders_sysbench(&self) -> Result<(), Failure> {
        need(&["sysbench", "psql"])?;
        self.against_sysbench("pg", "PostgreSQL")
    }

    pub(crate) fn orders_mariadb(&self) -> Result<(), Failure> {
        need(&["sysbench", "mariadb"])?;
        self.against_sysbench("my", "MariaDB")
    }

    fn against_sysbench(&self, scheme: &'static str, name: &str) -> Result<(), Failure> {
        self.on_orders(scheme, super::SCALE, |server| {
            for (mix, what) in MIXES {
                let script = self.sysbench_script(server, mix)?;
                let theirs =
                    || -> Result<Outcome, Failure> { self.rival(server, |length| load(server, &script, length)) };
                let pairs = self.turns(mix, || self.users(server, &["--mix", mix]), theirs)?;
                pairs.print(&format!("{name}, {USERS} users, {what}, against sysbench"), Goal::Nothing);
            }
            Ok(())
        })
    }
}
