//! What only private servers of PostgreSQL do.

use std::fs;

use super::*;
use crate::private::ServerRequest;
use crate::private::server_tests::{Tested as _, assert_says, place, processes_of, refusal, remove_it, request, start};

#[test]
fn a_server_that_somebody_else_has_started_is_left_alone() {
    let Some(place) = place::<Binaries>() else { return };
    let kept = ServerRequest { keep_running: true, ..request(place.path()) };
    start::<Binaries>(&kept).unwrap().stop().unwrap();
    let options = place.path().join("data/postmaster.opts");
    let ours = fs::read_to_string(&options).unwrap();
    fs::write(&options, "/usr/bin/postgres \"-D\" \"data\"\n").unwrap();
    for said in [refusal(start::<Binaries>(&kept)), refusal(remove_it::<Binaries>(place.path()))] {
        assert_says(&said, &["Plimsoll has not started", "kill -INT", "postgres://"]);
    }
    fs::write(&options, ours).unwrap();
    remove_it::<Binaries>(place.path()).unwrap();
    assert_eq!(processes_of(place.path()), Vec::<String>::new());
}

#[test]
fn a_server_that_cannot_start_says_why_and_leaves_no_process() {
    let Some(place) = place::<Binaries>() else { return };
    start::<Binaries>(&request(place.path())).unwrap().stop().unwrap();
    let configuration = place.path().join("data/postgresql.conf");
    let text = fs::read_to_string(&configuration).unwrap();
    fs::write(&configuration, format!("{text}\nno_such_setting = 7\n")).unwrap();
    assert_says(&refusal(start::<Binaries>(&request(place.path()))), &["no_such_setting"]);
    assert_eq!(processes_of(place.path()), Vec::<String>::new());
}

#[test]
fn what_the_user_set_in_the_clusters_own_files_is_shown() {
    let Some(place) = place::<Binaries>() else { return };
    let cluster = start::<Binaries>(&request(place.path())).unwrap();
    Binaries::ask(&cluster, "ALTER SYSTEM SET random_page_cost = 1.5");
    Binaries::ask(&cluster, "ALTER SYSTEM SET shared_buffers = '99MB'");
    cluster.stop().unwrap();
    let cluster = start::<Binaries>(&request(place.path())).unwrap();
    let settings = &cluster.facts().server.settings;
    assert_eq!((settings["random_page_cost"].as_str(), settings["shared_buffers"].as_str()), ("1.5", "16MB"));
    cluster.stop().unwrap();
}
