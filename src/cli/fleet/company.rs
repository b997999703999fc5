//! A part among the others: the meeting point that it has or comes to, for as long as its run lasts.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use crate::cli::arguments::Seconds;
use crate::cli::exit::Failure;
use crate::cli::say;
use crate::cli::token::{self, TokenOf};
use crate::fleet::{FleetError, Joining, Judgement, Meeting, Member, OnPartEnd, Rules, Started, listening_addresses};
use analysis::VerdictOutcome;
use load::Stop;
use model::config::fleet::PartNumber;
use model::config::net::NetServer;
use model::units::Nanos;
use targets::network::wire::Token;

/// How long parts wait for each other, unless the user says otherwise.
const DEFAULT_WAIT: Nanos = Nanos::seconds(300);

/// Where parts meet.
#[derive(Debug, Default, Args)]
pub(in crate::cli) struct MeetArgs {
    /// Meet the other parts at this host and port, where part 0 runs and listens
    ///
    /// Every step begins at the same time on all parts.
    ///
    /// All parts need the same token, in PLIMSOLL_MEET_TOKEN or --meet-token-file.
    #[arg(long, value_name = "HOST:PORT", conflicts_with = "start_at", help_heading = "Fleet")]
    meet: Option<NetServer>,

    /// File with the token of all parts [default: the variable PLIMSOLL_MEET_TOKEN]
    #[arg(long, value_name = "FILE", requires = "meet", help_heading = "Fleet")]
    meet_token_file: Option<PathBuf>,

    /// Time to wait for the other parts [default: 5m]
    #[arg(long, value_name = "TIME", requires = "meet", allow_hyphen_values = true, help_heading = "Fleet")]
    meet_wait: Option<Seconds>,

    /// What the other parts do if one stops early or never joins [default: stop]
    #[arg(long, value_name = "WHAT", requires = "meet", help_heading = "Fleet")]
    on_part_end: Option<WhenOneEnds>,
}

/// What happens to the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
enum WhenOneEnds {
    /// Stop too, and keep what was measured
    Stop,
    /// Continue without it
    Continue,
}

/// Where and how a part is to meet the others.
#[derive(Debug, Clone)]
pub(in crate::cli) struct Appointment {
    point: NetServer,
    host: String,
    port: u16,
    token: Token,
    wait: Nanos,
    on_part_end: OnPartEnd,
}

impl MeetArgs {
    /// What was asked for; none where no meeting point was named.
    ///
    /// # Errors
    /// Without a token, or with one that cannot be used.
    pub(super) fn appointment(&self) -> Result<Option<Appointment>, Failure> {
        let Some(point) = &self.meet else { return Ok(None) };
        let NetServer::At { host, port } = point else {
            let failure = Failure::new("other hosts cannot reach `--meet self`");
            return Err(failure.with_hint("name the host that part 0 runs on: `--meet load1:7018`".to_owned()));
        };
        let Some(token) = token::given(TokenOf::Fleet, self.meet_token_file.as_deref())? else {
            let failure = Failure::new(format_args!("no token for the meeting point `{point}`"));
            return Err(failure.with_hint(format!(
                "set {} to the same secret on all hosts, such as what `openssl rand -hex 16` prints, or name a file with \
                 --meet-token-file",
                TokenOf::Fleet.variable()
            )));
        };
        Ok(Some(Appointment {
            point: point.clone(),
            host: host.clone(),
            port: *port,
            token,
            wait: self.meet_wait.map_or(DEFAULT_WAIT, |Seconds(wait)| wait),
            on_part_end: match self.on_part_end {
                Some(WhenOneEnds::Continue) => OnPartEnd::Continue,
                Some(WhenOneEnds::Stop) | None => OnPartEnd::Stop,
            },
        }))
    }
}

impl Appointment {
    /// The place, for the plan.
    pub(super) fn point(&self) -> &NetServer {
        &self.point
    }
}

/// A part that has met the others.
#[derive(Debug)]
pub(in crate::cli) struct Company {
    member: Member,
    /// That of part 0.
    meeting: Option<Meeting>,
}

