//! A witness of commits on the host, and the network between it and a guest.
//!
//! QEMU's own network closes its connections when a guest is killed, which no machine does that loses its power. So what the guest says
//! passes through here, and nothing here ever says that it has gone.

use std::io;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

const TOKEN: &str = "the token of a guest";

/// It ends 10 s after its load has fallen silent.
const ENDS_IN: Duration = Duration::from_secs(60);

pub struct Witness {
    process: Child,
    /// Where guests reach it, on this machine.
    port: u16,
    /// Ends of connections to the witness, which stay open as long as this does.
    _open: Arc<Mutex<Vec<TcpStream>>>,
}

impl Witness {
    /// Starts one that writes its notes to `notes`.
    pub fn start(program: &Path, notes: &Path) -> Result<Self, String> {
        let failed = |error: io::Error| format!("the witness: {error}");
        let mut witness = Command::new(program);
        witness.args(["durable", "witness", "--listen", "127.0.0.1:0", "--notes"]).arg(notes);
        witness
            .env("PLIMSOLL_WITNESS_TOKEN", TOKEN)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::inherit());
        let mut process = witness.spawn().map_err(failed)?;
        // The first line of its output is its address.
        let mut said = io::BufReader::new(process.stdout.take().ok_or("the witness has no output")?);
        let mut line = String::new();
        io::BufRead::read_line(&mut said, &mut line).map_err(failed)?;
        let place: std::net::SocketAddr =
            line.trim().parse().map_err(|_| format!("`{line}` is no address of a witness"))?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let open = Arc::new(Mutex::new(Vec::new()));
        let kept = Arc::clone(&open);
        // It ends with this process: a witness has one load, and nobody knows when that comes.
        thread::spawn(move || {
            for guest in listener.incoming().flatten() {
                let Ok(witness) = TcpStream::connect(place) else { continue };
                let (Ok(from_guest), Ok(to_witness)) = (guest.try_clone(), witness.try_clone()) else { continue };
                if let Ok(stays) = witness.try_clone() {
                    kept.lock().unwrap_or_else(PoisonError::into_inner).push(stays);
                }
                thread::spawn(move || carry(from_guest, to_witness));
                thread::spawn(move || carry(witness, guest));
            }
        });
        Ok(Self { process, port, _open: open })
    }

    /// What a load in a guest knows of it, as shell.
    pub fn variables(&self) -> String {
        format!("export WITNESS=10.0.2.2:{} PLIMSOLL_WITNESS_TOKEN='{TOKEN}'\n", self.port)
    }

    /// Waits until it has seen that its load fell silent.
    pub fn ends(&mut self) -> Result<(), String> {
        let began = Instant::now();
        while began.elapsed() < ENDS_IN {
            if let Some(status) = self.process.try_wait().map_err(|error| error.to_string())? {
                return if status.success() { Ok(()) } else { Err(format!("the witness ended with {status}")) };
            }
            thread::sleep(Duration::from_millis(100));
        }
        Err("the witness does not see that its load has gone".to_owned())
    }
}

impl Drop for Witness {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Hands on what comes, and keeps silent where it ends.
fn carry(mut from: TcpStream, mut to: TcpStream) {
    let _ = io::copy(&mut from, &mut to);
}
