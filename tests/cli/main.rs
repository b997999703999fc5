//! The program as its user meets it: help, errors, exit codes, and whole runs on small data.

mod awr_columns;
mod beside;
mod check;
mod compare;
mod end_to_end;
mod errors;
mod export;
mod fleet;
mod help;
mod host;
mod import;
mod io_calibrate;
mod io_devices;
mod io_orion;
mod io_run;
mod io_soak;
mod io_together;
mod kept_runs;
mod limits;
mod manners;
mod merge;
mod mysql;
mod net;
mod orders_data;
mod orders_load;
mod pages;
mod place;
mod postgres;
mod probe;
mod serve;
mod servers;
mod shells;
#[path = "../common/skip.rs"]
mod skip;
mod sql_script;
mod verdicts;
