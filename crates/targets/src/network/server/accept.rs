//! Who comes in to `plimsoll net serve`, and what for.

use std::fmt::Display;
use std::io;
use std::net::{IpAddr, Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::thread::Scope;
use std::time::Instant;

use super::test::Test;
use super::{Event, ServeError, Shared, control, flow};
use crate::network::wire::{Acceptor, Flow, Known, PROVES_IN, Role, Session, WireError, accept_connections, greet};

/// Lets in whoever comes, until the server is to end.
pub(super) fn attend<'s>(
    shared: &'s Shared<'_>,
    listener: &TcpListener,
    scope: &'s Scope<'s, '_>,
) -> Result<(), ServeError> {
    accept_connections(shared, listener, scope).map_err(|source| ServeError::Accept { address: shared.address, source })
}

impl Acceptor for Shared<'_> {
    fn is_closing(&self) -> bool {
        self.is_ending() || self.is_idle()
    }

    fn attend(&self, stream: Arc<TcpStream>, _from: IpAddr, known: &Known) -> Result<(), WireError> {
        let met = meet(self, &stream);
        known.say();
        met?.attend(self, stream)
    }

    fn turned_away(&self, from: IpAddr, why: &dyn Display) {
        Shared::turned_away(self, from, why);
    }

    fn could_not_take(&self, why: &io::Error) {
        Shared::turned_away(self, self.address.ip(), &format_args!("cannot take a connection: {why}"));
    }
}

/// Somebody who has shown the token.
enum Met {
    Control(Session),
    Data(Flow, Arc<Test>),
}

fn meet(shared: &Shared<'_>, stream: &TcpStream) -> Result<Met, WireError> {
    let test = shared.test();
    let of = || test.as_ref().map(|test| (test.session.clone(), test.number));
    match greet(stream, &shared.key, of, Instant::now() + PROVES_IN)? {
        (Role::Data(flow), _) => Ok(Met::Data(flow, test.ok_or(WireError::NoTest)?)),
        (Role::Part, _) => Err(WireError::malformed("a hello", "parts of a fleet meet elsewhere")),
        (Role::Load, _) => Err(WireError::malformed("a hello", "a load of commits needs a witness")),
        (Role::Control, session) => Ok(Met::Control(session.ok_or(WireError::NoTest)?)),
    }
}

impl Met {
    fn attend(self, shared: &Shared<'_>, stream: Arc<TcpStream>) -> Result<(), WireError> {
        match self {
            Self::Control(session) => {
                // It may just have been closed, to make room.
                let stream = Arc::into_inner(stream).ok_or(WireError::NoTest)?;
                control::attend(shared, stream, session)
            }
            Self::Data(flow, test) => {
                let Some(attending) = test.attend(flow, &stream) else {
                    return Err(WireError::Malformed {
                        what: "a data connection",
                        why: "its number is taken, or beyond the requested ones".to_owned(),
                    });
                };
                if let Err(error) = flow::attend(&test, flow, &stream) {
                    let what = format!("connection {}: {error}", flow.number + 1);
                    test.has_trouble(&what);
                    shared.report(&Event::Trouble { from: test.from, test: test.number, what });
                }
                let _ = stream.shutdown(Shutdown::Both);
                drop(attending);
                Ok(())
            }
        }
    }
}
