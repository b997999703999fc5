//! Reports that a database makes of itself: asked for, and agreed to.

use clap::Args;

use crate::cli::exit::Failure;
use model::config::TargetAddress;
use targets::OwnReportKind;
use targets::database::DatabaseOptions;

/// What somebody writes who has the licence that AWR needs. Nothing shorter: it is not to be written by habit.
const CONSENT: &str = "yes, the Diagnostics Pack is licensed";

/// Which report of its own a database is asked for.
#[derive(Debug, Args)]
pub(super) struct OwnReportArgs {
    /// Have Oracle report on each window by AWR too, and lay that beside our figures. AWR is licensed besides the database,
    /// so the value is: "yes, the Diagnostics Pack is licensed"
    #[arg(long, value_name = "CONSENT", conflicts_with = "statspack", help_heading = "Database servers")]
    awr: Option<String>,

    /// Have Oracle report on each window by Statspack too, which needs no licence, and lay that beside our figures
    #[arg(long, help_heading = "Database servers")]
    statspack: bool,
}

impl OwnReportArgs {
    /// Adds it to how the database at an address is used.
    ///
    /// # Errors
    /// When nobody has agreed to AWR, or the database has no such reports.
    pub(super) fn add_to(&self, options: DatabaseOptions, address: &TargetAddress) -> Result<DatabaseOptions, Failure> {
        let (flag, kind) = match (&self.awr, self.statspack) {
            (None, false) => return Ok(options),
            (None, true) => ("--statspack", OwnReportKind::Statspack),
            (Some(_), _) => ("--awr", OwnReportKind::Awr),
        };
        if !matches!(address, TargetAddress::Oracle(_)) {
            let failure = Failure::new(format_args!("`{flag}` is for Oracle, not for `{address}`"));
            return Err(failure.with_hint("leave it out".to_owned()));
        }
        if let Some(given) = self.awr.as_ref().filter(|given| *given != CONSENT) {
            let failure = Failure::new(format_args!(
                "`--awr {given}` does not say that AWR may be used: it belongs to Oracle's Diagnostics Pack, which is licensed \
                 besides the database, and each use of it is counted there"
            ));
            return Err(failure.with_hint(format!(
                "if this database is licensed for it, write exactly: --awr \"{CONSENT}\"; if not, Statspack needs no licence: \
                 `--statspack`"
            )));
        }
        Ok(DatabaseOptions { own_report: Some(kind), ..options })
    }
}
