//! An address that requests go to, and what its answers mean.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::shown::shown;
use model::units::Bytes;
use ureq::Agent;
use ureq::tls::{Certificate, PemItem, RootCerts, TlsConfig, TlsProvider, parse_pem};

/// Characters of an answer that are shown.
const ANSWER: usize = 300;
/// Bytes of an answer that are read.
const MOST_ANSWER: u64 = 1 << 16;
/// A request is given so much time in any case.
const LEAST: Duration = Duration::from_millis(50);
/// What names a secret in the query of an address.
const SECRET: [&str; 6] = ["token", "key", "sig", "secret", "pass", "auth"];

/// Why nothing can be sent.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum PushError {
    /// It is not an address of HTTP.
    #[error("{what}: `{url}` is not an address such as `http://localhost:4318`")]
    #[diagnostic(help(
        "write `http://` or `https://`, a host, a port and a path; `--otlp` without one stands before another flag"
    ))]
    Address {
        /// The flag or variable that has it.
        what: String,
        /// What it has.
        url: String,
    },
    /// It has a name and a password, or a key in its query, which would be seen in lists of processes and kept with the run.
    #[error("{what}: the address has a user name, a fragment or a key, which may be secret")]
    #[diagnostic(help("put what proves who you are into `{variable}`, such as `Authorization=Bearer abc`"))]
    Secret {
        /// The flag or variable that has it.
        what: String,
        /// Where secrets belong.
        variable: &'static str,
    },
    /// Another protocol.
    #[error("{variable}: `{protocol}` is not spoken here, only `http/protobuf`")]
    #[diagnostic(help("unset it, and use the port for OTLP over HTTP, which is mostly 4318"))]
    Protocol {
        /// The variable that has it.
        variable: &'static str,
        /// What it has.
        protocol: String,
    },
    /// A variable that cannot be read. Its value may be secret.
    #[error("{variable}: {why}")]
    #[diagnostic(help("{hint}"))]
    Variable {
        /// Its name.
        variable: &'static str,
        /// What is wrong with it.
        why: &'static str,
        /// What it should be.
        hint: &'static str,
    },
    /// A file of certificates that cannot be read.
    #[error("OTEL_EXPORTER_OTLP_CERTIFICATE: `{}`: {why}", shown(&path.to_string_lossy()))]
    #[diagnostic(help("name a file of certificates in PEM format"))]
    Certificate {
        /// Its path.
        path: PathBuf,
        /// Why.
        why: String,
    },
    /// This machine trusts no certificate at all.
    #[error("this machine has no root certificates, so that no server of `https` can be trusted")]
    #[diagnostic(help("install them (`ca-certificates`), or name a file by OTEL_EXPORTER_OTLP_CERTIFICATE"))]
    NoRoots,
    /// The kernel gave no thread.
    #[error("no thread to send to monitoring: {0}")]
    #[diagnostic(help("allow more threads, or leave `--otlp` and `--remote-write` out"))]
    Thread(std::io::Error),
}

/// An address of HTTP without secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Url(String);

impl Url {
    /// What `what` has.
    pub(crate) fn parse(what: &str, variable: &'static str, text: &str) -> Result<Self, PushError> {
        let bad = || PushError::Address { what: what.to_owned(), url: shown(text).into_owned() };
        let secret = || PushError::Secret { what: what.to_owned(), variable };
        let text = text.trim();
        let rest = ["http://", "https://"].iter().find_map(|scheme| text.strip_prefix(scheme));
        // A secret is not repeated, whatever else is wrong.
        let (path, query) = text.split_once('?').unwrap_or((text, ""));
        let query = query.to_ascii_lowercase();
        if text.contains(['@', '#']) || SECRET.iter().any(|name| query.contains(name)) {
            return Err(secret());
        }
        let host = rest.ok_or_else(bad)?.split(['/', '?']).next().unwrap_or_default();
        let uri: ureq::http::Uri = text.parse().map_err(|_| bad())?;
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        if path.is_empty()
            || host.is_empty()
            || uri.host().is_none_or(str::is_empty)
            || has_port && uri.port_u16().is_none()
        {
            return Err(bad());
        }
        Ok(Self(text.to_owned()))
    }

    /// The same with a path behind its own. Who has typed the whole address of metrics or of spans meant what is before that.
    pub(crate) fn and(&self, path: &str) -> Self {
        let (base, query) = self.0.split_at(self.0.find('?').unwrap_or(self.0.len()));
        let base = base.trim_end_matches('/');
        let base = ["/v1/metrics", "/v1/traces"].iter().find_map(|whole| base.strip_suffix(whole)).unwrap_or(base);
        Self(format!("{base}{path}{query}"))
    }
}

impl fmt::Display for Url {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Names and values that go with each request. They may be secret.
#[derive(Clone, Default, PartialEq, Eq)]
pub(crate) struct Headers(pub(crate) Vec<(String, String)>);

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.0.iter().map(|(name, _)| name)).finish()
    }
}

/// How a body is made smaller.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Encoding {
    Plain,
    Gzip,
    /// As Prometheus wants it.
    Snappy,
}

