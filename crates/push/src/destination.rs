//! Where runs are sent, as flags and the environment say, and what was delivered there.

use std::collections::BTreeMap;
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
        let every = otlp.map_or(Ok(None), |_| milliseconds(variables, "OTEL_METRIC_EXPORT_INTERVAL"))?;
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

    /// The addresses, as a person reads them.
    ///
    /// # Errors
    /// If one of them cannot be set up, such as by a certificate that cannot be read.
    pub fn check(&self) -> Result<Vec<String>, PushError> {
        Ok(self.open()?.iter().map(Sending::address).collect())
    }

    /// Time between two requests, where the environment has one.
    pub(super) fn every(&self) -> Option<Duration> {
        self.every
    }

    pub(super) fn open(&self) -> Result<Vec<Sending>, PushError> {
        let mut all = Vec::new();
        if let Some(Otlp { metrics, traces, encoding, timeout, certificate, resource }) = &self.otlp {
            let each = [(Protocol::Metrics(resource.clone()), metrics), (Protocol::Traces(resource.clone()), traces)];
            for (protocol, (url, headers)) in each {
                let endpoint = Endpoint::new(url.clone(), headers.clone(), *encoding, *timeout, certificate.as_ref())?;
                all.push(Sending::new(protocol, endpoint));
            }
        }
        if let Some(RemoteWrite { url, headers }) = &self.remote_write {
            let endpoint = Endpoint::new(url.clone(), headers.clone(), Encoding::Snappy, TIMEOUT, None)?;
            all.push(Sending::new(Protocol::RemoteWrite, endpoint));
        }
        Ok(all)
    }
}

impl Otlp {
    fn of(url: &str, variables: Variables<'_>) -> Result<Self, PushError> {
        let of_variable =
            |variable: &str| variables(variable).map(|url| Url::parse(variable, OF_OTLP, &url)).transpose();
        let base = if url.trim().is_empty() {
            of_variable("OTEL_EXPORTER_OTLP_ENDPOINT")?.map_or_else(|| Url::parse("--otlp", OF_OTLP, COLLECTOR), Ok)?
        } else {
            Url::parse("--otlp", OF_OTLP, url)?
        };
        // The flag comes before all variables of addresses. One of a kind of signals has the whole address.
        let is_by_variable = url.trim().is_empty();
        let of_kind = |variable: &str, path: &str| {
            let own = if is_by_variable { of_variable(variable)? } else { None };
            Ok::<Url, PushError>(own.unwrap_or_else(|| base.and(path)))
        };
        // Ports differ by protocol, so that of another one cannot be used; an address that is typed is one of HTTP.
        for of_signal in ["OTEL_EXPORTER_OTLP_METRICS_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] {
            let known = [of_signal, "OTEL_EXPORTER_OTLP_PROTOCOL"]
                .into_iter()
                .find_map(|variable| Some((variable, variables(variable)?)));
            if let Some((variable, protocol)) = known.filter(|(_, protocol)| protocol.trim() != "http/protobuf")
                && is_by_variable
            {
                return Err(PushError::Protocol { variable, protocol: shown(&protocol).into_owned() });
            }
        }
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
        // The last one of a name counts, as it stands there only once.
        let given: BTreeMap<String, String> = given.into_iter().chain(of_service).collect();
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
            resource: given.into_iter().collect(),
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
        let is_own = ["content-type", "content-encoding", "content-length", "host"];
        !is_own.contains(&name.to_ascii_lowercase().as_str())
            && ureq::http::HeaderName::from_bytes(name.as_bytes()).is_ok()
            && ureq::http::HeaderValue::from_str(value).is_ok()
    };
    if pairs.iter().all(is_possible) { Ok(Some(Headers(pairs))) } else { Err(no_pairs(variable)) }
}

fn no_pairs(variable: &'static str) -> PushError {
    let (why, hint) =
        ("it is not a list of names and values, or has one that is set here", "write `name=value,name=value`");
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

/// How messages are encoded.
#[derive(Debug)]
enum Protocol {
    Metrics(Vec<Label>),
    Traces(Vec<Label>),
    RemoteWrite,
}

/// What one request has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Part {
    /// What the run counts.
    Current,
    /// Results of steps, and spans.
    Results,
    /// That what the run counts has ended.
    Ends,
}

