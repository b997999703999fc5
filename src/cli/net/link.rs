//! The server that a command talks to: one of another host, or of this process.

use std::net::{SocketAddr, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use super::arguments::LinkOptions;
use crate::cli::exit::Failure;
use crate::cli::recording::{NextStep, Recording};
use crate::cli::token::{self, TokenOf};
use crate::load::StepPlan;
use measure::Clock;
use model::config::net::NetServer;
use model::units::Nanos;
use model::workload::net::NetShape;
use targets::TargetError;
use targets::network::server::{Server, ServerOptions};
use targets::network::wire::Token;
use targets::network::{ClientOptions, NetError, NetTarget, TestOptions};

/// A server that was reached.
pub(super) struct Link {
    target: NetTarget,
    /// Ends with the link.
    own: Option<OwnServer>,
}

impl Link {
    /// Reaches a server.
    pub(super) fn open(server: &NetServer, link_options: &LinkOptions, clock: Clock) -> Result<Self, Failure> {
        let Nanos(timeout_ns) = link_options.timeout;
        if timeout_ns < 1_000_000 {
            let failure = Failure::new("`--timeout` of less than a millisecond leaves no time for an answer");
            return Err(failure.with_hint("give it a time such as `10`, or `500ms`".to_owned()));
        }
        if *server == NetServer::Own && link_options.is_durable {
            let failure = Failure::new("the server of `self` writes nothing, and durable writes are asked for");
            let hint = "start `plimsoll net serve --write DIR` in another terminal, and name that: `--to 127.0.0.1`";
            return Err(failure.with_hint(hint.to_owned()));
        }
        let options = ClientOptions {
            timeout: Duration::from_nanos(timeout_ns),
            sockets: link_options.sockets.clone(),
            is_udp: link_options.is_udp,
            drains: true,
        };
        let (own, addresses, token) = match server {
            NetServer::Own => {
                let (own, address, token) = OwnServer::start()?;
                (Some(own), vec![address], token)
            }
            NetServer::At { host, port } => (None, addresses(server, host, *port)?, token(server, link_options)?),
        };
        let shown = server.to_string();
        let target = NetTarget::open(&shown, &addresses, &token.key(), options, clock)?;
        Ok(Self { target, own })
    }

    /// The target alone, of a server that is not of this process.
    pub(super) fn into_target(self) -> NetTarget {
        self.target
    }

    /// The target.
    pub(super) fn target(&self) -> &NetTarget {
        &self.target
    }

    /// What the user should know.
    pub(super) fn notes(&self) -> Vec<String> {
        let own = self.own.iter().map(|_| {
            "the server is in this process, on loopback: this measures no network, only what this machine can do"
                .to_owned()
        });
        own.collect()
    }

    /// Carries out one step: a test of its own.
    pub(super) fn step(&self, recording: &mut Recording, plan: &StepPlan<NetShape>, what: &str) -> NextStep {
        if !recording.is_going_well() {
            return NextStep::Stop;
        }
        let time = Nanos(plan.warmup.0.saturating_add(plan.duration.0));
        let wanted = TestOptions { what: format!("{what} {}", plan.label), duration: time };
        if let Err(error) = self.target.begin(&plan.shape, &wanted) {
            recording.fail(error);
            return NextStep::Stop;
        }
        let next = recording.step(&self.target, plan);
        let ended = self.target.end();
        for trouble in self.target.take_trouble() {
            recording.note(trouble);
        }
        match ended {
            Ok(_) => next,
            // Only the first error counts: of a step that failed it says why.
            Err(error) => {
                recording.fail(error);
                NextStep::Stop
            }
        }
    }
}

/// Every address of a host.
fn addresses(server: &NetServer, host: &str, port: u16) -> Result<Vec<SocketAddr>, Failure> {
    let none = |source| TargetError::from(NetError::NoAddress { server: server.to_string(), source });
    let found: Vec<SocketAddr> = (host, port).to_socket_addrs().map_err(none)?.collect();
    if found.is_empty() {
        return Err(none(std::io::Error::from(std::io::ErrorKind::NotFound)).into());
    }
    Ok(found)
}

/// The token that the user has for a server.
fn token(server: &NetServer, link_options: &LinkOptions) -> Result<Token, Failure> {
    let given = token::given(TokenOf::Net, link_options.token_file.as_deref())?;
    given.ok_or_else(|| TargetError::from(NetError::NoToken { server: server.to_string() }).into())
}

/// A server in this process. It ends when it is dropped.
struct OwnServer {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl OwnServer {
    fn start() -> Result<(Self, SocketAddr, Token), Failure> {
        let cannot = |error: &dyn std::fmt::Display| -> Failure {
            TargetError::from(NetError::Own { why: error.to_string() }).into()
        };
        let token = Token::random().map_err(|error| cannot(&error))?;
        let server = Server::bind(ServerOptions::own(token.clone())).map_err(|error| cannot(&error))?;
        let address = server.address();
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = Arc::clone(&stop);
        let thread = std::thread::Builder::new().name("own server".to_owned());
        // What goes wrong there, its client hears.
        let serve = move || drop(server.serve(&stopped, &|_| ()));
        let thread = Some(thread.spawn(serve).map_err(|error| cannot(&error))?);
        Ok((Self { stop, thread }, address, token))
    }
}

impl Drop for OwnServer {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // One that panicked has said so.
            let _ = thread.join();
        }
    }
}
