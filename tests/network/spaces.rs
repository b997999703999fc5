//! Networks of their own: a client, a router and a server, each in a namespace, with what is planted on the way.

use std::fs::File;
use std::os::fd::AsRawFd;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

/// Where the server is, from the client.
pub const SERVER: &str = "10.77.2.2";
pub const CLIENT: &str = "10.77.1.1";

/// Three namespaces in a row; gone when it is dropped.
pub struct Spaces {
    prefix: String,
}

/// What lies between client and server.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Between {
    /// A router with two pairs of virtual interfaces.
    Router,
    /// A wire that takes time, made of two TUN devices; whoever makes it plants it.
    Wire,
}

impl Spaces {
    /// Or why there are none: no rights, no programs.
    pub fn new(between: Between) -> Result<Self, String> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let spaces = Self { prefix: format!("pl{}n{number}", std::process::id()) };
        for end in ["c", "r", "s"] {
            spaces.try_run("ip", &["netns", "add", &spaces.name(end)])?;
            spaces.run_in(end, "ip", &["link", "set", "lo", "up"]);
        }
        if between == Between::Router {
            for (end, inside, near, far) in [("c", "r0", CLIENT, "10.77.1.2"), ("s", "r1", SERVER, "10.77.2.1")] {
                let router = spaces.name("r");
                let pair = ["link", "add", "e0", "type", "veth", "peer", "name", inside, "netns", &router];
                spaces.run_in(end, "ip", &pair);
                for (space, device, address) in [(end, "e0", near), ("r", inside, far)] {
                    spaces.run_in(space, "ip", &["addr", "add", &format!("{address}/24"), "dev", device]);
                    // Whole segments: what drops or cuts packets is to meet those that go over a wire.
                    spaces.run_in(space, "ip", &["link", "set", device, "gso_max_segs", "1"]);
                    spaces.run_in(space, "ip", &["link", "set", device, "up"]);
                }
                spaces.run_in(end, "ip", &["route", "add", "default", "via", far]);
            }
            spaces.set("r", "ip_forward", "1");
        }
        Ok(spaces)
    }

    pub fn name(&self, end: &str) -> String {
        format!("{}{end}", self.prefix)
    }

    /// Sets `net.ipv4.NAME`.
    pub fn set(&self, end: &str, name: &str, value: &str) {
        self.run_in(end, "sh", &["-c", &format!("echo '{value}' > /proc/sys/net/ipv4/{name}")]);
    }

    pub fn run_in(&self, end: &str, program: &str, words: &[&str]) {
        let name = self.name(end);
        let all: Vec<&str> = ["netns", "exec", &name, program].into_iter().chain(words.iter().copied()).collect();
        self.try_run("ip", &all).unwrap();
    }

    /// A shaper, a token bucket, on the router's way to the server, with all of its credit.
    pub fn shape(&self, rate: &str, burst: &str) {
        // Of one that is there the credit may be used up.
        let removed = ["netns", "exec", &self.name("r"), "tc", "qdisc", "del", "dev", "r1", "root"];
        let _none_was_there = self.try_run("ip", &removed);
        let words = ["qdisc", "add", "dev", "r1", "root", "tbf", "rate", rate, "burst", burst, "latency", "50ms"];
        self.run_in("r", "tc", &words);
    }

    /// A rule on what is sent on by the router, or on what comes in at an end.
    pub fn rule(&self, end: &str, hook: &str, rule: &str) {
        let chain = format!("add table inet t; add chain inet t c {{ type filter hook {hook} priority 0; }};");
        self.run_in(end, "nft", &[&chain]);
        self.run_in(end, "nft", &[&format!("add rule inet t c {rule}")]);
    }

    fn try_run(&self, program: &str, words: &[&str]) -> Result<(), String> {
        let said = Command::new(program).args(words).output().map_err(|error| format!("no `{program}`: {error}"))?;
        if said.status.success() {
            return Ok(());
        }
        Err(format!("{program} {}: {}", words.join(" "), String::from_utf8_lossy(&said.stderr).trim()))
    }

    /// Moves the calling thread, and those that it starts from now on, into a namespace.
    pub fn enter(&self, end: &str) {
        let space = File::open(format!("/run/netns/{}", self.name(end))).unwrap();
        // SAFETY: a plain system call with an open descriptor; it changes nothing but the network of this thread.
        let done = unsafe { libc::setns(space.as_raw_fd(), libc::CLONE_NEWNET) };
        assert_eq!(done, 0, "{}", std::io::Error::last_os_error());
    }
}

impl Drop for Spaces {
    fn drop(&mut self) {
        for end in ["c", "r", "s"] {
            let _ = Command::new("ip").args(["netns", "del", &self.name(end)]).output();
        }
    }
}
