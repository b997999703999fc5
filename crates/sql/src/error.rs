//! Why a server cannot do what was asked, whoever made it.

use std::fmt::{Debug, Display};

use super::SqlError;
use measure::{ConnectFailure, RefusalClass};
use targets::{DatabaseError, TargetError};

/// The codes by which servers of one product say why they refuse.
pub trait Codes: Debug + Send + 'static {
    /// One of them.
    type Code: Debug + Display + Send + Sync;
    /// The product.
    const PRODUCT: &'static str;
    /// What a code is called.
    const NAME: &'static str = "error";

    /// Whether the next operation would be refused as well. Not so after a deadlock, which only cost its operation.
    fn is_lasting(code: &Self::Code) -> bool;

    /// Whether the server found its data or an index corrupted.
    fn is_corruption(_code: &Self::Code) -> bool {
        false
    }

    /// What a refusal asks for.
    fn hint(_code: &Self::Code) -> Option<&'static str> {
        None
    }

    /// Of which class a refusal is.
    fn class(_code: &Self::Code) -> RefusalClass {
        RefusalClass::Other
    }

    /// Whether it says that a procedure is not there.
    fn lacks_procedure(_code: &Self::Code) -> bool {
        false
    }
}

/// Why something about a server could not be done. No message ever holds a password.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ServerError<C: Codes> {
    /// No connection could be made.
    #[error("cannot connect to {product} at `{node}`: {reason}", product = C::PRODUCT)]
    Connect {
        /// The server.
        node: String,
        /// Why, in one sentence.
        reason: String,
        /// What to do about it.
        #[help]
        hint: Option<String>,
        /// Of which kind that is.
        failure: ConnectFailure,
    },
    /// The user wished an end while a connection was made.
    #[error("interrupted while connecting to {product} at `{node}`", product = C::PRODUCT)]
    Interrupted {
        /// The server.
        node: String,
    },
    /// A connection broke while it was in use.
    #[error("{product} at `{node}` is gone: {reason}", product = C::PRODUCT)]
    #[diagnostic(help("the server's own log says why; what was measured until then is kept"))]
    Lost {
        /// The server.
        node: String,
        /// Why, as far as it is known.
        reason: String,
    },
    /// The server refused a statement.
    #[error("cannot {doing} on `{node}`: {message} ({name} {code})", name = C::NAME)]
    #[diagnostic(help("{}", C::hint(code).unwrap_or_default()))]
    Refused {
        /// The server.
        node: String,
        /// What was tried, such as `create the tables`.
        doing: String,
        /// The server's code for it.
        code: C::Code,
        /// The server's own words.
        message: String,
    },
    /// The server did not answer in time.
    #[error("{product} at `{node}` did not answer for {waited_s} s while it should {doing}", product = C::PRODUCT)]
    #[diagnostic(help("look whether the server and the network to it still answer"))]
    TimedOut {
        /// The server.
        node: String,
        /// What it was asked, such as `execute operations`.
        doing: String,
        /// How long.
        waited_s: u64,
    },
    /// The data are not what was loaded.
    #[error("{table} on `{node}` is damaged: {what}")]
    #[diagnostic(help(
        "another program changed or damaged it; `plimsoll slob verify` says more, and `plimsoll slob setup --replace` \
         makes the data again"
    ))]
    Damaged {
        /// The server.
        node: String,
        /// The table, as it stands in SQL.
        table: String,
        /// What is wrong, with the keys.
        what: String,
    },
    /// Something about the data, the server or this machine stands against it.
    #[error("{what}")]
    Unfit {
        /// What and where, in one sentence.
        what: String,
        /// What to do about it.
        #[help]
        hint: Option<String>,
    },
}

/// The user's request to end is no error of a server.
impl<C: Codes> From<ServerError<C>> for TargetError {
    fn from(error: ServerError<C>) -> Self {
        match error {
            ServerError::Interrupted { .. } => Self::Interrupted,
            error => Self::Database(Box::new(error)),
        }
    }
}

impl<C: Codes> ServerError<C> {
    /// The code and the words of a server of this kind, where it refused a statement.
    pub fn refusal_in(error: &TargetError) -> Option<(&C::Code, &str)> {
        match error.database()? {
            Self::Refused { code, message, .. } => Some((code, message)),
            _ => None,
        }
    }
}

impl<C: Codes> DatabaseError for ServerError<C> {
    fn is_data_fault(&self) -> bool {
        match self {
            Self::Damaged { .. } => true,
            Self::Refused { code, .. } => C::is_corruption(code),
            _ => false,
        }
    }
}

impl<C: Codes> SqlError for ServerError<C>
where
    Self: Into<TargetError>,
{
    fn ends_the_load(&self) -> bool {
        !matches!(self, Self::Refused { code, .. } if !C::is_lasting(code))
    }

    fn connect_failure(&self) -> Option<ConnectFailure> {
        match self {
            Self::Connect { failure, .. } => Some(*failure),
            _ => None,
        }
    }

    fn refusal(&self) -> Option<RefusalClass> {
        match self {
            Self::Refused { code, .. } => Some(C::class(code)),
            _ => None,
        }
    }

    fn lacks_procedure(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if C::lacks_procedure(code))
    }

    fn damaged(node: String, table: String, what: String) -> Self {
        Self::Damaged { node, table, what }
    }

    fn timed_out(node: String, doing: String, waited_s: u64) -> Self {
        Self::TimedOut { node, doing, waited_s }
    }

    fn unfit(what: String, hint: Option<String>) -> Self {
        Self::Unfit { what, hint }
    }
}
