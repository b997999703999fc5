//! Where runs are sent, as flags and the environment say, and what was delivered there.

use std::path::PathBuf;
use std::time::Duration;

use super::endpoint::{Encoding, Endpoint, Headers, PushError, Refused, Url};
use super::{Batch, otlp, remote_write};
use model::shown::shown;
use report::openmetrics::Label;

/// Where OTLP goes if neither the flag nor the environment says.
const COLLECTOR: &str = "http://localhost:4318";
/// Longest that one request may take, unless the environment says.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Shortest time between two requests.
const LEAST_EVERY: Duration = Duration::from_secs(1);

const OF_OTLP: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const OF_REMOTE_WRITE: &str = "PLIMSOLL_REMOTE_WRITE_HEADERS";

/// What the environment has by a name.
type Variables<'a> = &'a dyn Fn(&str) -> Option<String>;

/// Where a run is sent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Destinations {
    otlp: Option<Otlp>,
    remote_write: Option<RemoteWrite>,
    every: Option<Duration>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Otlp {
    metrics: (Url, Headers),
    traces: (Url, Headers),
    encoding: Encoding,
    timeout: Duration,
    certificate: Option<PathBuf>,
    resource: Vec<Label>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct RemoteWrite {
    url: Url,
    headers: Headers,
}

impl Destinations {
    /// Reads what `--otlp` and `--remote-write` have. An empty address of the former is that of the environment. Variables of OpenTelemetry
    /// are looked at only where the flag is given, so that none of them alone makes a run send anything.
    ///
    /// # Errors
    /// If an address or a variable cannot be used.
    pub fn of(otlp: Option<&str>, remote_write: Option<&str>, variables: Variables<'_>) -> Result<Self, PushError> {
        let variables = &|name: &str| variables(name).filter(|value| !value.trim().is_empty());
        let every = milliseconds(variables, "OTEL_METRIC_EXPORT_INTERVAL")?.filter(|_| otlp.is_some());
        Ok(Self {
            otlp: otlp.map(|url| Otlp::of(url, variables)).transpose()?,
            remote_write: remote_write.map(|url| RemoteWrite::of(url, variables)).transpose()?,
            every: every.map(|every| every.max(LEAST_EVERY)),
        })
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.otlp.is_none() && self.remote_write.is_none()
    }

    /// Addresses, as a person reads them.
    pub fn addresses(&self) -> Vec<String> {
        let of_otlp = self.otlp.iter().flat_map(|otlp| [otlp.metrics.0.to_string(), otlp.traces.0.to_string()]);
        of_otlp.chain(self.remote_write.iter().map(|to| to.url.to_string())).collect()
    }

    /// Time between two requests, where the environment has one.
    pub(super) fn every(&self) -> Option<Duration> {
        self.every
    }

    pub(super) fn open(&self) -> Result<Vec<Sending>, PushError> {
        let mut all = Vec::new();
        if let Some(Otlp { metrics, traces, encoding, timeout, certificate, resource }) = &self.otlp {
            let each = [(Message::Metrics(resource.clone()), metrics), (Message::Traces(resource.clone()), traces)];
            for (message, (url, headers)) in each {
                let endpoint = Endpoint::new(url.clone(), headers.clone(), *encoding, *timeout, certificate.as_ref())?;
                all.push(Sending::new(message, endpoint));
            }
        }
        if let Some(RemoteWrite { url, headers }) = &self.remote_write {
            let endpoint = Endpoint::new(url.clone(), headers.clone(), Encoding::Snappy, TIMEOUT, None)?;
            all.push(Sending::new(Message::RemoteWrite, endpoint));
        }
        Ok(all)
    }
}

impl Otlp {
    fn of(url: &str, variables: Variables<'_>) -> Result<Self, PushError> {
        for variable in ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"] {
            if let Some(protocol) = variables(variable).filter(|protocol| protocol.trim() != "http/protobuf") {
                return Err(PushError::Protocol { variable, protocol: shown(&protocol).into_owned() });
            }
        }
        let of_variable =
            |variable: &str| variables(variable).map(|url| Url::parse(variable, OF_OTLP, &url)).transpose();
        let base = if url.trim().is_empty() {
            of_variable("OTEL_EXPORTER_OTLP_ENDPOINT")?.map_or_else(|| Url::parse("--otlp", OF_OTLP, COLLECTOR), Ok)?
        } else {
            Url::parse("--otlp", OF_OTLP, url)?
        };
        // The flag comes before all variables. A variable of one kind has the whole address.
        let is_by_variable = url.trim().is_empty();
        let of_kind = |variable: &str, path: &str| {
            let own = if is_by_variable { of_variable(variable)? } else { None };
            Ok::<Url, PushError>(own.unwrap_or_else(|| base.and(path)))
        };
        let headers = |variable: &'static str| match headers(variables, variable)? {
            Some(own) => Ok::<Headers, PushError>(own),
            None => Ok(headers(variables, OF_OTLP)?.unwrap_or_default()),
        };
        let encoding = match variables("OTEL_EXPORTER_OTLP_COMPRESSION").as_deref().map(str::trim) {
            None | Some("none") => Encoding::Plain,
            Some("gzip") => Encoding::Gzip,
            Some(_) => {
                let (why, hint) = ("it is neither `gzip` nor `none`", "unset it, or use one of them");
                return Err(PushError::Variable { variable: "OTEL_EXPORTER_OTLP_COMPRESSION", why, hint });
            }
        };
        let of_service = variables("OTEL_SERVICE_NAME").map(|name| otlp::text("service.name", name.trim()));
        let given = pairs(variables, "OTEL_RESOURCE_ATTRIBUTES")?.unwrap_or_default();
        let given = given.into_iter().filter(|(name, _)| of_service.is_none() || name != "service.name");
        Ok(Self {
            metrics: (
                of_kind("OTEL_EXPORTER_OTLP_METRICS_ENDPOINT", "/v1/metrics")?,
                headers("OTEL_EXPORTER_OTLP_METRICS_HEADERS")?,
            ),
            traces: (
                of_kind("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "/v1/traces")?,
                headers("OTEL_EXPORTER_OTLP_TRACES_HEADERS")?,
            ),
            encoding,
            timeout: milliseconds(variables, "OTEL_EXPORTER_OTLP_TIMEOUT")?.unwrap_or(TIMEOUT),
            certificate: variables("OTEL_EXPORTER_OTLP_CERTIFICATE").map(PathBuf::from),
            resource: given.chain(of_service.clone()).collect(),
        })
    }
}

