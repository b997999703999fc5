//! The plan of a look at several servers of a network from one host: each by itself, then all of them at once.

use super::net::{NetPlanRequest, step};
use super::{PlanError, RunHead};
use crate::load::StepPlan;
use model::config::ConfigError;
use model::config::net::{FlowDirection, NetOptions, NetPattern, NetProblem, NetServer, Outstanding};
use model::record::{self, Load, NetLevel};
use model::workload::net::{MAX_FLOW_THREADS, NetShape};

/// Flows to each server where nobody says how many.
pub const DEFAULT_FLOWS: u32 = 4;

/// What will be done.
#[derive(Debug, Clone)]
pub struct NetMatrix {
    /// What the run is before its first step.
    pub head: RunHead,
    /// Its steps.
    pub steps: Vec<MatrixStep>,
}

/// One step.
#[derive(Debug, Clone)]
pub struct MatrixStep {
    /// The load on all of its servers.
    pub plan: StepPlan<NetShape>,
    /// The load on each of them.
    pub each: NetShape,
    /// Which servers these are, by their places in the list.
    pub servers: std::ops::Range<usize>,
}

/// Plans it: of each server a round trip and bulk flows in each direction, then flows of all servers at once. Of the request's load
/// only its duration, warm-up, seed and tags count.
///
/// # Errors
/// The first thing that cannot be done.
pub fn matrix(request: &NetPlanRequest, servers: &[NetServer], flows: u32) -> Result<NetMatrix, PlanError> {
    if request.duration.0 == 0 {
        return Err(PlanError::NoDuration);
    }
    let all = servers.len();
    if flows == 0 {
        return Err(ConfigError::Net(NetProblem::NoFlows).into());
    }
    if (all as u64).saturating_mul(flows.into()) > MAX_FLOW_THREADS.into() {
        let problem = NetProblem::TooManyFlows { flows, servers: all, most: MAX_FLOW_THREADS };
        return Err(ConfigError::Net(problem).into());
    }
    let bulk = |direction| NetOptions { direction: Some(direction), ..NetOptions::new(NetPattern::Bulk) };
    let (up, down) = ((bulk(FlowDirection::Up), flows), (bulk(FlowDirection::Down), flows));
    let idle = (NetOptions::new(NetPattern::Ping), 1);
    let mut steps: Vec<MatrixStep> = Vec::new();
    let mut add =
        |name: &str, what: &str, (asked, connections): &(NetOptions, u32), servers: std::ops::Range<usize>| {
            let outstanding = Outstanding { connections: *connections, each: 1 };
            let each = asked.shape(outstanding);
            let server = (servers.len() == 1).then(|| name.to_owned());
            let level = NetLevel { options: Some(asked.clone()), outstanding, rate_per_s: None, beside: None, server };
            let (index, label) = (steps.len() as u32, format!("{name}_{what}"));
            let plan = step(request, index, label, each.times(servers.len()), level);
            steps.push(MatrixStep { plan, each, servers });
        };
    for (place, server) in servers.iter().enumerate() {
        for (what, load) in [("idle", &idle), ("up", &up), ("down", &down)] {
            add(&server.to_string(), what, load, place..place + 1);
        }
    }
    add("all", "up", &up, 0..all);
    add("all", "down", &down, 0..all);
    let load = Load::NetworkMatrix(record::NetMatrix { servers: all as u32, flows });
    let words = ["matrix".to_owned(), format!("{all}-servers")];
    Ok(NetMatrix { head: RunHead::new(&request.tags, words, request.seed, load, [])?, steps })
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::config::net::NetServers;
    use model::record::Level;
    use model::units::Nanos;
    use model::workload::Arrival;

    fn request() -> NetPlanRequest {
        NetPlanRequest {
            asked: NetOptions::new(NetPattern::Ping),
            duration: Nanos::seconds(6),
            warmup: Nanos::seconds(1),
            arrival: Arrival::Poisson,
            times: None,
            seed: 7,
            tags: vec!["net=lan 10g".parse().unwrap()],
            processors: 2,
        }
    }

    #[test]
    fn each_server_has_steps_of_its_own_and_all_of_them_two() {
        let NetServers(servers) = "db2,db3".parse().unwrap();
        let planned = matrix(&request(), &servers, 4).unwrap();
        assert_eq!(planned.head.name, "lan-10g_matrix_2-servers");
        let labels: Vec<&str> = planned.steps.iter().map(|step| step.plan.label.as_str()).collect();
        let of_each =
            ["db2:7018_idle", "db2:7018_up", "db2:7018_down", "db3:7018_idle", "db3:7018_up", "db3:7018_down"];
        assert_eq!(labels, [&of_each[..], &["all_up", "all_down"]].concat());
        let (alone, all) = (&planned.steps[4], &planned.steps[6]);
        let server = |step: &MatrixStep| match &step.plan.level {
            Some(Level::Network(level)) => level.server.clone(),
            _ => None,
        };
        assert_eq!((alone.servers.clone(), server(alone).as_deref()), (1..2, Some("db3:7018")));
        assert_eq!((all.servers.clone(), all.plan.shape.sessions(), all.plan.lanes), (0..2, 8, 8));
        assert_eq!((all.each.sessions(), server(all)), (4, None));
    }

    #[test]
    fn flows_that_would_share_threads_are_refused() {
        let NetServers(servers) = "db2,db3,db4".parse().unwrap();
        assert!(matrix(&request(), &servers, 42).is_ok());
        let error = matrix(&request(), &servers, 43).unwrap_err();
        assert_eq!(error.to_string(), "43 flows to each of 3 servers are more than 128 at once");
        assert!(error.hint().unwrap().contains("`--flows 42` fits"));
        assert!(matrix(&request(), &servers, 0).is_err());
        assert!(matrix(&NetPlanRequest { duration: Nanos(0), ..request() }, &servers, 4).is_err());
    }
}