impl Company {
    /// Comes to the meeting point, which part 0 opens. None where the user has ended it before that.
    ///
    /// # Errors
    /// When part 0 cannot listen there, or another part is not let in.
    pub(super) fn meet(
        appointment: &Appointment,
        place: &PartNumber,
        configuration: &str,
        stop: &Stop,
    ) -> Result<Option<Self>, Failure> {
        let Appointment { point, host, port, token, wait, on_part_end } = appointment;
        let own_host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default().trim().to_owned();
        let point = point.to_string();
        let listens = place.number == 0;
        let mut joining = Joining {
            point: point.clone(),
            host: host.clone(),
            port: *port,
            token: token.clone(),
            number: place.number,
            parts: place.parts,
            configuration: configuration.to_owned(),
            own_host: own_host.clone(),
            patience: std::time::Duration::from_nanos(wait.0),
            on_part_end: *on_part_end,
        };
        let meeting = if listens {
            let rules = Rules {
                parts: place.parts,
                configuration: configuration.to_owned(),
                host: own_host,
                patience: joining.patience,
                on_part_end: *on_part_end,
            };
            let meeting = Meeting::open(&point, &listening_addresses(host, *port), token, rules)?;
            let own = meeting.address();
            // Its own point is reached on this host, whatever the others call it.
            joining.host = if own.ip().is_unspecified() { "localhost".to_owned() } else { own.ip().to_string() };
            say::note(format_args!("part 0 waits for {} parts at {point}", place.parts));
            Some(meeting)
        } else {
            None
        };
        let ends = stop.clone();
        let asks = Arc::clone(stop.flag());
        let is_stopped = move || asks.load(std::sync::atomic::Ordering::Relaxed);
        let member = Member::join(&joining, &is_stopped, Box::new(move || ends.ask()))?;
        Ok(member.map(|member| Self { member, meeting }))
    }

    /// Waits until every part can begin a step. None where the user has ended it before that.
    ///
    /// # Errors
    /// When the others stop.
    pub(in crate::cli) fn ready(&self, step: u32, label: &str, stop: &Stop) -> Result<Option<Started>, FleetError> {
        self.member.ready(step, label, &|| stop.is_asked())
    }

    /// What came of a step over all parts: the worst of them.
    ///
    /// # Errors
    /// When the others stop.
    pub(in crate::cli) fn judged(
        &self,
        step: u32,
        own: Option<VerdictOutcome>,
        stop: &Stop,
    ) -> Result<Option<VerdictOutcome>, FleetError> {
        let worst = self.member.judged(step, judgement(own), &|| stop.is_asked())?;
        Ok(worst.and_then(outcome))
    }

    /// What happened to other parts since this was asked last.
    pub(in crate::cli) fn take_notes(&self) -> Vec<String> {
        self.member.take_gone()
    }

    /// Why the others stop, if they do.
    pub(in crate::cli) fn stopped(&self) -> Option<FleetError> {
        self.member.stopped()
    }

    /// Goes, `early` for a reason. Returns the offset of the clocks at the end, and who was turned away.
    pub(in crate::cli) fn leave(self, early: Option<String>) -> (Option<i64>, Vec<String>) {
        let offset = self.member.leave(early).map(|offset| offset.utc_ns);
        let away = self.meeting.iter().flat_map(Meeting::turned_away).collect();
        self.meeting.into_iter().for_each(Meeting::close);
        (offset, away)
    }
}

fn judgement(outcome: Option<VerdictOutcome>) -> Judgement {
    match outcome {
        Some(VerdictOutcome::Passed) => Judgement::Passed,
        Some(VerdictOutcome::Unsteady) => Judgement::Unsteady,
        Some(VerdictOutcome::GeneratorBound) => Judgement::GeneratorBound,
        Some(VerdictOutcome::Failed) => Judgement::Failed,
        None => Judgement::Unjudged,
    }
}

fn outcome(judgement: Judgement) -> Option<VerdictOutcome> {
    match judgement {
        Judgement::Passed => Some(VerdictOutcome::Passed),
        Judgement::Unsteady => Some(VerdictOutcome::Unsteady),
        Judgement::GeneratorBound => Some(VerdictOutcome::GeneratorBound),
        Judgement::Failed => Some(VerdictOutcome::Failed),
        Judgement::Unjudged => None,
    }
}

impl From<FleetError> for Failure {
    fn from(error: FleetError) -> Self {
        let hint = error.hint();
        let failure = Self::new(error);
        match hint {
            Some(hint) => failure.with_hint(hint),
            None => failure,
        }
    }
}