impl RemoteWrite {
    fn of(url: &str, variables: Variables<'_>) -> Result<Self, PushError> {
        Ok(Self {
            url: Url::parse("--remote-write", OF_REMOTE_WRITE, url)?,
            headers: headers(variables, OF_REMOTE_WRITE)?.unwrap_or_default(),
        })
    }
}

/// A time of the environment, in whole milliseconds.
fn milliseconds(variables: Variables<'_>, variable: &'static str) -> Result<Option<Duration>, PushError> {
    let Some(text) = variables(variable) else { return Ok(None) };
    let known = text.trim().parse::<u64>().ok().filter(|ms| (1..=3_600_000).contains(ms));
    let bad = PushError::Variable {
        variable,
        why: "it is not a number of milliseconds from 1 to 3600000",
        hint: "unset it, or use a number such as `10000`",
    };
    known.map(|ms| Some(Duration::from_millis(ms))).ok_or(bad)
}

/// Headers of the environment. Their names and values have to be those of HTTP.
fn headers(variables: Variables<'_>, variable: &'static str) -> Result<Option<Headers>, PushError> {
    let Some(pairs) = pairs(variables, variable)? else { return Ok(None) };
    let is_possible = |(name, value): &(String, String)| {
        ureq::http::HeaderName::from_bytes(name.as_bytes()).is_ok() && ureq::http::HeaderValue::from_str(value).is_ok()
    };
    if pairs.iter().all(is_possible) { Ok(Some(Headers(pairs))) } else { Err(no_pairs(variable)) }
}

fn no_pairs(variable: &'static str) -> PushError {
    let (why, hint) = ("it is not a list of names and values", "write `name=value,name=value`");
    PushError::Variable { variable, why, hint }
}

/// `name=value,name=value`, values with `%` as in addresses.
fn pairs(variables: Variables<'_>, variable: &'static str) -> Result<Option<Vec<(String, String)>>, PushError> {
    let Some(text) = variables(variable) else { return Ok(None) };
    let pair = |part: &str| {
        let (name, value) = part.split_once('=')?;
        let value = percent_encoding::percent_decode_str(value.trim()).decode_utf8().ok()?;
        (!name.trim().is_empty()).then(|| (name.trim().to_owned(), value.into_owned()))
    };
    let parts = text.split(',').filter(|part| !part.trim().is_empty());
    parts.map(pair).collect::<Option<Vec<_>>>().map(Some).ok_or_else(|| no_pairs(variable))
}

