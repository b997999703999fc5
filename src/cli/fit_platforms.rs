//! `plimsoll fit --platforms`: what of the catalogue carries a database.

use std::io::Write;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};

use super::arguments::Format;
use super::exit::{Exit, Failure};
use super::expect::{RedundancyChoice, volumes_of};
use super::platforms::PlatformsArgs;
use super::say;
use analysis::LatencyTarget;
use analysis::capacity::{Demand, Resource, Share};
use analysis::trend::Trend;
use model::platforms::{self, Asked, Need, Prices, Sized};
use model::record::Run;
use model::units::Bytes;
use report;
use report::ranking::Question;

/// What is published is a ceiling. The tests of the first seed on Azure came to 76 to 92 % of it.
const DEFAULT_HEADROOM: f64 = 1.3;

/// What makes a capacity of published limits.
#[derive(Debug, Args)]
pub(super) struct PublishedArgs {
    /// Rank machines and volumes of the catalogue instead of asking about a run: which carry the demand by the limits that
    /// clouds publish, and what holds the others
    #[arg(long, help_heading = "Published limits")]
    platforms: bool,

    /// How many times the demand they must allow: less is reached than is published
    #[arg(long, value_name = "TIMES", default_value_t = DEFAULT_HEADROOM, requires = "platforms", help_heading = "Published limits")]
    headroom: f64,

    /// How large the data are, with all that shall fit beside them; copies for redundancy are counted here [default: not asked for]
    #[arg(long, value_name = "SIZE", requires = "platforms", help_heading = "Published limits")]
    data: Option<Bytes>,

    /// How many nodes the load is spread over
    #[arg(long, value_name = "N", default_value_t = 1, requires = "platforms", value_parser = clap::value_parser!(u32).range(1..=1_000), help_heading = "Published limits")]
    nodes: u32,

    /// How many copies of each write there are: one, two or three
    #[arg(long, value_enum, default_value_t, requires = "platforms", help_heading = "Published limits")]
    redundancy: RedundancyChoice,

    /// Your own list of prices: the cheapest first. None is built in; docs/platforms.md shows the form
    #[arg(long, value_name = "FILE", requires = "platforms", help_heading = "Published limits")]
    prices: Option<PathBuf>,

    /// Show all of them, not the first ones
    #[arg(long, requires = "platforms", help_heading = "Published limits")]
    all: bool,

    #[command(flatten)]
    files: PlatformsArgs,
}

/// Ranks the catalogue by what `databases` ask for together.
pub(super) fn run(
    arguments: &PublishedArgs,
    databases: &[(Trend, Vec<&Run>)],
    share: Share,
    format: Format,
) -> Result<Exit, Failure> {
    if !(arguments.headroom.is_finite() && (1.0..=100.0).contains(&arguments.headroom)) {
        let failure = Failure::new(format_args!("`--headroom {}` is none", arguments.headroom));
        return Err(failure.with_hint("it is 1 to 100: how many times the demand must be allowed".to_owned()));
    }
    let catalogue = arguments.files.catalogue()?;
    let prices = match &arguments.prices {
        None => None,
        Some(file) => {
            let text = std::fs::read_to_string(file).map_err(|problem| {
                let failure = Failure::new(format_args!("cannot read `{}`: {problem}", file.display()));
                failure.with_hint("docs/platforms.md shows a list of prices".to_owned())
            })?;
            let read = Prices::read(&file.display().to_string(), &text, &catalogue);
            Some(read.map_err(|problem| Failure::new(&problem).with_hint(problem.hint))?)
        }
    };
    let target = LatencyTarget::default();
    let demands: Vec<Demand> = databases.iter().map(|(trend, runs)| Demand::of(trend, runs, share, &target)).collect();
    let demand = Demand::together(&demands).or_else(|| demands.into_iter().next());
    let demand = demand.ok_or_else(|| Failure::new("nothing was asked for"))?;
    let redundancy: platforms::Redundancy = arguments.redundancy.into();
    let need = need(&demand, arguments, redundancy)?;
    let ranking = platforms::rank(&catalogue, &need, (arguments.nodes, redundancy), prices.as_ref());
    let question = Question {
        database: &demand.database,
        share,
        rates: &demand.rates,
        headroom: arguments.headroom,
        need: &need,
        unit: prices.as_ref().map(|prices| prices.unit.as_str()),
    };
    match format {
        Format::Json => say::json(&document(&question, &ranking))?,
        Format::Text => {
            let mut out = say::output();
            report::ranking::ranking(&mut out, &question, &ranking, arguments.all, say::width())?;
            out.flush()?;
        }
    }
    Ok(if ranking.carry.is_empty() { Exit::NotMet } else { Exit::Done })
}

/// What the platforms must allow.
fn need(demand: &Demand, arguments: &PublishedArgs, redundancy: platforms::Redundancy) -> Result<Need, Failure> {
    let rates = &demand.rates;
    let missing =
        [Resource::Reads, Resource::Writes, Resource::Megabytes].into_iter().find(|it| rates.of(*it).is_none());
    if let Some(missing) = missing {
        let failure =
            Failure::new(format_args!("how many {} `{}` needs is not reported", missing.name(), demand.database));
        return Err(
            failure.with_hint("name runs that report reads, writes and their bytes, such as AWR reports".to_owned())
        );
    }
    let (reads, writes) = (rates.reads.unwrap_or(0.0), rates.writes.unwrap_or(0.0));
    let requests = reads + writes;
    if requests <= 0.0 {
        let failure = Failure::new(format_args!("`{}` asks for no requests", demand.database));
        return Err(failure.with_hint("name runs in which it did something".to_owned()));
    }
    let gib = arguments.data.map_or(0.0, |data| data.0 as f64 / f64::from(1 << 30));
    let asked = Asked {
        read_share: reads / requests,
        block_bytes: rates.megabytes.unwrap_or(0.0) * 1e6 / requests,
        hit_share: 0.0,
    };
    let redo_bytes = rates.redo.unwrap_or(0.0) * 1e6 / requests;
    Ok(Need { asked, per_s: requests * arguments.headroom, gib: gib * redundancy.copies(), redo_bytes })
}

fn document(question: &Question<'_>, ranking: &platforms::Ranking) -> Value {
    let one = |sized: &Sized| {
        let volumes = volumes_of(&sized.platform);
        json!({
            "machine": sized.platform.machine.name,
            "cloud": sized.platform.machine.cloud,
            "nodes": sized.platform.nodes,
            "volumes": volumes,
            "requests_per_s": sized.per_s,
            "headroom": question.headroom_of(sized),
            "binds": sized.whose,
            "price": sized.price,
        })
    };
    let left_out = ranking.left_out.iter().map(|(what, why)| json!({ "platform": what, "why": why }));
    json!({
        "format": 1,
        "database": question.database,
        "at": question.share.name(),
        "headroom": question.headroom,
        "need": {
            "requests_per_s": question.need.per_s,
            "read_share": question.need.asked.read_share,
            "request_bytes": question.need.asked.block_bytes,
            "gib": question.need.gib,
            "redo_megabytes_per_s": question.rates.redo.map(|redo| redo * question.headroom),
        },
        "price_unit": question.unit,
        "carry": ranking.carry.iter().map(one).collect::<Vec<_>>(),
        "fail": ranking.fail.iter().map(one).collect::<Vec<_>>(),
        "left_out": left_out.collect::<Vec<_>>(),
    })
}
