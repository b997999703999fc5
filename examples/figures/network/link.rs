//! What lies between two ends on one machine: nothing, or a pair of virtual interfaces.

use std::ffi::OsStr;
use std::process::Command;

use crate::{Failure, text};

/// One of the two programs.
#[derive(Clone, Copy)]
pub(super) enum End {
    Client,
    Server,
}

/// What both ends are on.
pub(super) struct Link {
    /// In the words of a row.
    pub(super) name: &'static str,
    /// The server's address.
    pub(super) server: &'static str,
    spaces: Option<Spaces>,
}

impl Link {
    pub(super) fn loopback() -> Self {
        Self { name: "loopback", server: "127.0.0.1", spaces: None }
    }

    /// Two network namespaces with a pair of virtual interfaces between them; `None` for an ordinary user.
    pub(super) fn veth() -> Result<Option<Self>, Failure> {
        if text(Command::new("id").arg("-u"))?.trim() != "0" {
            return Ok(None);
        }
        let spaces = Spaces(["client", "server"].map(|end| format!("plimsoll-{}-{end}", std::process::id())));
        let [client, server] = &spaces.0;
        ip(&["netns", "add", client])?;
        ip(&["netns", "add", server])?;
        ip(&["-n", client, "link", "add", "veth0", "type", "veth", "peer", "name", "veth0", "netns", server])?;
        for (space, address) in [(client, "10.77.0.1/24"), (server, "10.77.0.2/24")] {
            ip(&["-n", space, "address", "add", address, "dev", "veth0"])?;
            ip(&["-n", space, "link", "set", "veth0", "up"])?;
        }
        Ok(Some(Self { name: "a veth pair, MTU 1500", server: "10.77.0.2", spaces: Some(spaces) }))
    }

    /// A command at one of the ends.
    pub(super) fn command(&self, end: End, program: &OsStr) -> Command {
        let Some(Spaces(names)) = &self.spaces else { return Command::new(program) };
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &names[end as usize]]).arg(program);
        command
    }
}

/// The client's and the server's namespace; the interfaces go with them.
struct Spaces([String; 2]);

impl Drop for Spaces {
    fn drop(&mut self) {
        for name in &self.0 {
            let _ = ip(&["netns", "delete", name]);
        }
    }
}

fn ip(words: &[&str]) -> Result<(), Failure> {
    text(Command::new("ip").args(words)).map(drop)
}