/// What is sent to a destination.
#[derive(Debug)]
enum Message {
    Metrics(Vec<Label>),
    Traces(Vec<Label>),
    RemoteWrite,
}

/// A destination, and what it has by now.
#[derive(Debug)]
pub(super) struct Sending {
    message: Message,
    endpoint: Endpoint,
    /// Steps whose results it has accepted or refused for good.
    sent: usize,
    requests: u64,
    failed: u64,
    lost_steps: usize,
    rejected: i64,
    /// Why the last request failed; absent where it did not.
    last: Option<Refused>,
}

/// What came of a destination.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Delivery {
    address: String,
    requests: u64,
    failed: u64,
    /// Steps whose results it does not have.
    lost_steps: usize,
    rejected: i64,
    /// Why the last request failed; absent where it did not.
    last: Option<String>,
}

impl Sending {
    fn new(message: Message, endpoint: Endpoint) -> Self {
        Self { message, endpoint, sent: 0, requests: 0, failed: 0, lost_steps: 0, rejected: 0, last: None }
    }

    /// Sends what it does not have yet; gives what is worth saying the first time that something is wrong.
    pub(super) fn send(&mut self, batch: &Batch<'_>) -> Option<String> {
        let all = batch.finished.len();
        let batch = Batch { finished: &batch.finished[self.sent.min(all)..], ..*batch };
        let (body, more): (Vec<u8>, &[(&str, &str)]) = match &self.message {
            Message::Metrics(resource) => (otlp::metrics(&batch, resource), &[]),
            Message::Traces(resource) => (otlp::spans(&batch, resource), &[]),
            Message::RemoteWrite => (remote_write::request(&batch), &remote_write::HEADERS),
        };
        if body.is_empty() {
            return None;
        }
        self.requests += 1;
        let is_first = self.failed == 0 && self.rejected == 0;
        match self.endpoint.post(&body, more) {
            Ok(answer) => {
                (self.sent, self.last) = (all, None);
                let of_otlp = matches!(self.message, Message::Metrics(_) | Message::Traces(_));
                let (rejected, why) = otlp::rejected(&answer).filter(|_| of_otlp)?;
                self.rejected = self.rejected.saturating_add(rejected);
                is_first.then(|| format!("{}: {rejected} values were rejected: {}", self.endpoint.url, shown(&why)))
            }
            Err(refused) => {
                self.failed += 1;
                if !refused.is_for_now {
                    self.lost_steps += all - self.sent;
                    self.sent = all;
                }
                let words = format!("{}: {}; the run goes on", self.endpoint.url, refused.why);
                self.last = Some(refused);
                is_first.then_some(words)
            }
        }
    }

    /// Whether what failed last may succeed when it is sent again.
    pub(super) fn is_retryable(&self) -> bool {
        self.last.as_ref().is_some_and(|refused| refused.is_for_now)
    }

    /// What came of it, of a run with so many steps.
    pub(super) fn delivery(self, steps: usize) -> Delivery {
        Delivery {
            address: self.endpoint.url.to_string(),
            requests: self.requests,
            failed: self.failed,
            lost_steps: self.lost_steps + (steps - self.sent.min(steps)),
            rejected: self.rejected,
            last: self.last.map(|refused| refused.why),
        }
    }
}

impl Delivery {
    /// What was not delivered, in words; absent where all of it was in the end.
    pub(super) fn words(&self) -> Option<String> {
        let Self { address, requests, failed, lost_steps, rejected, last } = self;
        let of_steps = match lost_steps {
            0 => String::new(),
            1 => "; the results of 1 step are not there".to_owned(),
            steps => format!("; the results of {steps} steps are not there"),
        };
        match last {
            Some(why) => {
                Some(format!("{address}: {failed} of {requests} requests failed, the last one too ({why}){of_steps}"))
            }
            None if *lost_steps > 0 => Some(format!("{address}: {failed} of {requests} requests failed{of_steps}")),
            None if *rejected > 0 => Some(format!("{address}: {rejected} values were rejected")),
            None => None,
        }
    }
}
