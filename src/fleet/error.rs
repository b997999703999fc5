//! Why parts cannot meet, in words.

use std::io;

use targets::network::wire::WireError;

const OTHER_PORT: &str = "another program has that port, perhaps a part 0 of another experiment: choose another port";
const HOST_AND_PORT: &str = "--meet names the host that part 0 runs on, and a port of it";

/// Why a part cannot take part, or not any more.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum FleetError {
    /// A name without an address.
    #[error("the meeting point `{point}` has no address: {source}")]
    #[diagnostic(help("name the host that part 0 runs on as all hosts know it, or give its address"))]
    NoAddress {
        /// As it was named.
        point: String,
        /// The system's reason.
        source: io::Error,
    },
    /// Part 0 cannot listen there.
    #[error("part 0 cannot listen on `{point}`: {source}")]
    #[diagnostic(help("{}", if source.kind() == io::ErrorKind::AddrInUse { OTHER_PORT } else { HOST_AND_PORT }))]
    Listen {
        /// As it was named.
        point: String,
        /// The system's reason.
        source: io::Error,
    },
    /// Nobody takes connections there.
    #[error("the meeting point `{point}` was not reached within {seconds} s: {source}")]
    #[diagnostic(help(
        "see that part 0 has been started, that it runs on that host, and that a firewall lets parts in; `--meet-wait` \
         says how long to try"
    ))]
    Connect {
        /// As it was named.
        point: String,
        /// How long it was tried.
        seconds: u64,
        /// The system's reason.
        source: io::Error,
    },
    /// What both ends say to each other went wrong.
    #[error("the meeting point `{point}`: {source}")]
    #[diagnostic(help("{}", hint_for_wire(source)))]
    Wire {
        /// As it was named.
        point: String,
        /// What went wrong.
        source: WireError,
    },
    /// The meeting point does not want this part.
    #[error("the meeting point `{point}` refuses part {number}: {why}")]
    #[diagnostic(help("give all parts the same command, version and seed; `--dry-run` shows a part's configuration"))]
    Refused {
        /// As it was named.
        point: String,
        /// The part.
        number: u32,
        /// Its reason.
        why: String,
    },
    /// The fleet was stopped before or in the load.
    #[error("the fleet has been stopped: {why}")]
    #[diagnostic(help("`--on-part-end continue` lets the others go on when a part ends early"))]
    Stopped {
        /// The reason that was given.
        why: String,
    },
    /// No thread for it.
    #[error("cannot start a thread for the meeting point: {source}")]
    Thread {
        /// The system's reason.
        source: io::Error,
    },
}

impl FleetError {
    /// What to do about it, where there is something.
    pub fn hint(&self) -> Option<String> {
        model::hint(self)
    }
}

fn hint_for_wire(source: &WireError) -> String {
    match source {
        WireError::TokenRefused | WireError::Unproven => {
            "give all parts the same token in PLIMSOLL_MEET_TOKEN or --meet-token-file".to_owned()
        }
        WireError::Stranger => "another program listens there: choose another port for --meet".to_owned(),
        source => source.hint().unwrap_or_default(),
    }
}
