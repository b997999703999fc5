//! Why a server cannot do what was asked, whoever made it.

use measure::{ConnectFailure, RefusalClass};
use model::record::TargetKind;
use model::units::Bytes;
use targets::{DatabaseError, TargetError};

/// A product, whose servers say by codes why they refuse.
#[derive(Debug)]
pub struct Product {
    /// Its name.
    pub name: &'static str,
    /// Kind of its servers as targets, in the record.
    pub kind: TargetKind,
    /// What a code is called.
    pub code: &'static str,
    /// What a refusal with this code means.
    pub meaning: fn(code: &str) -> Meaning,
}

/// What a refusal means.
#[derive(Debug)]
pub struct Meaning {
    /// Whether the next operation would be refused as well. Not so after a deadlock, which only cost its operation.
    pub is_lasting: bool,
    /// Whether the server found its data or an index corrupted.
    pub is_corruption: bool,
    /// Whether it says that a procedure is not there.
    pub lacks_procedure: bool,
    /// Of which class it is.
    pub class: RefusalClass,
    /// What it asks for.
    pub hint: Option<&'static str>,
}

impl Product {
    /// A connection to a server broke while it was in use.
    pub fn lost(&'static self, node: impl Into<String>, reason: impl Into<String>) -> ServerError {
        ServerError::Lost { product: self, node: node.into(), reason: reason.into() }
    }

    /// The user wished an end while a connection to `node` was made.
    pub fn interrupted(&'static self, node: impl Into<String>) -> ServerError {
        ServerError::Interrupted { product: self, node: node.into() }
    }

    /// A server refused to do `doing`, such as `create the tables`, in its own words.
    pub fn refused(
        &'static self,
        node: impl Into<String>,
        doing: impl Into<String>,
        code: impl ToString,
        message: impl Into<String>,
    ) -> ServerError {
        let (node, doing, code, message) = (node.into(), doing.into(), code.to_string(), message.into());
        ServerError::Refused { product: self, node, doing, code, message }
    }

    /// A server has not answered for `waited_s` seconds while it should do `doing`.
    pub fn timed_out(&'static self, node: impl Into<String>, doing: impl Into<String>, waited_s: u64) -> ServerError {
        ServerError::TimedOut { product: self, node: node.into(), doing: doing.into(), waited_s }
    }
}

/// Why something about a server could not be done. No message ever holds a password.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ServerError {
    /// No connection could be made.
    #[error("cannot connect to {product} at `{node}`: {reason}", product = product.name)]
    Connect {
        /// Of which product it is.
        product: &'static Product,
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
    #[error("interrupted while connecting to {product} at `{node}`", product = product.name)]
    Interrupted {
        /// Of which product it is.
        product: &'static Product,
        /// The server.
        node: String,
    },
    /// A connection broke while it was in use.
    #[error("{product} at `{node}` is gone: {reason}", product = product.name)]
    #[diagnostic(help("the server's own log says why; what was measured until then is kept"))]
    Lost {
        /// Of which product it is.
        product: &'static Product,
        /// The server.
        node: String,
        /// Why, as far as it is known.
        reason: String,
    },
    /// The kernel ended the server, or a process of it, which needed more memory than its control group may have.
    #[error(
        "the out-of-memory killer of the kernel ended {product} at `{node}`: its control group is limited to {limit}",
        product = product.name
    )]
    #[diagnostic(help("use a larger `--host-memory`, a smaller `--db-cache` or fewer sessions"))]
    KilledForMemory {
        /// Of which product it is.
        product: &'static Product,
        /// The server.
        node: String,
        /// The limit.
        limit: Bytes,
    },
    /// The server refused a statement.
    #[error("cannot {doing} on `{node}`: {message} ({name} {code})", name = product.code)]
    #[diagnostic(help("{}", (product.meaning)(code).hint.unwrap_or_default()))]
    Refused {
        /// Of which product it is.
        product: &'static Product,
        /// The server.
        node: String,
        /// What was tried, such as `create the tables`.
        doing: String,
        /// The server's code for it.
        code: String,
        /// The server's own words.
        message: String,
    },
    /// The server did not answer in time.
    #[error("{product} at `{node}` did not answer for {waited_s} s while it should {doing}", product = product.name)]
    #[diagnostic(help("look whether the server and the network to it still answer"))]
    TimedOut {
        /// Of which product it is.
        product: &'static Product,
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
impl From<ServerError> for TargetError {
    fn from(error: ServerError) -> Self {
        match error {
            ServerError::Interrupted { .. } => Self::Interrupted,
            error => Self::Database(Box::new(error)),
        }
    }
}

impl ServerError {
    /// The data are not what was loaded: `what` is wrong with `table` on `node`.
    pub fn damaged(node: String, table: String, what: String) -> Self {
        Self::Damaged { node, table, what }
    }

    /// Something about the data or the server stands against it.
    pub fn unfit(what: impl Into<String>, hint: Option<String>) -> Self {
        Self::Unfit { what: what.into(), hint }
    }

    /// The code and the words of a server that refused a statement.
    pub fn refusal_in(error: &TargetError) -> Option<(&str, &str)> {
        match error.database()? {
            Self::Refused { code, message, .. } => Some((code, message)),
            _ => None,
        }
    }

    fn meaning(&self) -> Option<Meaning> {
        match self {
            Self::Refused { product, code, .. } => Some((product.meaning)(code)),
            _ => None,
        }
    }

    /// Whether going on makes no sense: the server, the connection, the data or the right to them are gone. Not so where the
    /// error only cost its operation, as after a deadlock.
    pub fn ends_the_load(&self) -> bool {
        self.meaning().is_none_or(|meaning| meaning.is_lasting)
    }

    /// Why no connection came about; `None` where one was there.
    pub fn connect_failure(&self) -> Option<ConnectFailure> {
        match self {
            Self::Connect { failure, .. } => Some(*failure),
            _ => None,
        }
    }

    /// Why the server refused; `None` where it was no refusal, after which a connection cannot be used any more.
    pub fn refusal(&self) -> Option<RefusalClass> {
        self.meaning().map(|meaning| meaning.class)
    }

    /// Whether a procedure is not there.
    pub fn lacks_procedure(&self) -> bool {
        self.meaning().is_some_and(|meaning| meaning.lacks_procedure)
    }
}

impl DatabaseError for ServerError {
    fn is_data_fault(&self) -> bool {
        matches!(self, Self::Damaged { .. }) || self.meaning().is_some_and(|meaning| meaning.is_corruption)
    }
}

/// The words of the cause behind all causes.
pub(crate) fn innermost(error: &dyn std::error::Error) -> String {
    let mut cause = error;
    while let Some(deeper) = cause.source() {
        cause = deeper;
    }
    cause.to_string()
}
