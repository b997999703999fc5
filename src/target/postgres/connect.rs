//! Connections to PostgreSQL servers.

use std::time::Duration;

use tokio_postgres::{CancelToken, Client, Config, NoTls};

use super::error::PostgresError;
use super::sql::SESSION_SETTINGS;
use crate::config::postgres::{PostgresAddress, PostgresNode};

/// Longest wait for a connection where nobody says otherwise.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// Makes connections to the servers of one address.
#[derive(Debug, Clone)]
pub struct Connector {
    address: PostgresAddress,
    application: String,
}

/// A connection. It lives while the client and the runtime that made it do.
#[derive(Debug)]
pub struct Connected {
    /// Where statements are sent.
    pub client: Client,
    /// Process number of the server's side.
    pub server_pid: i32,
}

impl Connector {
    /// For the servers of `address`. Connections are known to the server as `application`.
    ///
    /// # Errors
    /// When something that the address needs is missing or cannot be read.
    pub fn new(address: &PostgresAddress, application: &str) -> Result<Self, PostgresError> {
        Ok(Self { address: address.clone(), application: application.to_owned() })
    }

    /// The servers, in the order of the address.
    pub fn nodes(&self) -> &[PostgresNode] {
        &self.address.nodes
    }

    /// The application's name as the server shows it.
    pub fn application(&self) -> &str {
        &self.application
    }

    /// Connects to server number `node` for any purpose. Must be called in a tokio runtime, which drives the connection.
    ///
    /// # Errors
    /// [`PostgresError::Connect`], with what to do about it.
    pub async fn connect(&self, node: usize) -> Result<Connected, PostgresError> {
        let at = &self.address.nodes[node];
        let refused = |reason: String| PostgresError::Connect { node: at.to_string(), reason, hint: None };
        let mut config = Config::new();
        config.host(&at.host).port(at.port).application_name(&self.application).connect_timeout(CONNECT_TIMEOUT);
        config.user(self.address.user.as_deref().unwrap_or("postgres"));
        if let Some(database) = &self.address.database {
            config.dbname(database);
        }
        if let Some(password) = &self.address.password {
            config.password(password.expose());
        }
        let (client, connection) = config.connect(NoTls).await.map_err(|error| refused(error.to_string()))?;
        tokio::spawn(connection);
        let row = client.query_one("SELECT pg_backend_pid()", &[]).await.map_err(|error| refused(error.to_string()))?;
        Ok(Connected { client, server_pid: row.get(0) })
    }

    /// Asks the server to cancel what this session executes. Whether there was something is not told.
    ///
    /// # Errors
    /// When the server cannot be reached.
    pub async fn cancel(&self, session: &CancelToken) -> Result<(), tokio_postgres::Error> {
        session.cancel_query(NoTls).await
    }

    /// Connects a session that executes operations: with [`SESSION_SETTINGS`].
    ///
    /// # Errors
    /// As [`connect`](Self::connect).
    pub async fn connect_session(&self, node: usize) -> Result<Connected, PostgresError> {
        let connected = self.connect(node).await?;
        let settings: Vec<String> =
            SESSION_SETTINGS.iter().map(|(name, value)| format!("SET {name} = {value}")).collect();
        let refused = |error: tokio_postgres::Error| PostgresError::Connect {
            node: self.address.nodes[node].to_string(),
            reason: error.to_string(),
            hint: None,
        };
        connected.client.batch_execute(&settings.join("; ")).await.map_err(refused)?;
        Ok(connected)
    }
}
