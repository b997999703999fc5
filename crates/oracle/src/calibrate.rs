//! `CALIBRATE_IO`: the database measures its own storage.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;

use super::connect::Connector;
use super::driver::{DB_TYPE_NUMBER, ToDbValue};
use ::sql::ServerError;
use ::sql::data::streams::LOOK_AROUND;
use ::sql::database::APPLICATION;
use model::config::oracle::{OracleAddress, OracleRole};
use targets::TargetError;
use targets::database::{IoCalibration, IoCalibrationRequest, Method};

/// Bound are disks and milliseconds; it puts out reads a second, megabytes a second, and milliseconds.
const CALIBRATE: &str = "DECLARE
  iops PLS_INTEGER;
  mbps PLS_INTEGER;
  latency PLS_INTEGER;
BEGIN
  DBMS_RESOURCE_MANAGER.CALIBRATE_IO(
    num_physical_disks => :disks,
    max_latency => :max_latency,
    max_iops => iops,
    max_mbps => mbps,
    actual_latency => latency);
  :max_iops := iops;
  :max_mbps := mbps;
  :actual_latency := latency;
END;";

/// Has the database calibrate its storage once, which takes minutes. When `stop` is set it is left to the database, which cannot
/// be asked to end it.
///
/// # Errors
/// When the address has no role that may do it, or the database refuses or is gone.
pub fn calibrate_io(
    address: &OracleAddress,
    request: &IoCalibrationRequest,
    stop: &AtomicBool,
) -> Result<IoCalibration, TargetError> {
    if address.role != Some(OracleRole::Sysdba) {
        let what = "CALIBRATE_IO is for SYSDBA alone: it reads every data file as fast as storage lets it".to_owned();
        let hint = "log in so: `oracle://sys@HOST/SERVICE?role=sysdba`".to_owned();
        return Err(ServerError::Unfit { what, hint: Some(hint) }.into());
    }
    let connected = Connector::new(address, APPLICATION, false, Method::default())?.connect(0)?;
    connected.name_work(APPLICATION, "calibrate");
    let (sender, done) = mpsc::sync_channel(1);
    let (disks, max_latency) = (request.disks, request.max_latency_ms);
    let thread = std::thread::Builder::new().name("oracle-calibrate".to_owned()).spawn(move || {
        let doing = "calibrate its storage";
        let values: [&dyn ToDbValue; 5] = [&disks, &max_latency, &DB_TYPE_NUMBER, &DB_TYPE_NUMBER, &DB_TYPE_NUMBER];
        let answer = connected.call(doing, CALIBRATE, &values).and_then(|row| {
            let number = |column: usize| row.get::<u64>(column).map_err(|error| connected.error(doing, &error));
            Ok(IoCalibration { max_iops: number(0)?, max_mb_per_s: number(1)?, latency_ms: number(2)? })
        });
        let _ = sender.send(answer);
    });
    thread.map_err(|source| TargetError::Kernel { action: "start a thread", source })?;
    loop {
        match done.recv_timeout(LOOK_AROUND) {
            Ok(answer) => return Ok(answer?),
            Err(mpsc::RecvTimeoutError::Timeout) if !stop.load(Ordering::Relaxed) => {}
            Err(mpsc::RecvTimeoutError::Timeout) => return Err(TargetError::Interrupted),
            Err(mpsc::RecvTimeoutError::Disconnected) => return Err(TargetError::Stopped),
        }
    }
}