/// A destination, and what it has by now.
#[derive(Debug)]
pub(super) struct Sending {
    protocol: Protocol,
    endpoint: Endpoint,
    /// Steps whose results it has accepted or refused for good.
    sent: usize,
    /// Whether it knows that the run has ended.
    knows_end: bool,
    /// When values were sent last: no later ones may be older, or as old.
    last_unix_ns: u64,
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
    pub(super) address: String,
    requests: u64,
    failed: u64,
    /// Steps whose results it does not have.
    lost_steps: usize,
    /// Values of one request that it rejected, at most.
    rejected: i64,
    /// Why the last request failed; absent where it did not.
    last: Option<String>,
}

/// Values of one destination are at least so far apart: two of the same millisecond are not told apart.
const APART_NS: u64 = 2_000_000;

impl Sending {
    fn new(protocol: Protocol, endpoint: Endpoint) -> Self {
        Self {
            protocol,
            endpoint,
            sent: 0,
            knows_end: false,
            last_unix_ns: 0,
            requests: 0,
            failed: 0,
            lost_steps: 0,
            rejected: 0,
            last: None,
        }
    }

    /// Where it sends.
    pub(super) fn address(&self) -> String {
        self.endpoint.url.to_string()
    }

    /// Sends what it does not have yet; gives what is worth saying the first time that something is wrong.
    pub(super) fn send(&mut self, batch: &Batch<'_>) -> Option<String> {
        let all = batch.finished.len();
        let now_unix_ns = batch.now_unix_ns.max(self.last_unix_ns.saturating_add(APART_NS));
        // A second attempt at the end is not about what was accepted.
        let is_new = !self.knows_end;
        let parts = [(Part::Current, is_new), (Part::Results, true), (Part::Ends, is_new && batch.end.is_some())];
        let mut trouble = None;
        for (part, _) in parts.into_iter().filter(|(_, is_wanted)| *is_wanted) {
            let finished = &batch.finished[self.sent.min(all)..];
            let at = Batch { finished, now_unix_ns, ..*batch };
            let (body, more): (Vec<u8>, &[(&str, &str)]) = match &self.protocol {
                Protocol::Metrics(resource) => (otlp::metrics(&at, part, resource), &[]),
                Protocol::Traces(resource) if part == Part::Results => (otlp::spans(&at, is_new, resource), &[]),
                Protocol::Traces(_) => continue,
                Protocol::RemoteWrite => (remote_write::request(&at, part), &remote_write::HEADERS),
            };
            if body.is_empty() {
                continue;
            }
            self.last_unix_ns = now_unix_ns;
            trouble = self.post(&body, more, part, all, batch).or(trouble);
            if self.is_retryable() {
                return trouble;
            }
        }
        (self.sent, self.knows_end) = (all, batch.end.is_some());
        trouble
    }

    fn post(
        &mut self,
        body: &[u8],
        more: &[(&str, &str)],
        part: Part,
        all: usize,
        batch: &Batch<'_>,
    ) -> Option<String> {
        self.requests += 1;
        let is_first = self.failed == 0 && self.rejected == 0;
        match self.endpoint.post(body, more, batch.end.map(|end| end.until)) {
            Ok(answer) => {
                self.last = None;
                if part == Part::Results {
                    self.sent = all;
                }
                let of_otlp = !matches!(self.protocol, Protocol::RemoteWrite);
                let (rejected, why) = otlp::rejected(&answer).filter(|_| of_otlp)?;
                self.rejected = self.rejected.max(rejected);
                let why = self.endpoint.said(&why);
                is_first.then(|| format!("{}: {rejected} values were rejected{why}", self.endpoint.url))
            }
            Err(refused) => {
                self.failed += 1;
                if !refused.is_for_now && part == Part::Results {
                    self.lost_steps += all - self.sent.min(all);
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
            address: self.address(),
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
        let rejected = if *rejected > 0 { format!("; {rejected} values were rejected") } else { String::new() };
        match last {
            Some(why) => Some(format!(
                "{address}: {failed} of {requests} requests failed, the last one too ({why}){of_steps}{rejected}"
            )),
            None if *lost_steps > 0 => {
                Some(format!("{address}: {failed} of {requests} requests failed{of_steps}{rejected}"))
            }
            None => Some(format!("{address}{}", rejected.replacen(';', ":", 1))).filter(|_| !rejected.is_empty()),
        }
    }
}