/// Where requests of one kind go.
#[derive(Debug)]
pub(crate) struct Endpoint {
    pub(crate) url: Url,
    headers: Headers,
    encoding: Encoding,
    timeout: Duration,
    agent: Agent,
}

/// Why a request was not accepted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Refused {
    pub(crate) why: String,
    /// Whether the same request may be accepted later.
    pub(crate) is_for_now: bool,
}

impl Endpoint {
    pub(crate) fn new(
        url: Url,
        headers: Headers,
        encoding: Encoding,
        timeout: Duration,
        certificate: Option<&PathBuf>,
    ) -> Result<Self, PushError> {
        let roots = if url.0.starts_with("https://") { roots(certificate)? } else { Vec::new() };
        let tls = TlsConfig::builder()
            .provider(TlsProvider::Rustls)
            .unversioned_rustls_crypto_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .root_certs(RootCerts::new_with_certs(&roots))
            .build();
        let agent = Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            // Nothing goes where no flag says.
            .proxy(None)
            .user_agent(concat!("plimsoll/", env!("CARGO_PKG_VERSION")))
            .tls_config(tls)
            .build();
        Ok(Self { url, headers, encoding, timeout, agent: agent.into() })
    }

    /// Sends one message; gives the answer of who accepted it.
    /// An answer that comes after `until` is none.
    pub(crate) fn post(
        &self,
        message: &[u8],
        more: &[(&str, &str)],
        until: Option<Instant>,
    ) -> Result<Vec<u8>, Refused> {
        let (body, encoding) = match self.encoding {
            Encoding::Plain => (message.to_vec(), None),
            Encoding::Gzip => (gzip(message), Some("gzip")),
            Encoding::Snappy => (snappy(message)?, Some("snappy")),
        };
        let mut request = self.agent.post(&self.url.0).header("Content-Type", "application/x-protobuf");
        for (name, value) in encoding.map(|name| ("Content-Encoding", name)).into_iter().chain(more.iter().copied()) {
            request = request.header(name, value);
        }
        for (name, value) in &self.headers.0 {
            request = request.header(name, value);
        }
        let left =
            until.map_or(self.timeout, |until| until.saturating_duration_since(Instant::now()).min(self.timeout));
        let request = request.config().timeout_global(Some(left.max(LEAST))).build();
        let mut answer =
            request.send(&body[..]).map_err(|error| Refused { why: failure_words(&error), is_for_now: true })?;
        let status = answer.status().as_u16();
        let is_accepted = answer.status().is_success();
        let said = answer.body_mut().with_config().limit(MOST_ANSWER).read_to_vec().unwrap_or_default();
        if is_accepted {
            return Ok(said);
        }
        let why = format!("it answered {status}{}", self.said(&String::from_utf8_lossy(&said)));
        Err(Refused { why, is_for_now: matches!(status, 408 | 429 | 500..) })
    }

    /// The text of an answer behind a colon; nothing where headers were sent, since they may come back in it and may be secret.
    pub(crate) fn said(&self, text: &str) -> String {
        let text: String = text.trim().chars().take(ANSWER).collect();
        if text.is_empty() || !self.headers.0.is_empty() { String::new() } else { format!(": {}", shown(&text)) }
    }
}

/// Why there was no answer.
fn failure_words(error: &ureq::Error) -> String {
    match error {
        ureq::Error::Timeout(_) => "no answer in time".to_owned(),
        ureq::Error::HostNotFound => "the name of its host is not known".to_owned(),
        ureq::Error::Io(error) => shown(&error.to_string()).into_owned(),
        other => shown(&other.to_string()).into_owned(),
    }
}

/// Who may sign the certificate of a server: those in a file, or those that this machine trusts.
fn roots(file: Option<&PathBuf>) -> Result<Vec<Certificate<'static>>, PushError> {
    let Some(path) = file else {
        let found = rustls_native_certs::load_native_certs().certs;
        if found.is_empty() {
            return Err(PushError::NoRoots);
        }
        return Ok(found.iter().map(|certificate| Certificate::from_der(certificate).to_owned()).collect());
    };
    let bad = |why: String| PushError::Certificate { path: path.clone(), why };
    let bytes = model::plain::read_named(path, Bytes::mib(1)).map_err(|error| bad(error.to_string()))?;
    let certificates: Vec<Certificate<'static>> = parse_pem(&bytes)
        .filter_map(|item| match item {
            Ok(PemItem::Certificate(certificate)) => Some(certificate),
            _ => None,
        })
        .collect();
    if certificates.is_empty() { Err(bad("it has no certificate".to_owned())) } else { Ok(certificates) }
}

fn gzip(message: &[u8]) -> Vec<u8> {
    let mut body = Vec::new();
    let mut encoder = flate2::read::GzEncoder::new(message, flate2::Compression::fast());
    // Reading from memory does not fail.
    let _ = std::io::Read::read_to_end(&mut encoder, &mut body);
    body
}

fn snappy(message: &[u8]) -> Result<Vec<u8>, Refused> {
    let too_large = |error: snap::Error| Refused { why: error.to_string(), is_for_now: false };
    snap::raw::Encoder::new().compress_vec(message).map_err(too_large)
}
