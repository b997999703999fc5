//! Connecting: who is there, and what goes wrong before a session is logged on.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use oracledb::{Config, ErrorKind};

use super::{code, config, connect, first_column, numbered, options, quiet, with_descriptor};
use crate::responder::{Answer, Answers, Call, Fault, GENERATIONS, Generation, Kind, Options, Responder, Stage, State};

#[test]
fn both_sides_know_who_is_connected() {
    for generation in GENERATIONS {
        let responder = quiet(generation);
        let config = config(&responder).set_program("plimsoll").unwrap().set_machine("box-1").unwrap();
        let connection = oracledb::connect(config.set_driver_name("plimsoll : 1")).unwrap();
        assert_eq!(connection.instance_name().unwrap(), "ONE1");
        assert_eq!(connection.service_name().unwrap(), "orcl");
        assert_eq!((connection.session_id().unwrap(), connection.serial_num().unwrap()), (1, 1001));
        let release = if generation == Generation::V19 { "19.22" } else { "23.26" };
        assert!(connection.version().unwrap().to_string().starts_with(release), "{}", connection.version().unwrap());
        connection.set_module("slob").unwrap();
        connection.set_action("run 1").unwrap();
        connection.set_client_identifier("us").unwrap();
        connection.ping().unwrap();
        let session = &responder.sessions()[0];
        assert_eq!((session.user.as_str(), session.program.as_str()), ("SLOB", "plimsoll"));
        assert_eq!((session.machine.as_str(), session.driver.as_str()), ("box-1", "plimsoll : 1"));
        assert_eq!((session.module.as_str(), session.action.as_str()), ("slob", "run 1"));
        assert_eq!(session.client_identifier, "us");
        // What a session is called by costs no round trip.
        assert_eq!((session.kinds(), session.state), (vec![Kind::Ping], State::LoggedOn));
        drop(connection);
        responder.wait_until("a goodbye", |sessions| sessions[0].state == State::LoggedOff);
    }
}

#[test]
fn services_lead_to_their_instances() {
    for generation in GENERATIONS {
        let services = [("base1", "ONE1"), ("base2", "ONE2")].map(|(name, of)| (name.to_owned(), of.to_owned()));
        let options = Options { services: services.to_vec(), ..options(generation) };
        let responder = Responder::start(options, |_: &Call| Answer::Ok);
        for (service, instance) in [("base1", "ONE1"), ("BASE2", "ONE2")] {
            let connection = oracledb::connect(with_descriptor(&responder.descriptor(service))).unwrap();
            assert_eq!(connection.instance_name().unwrap(), instance);
        }
        let error = oracledb::connect(with_descriptor(&responder.descriptor("base3"))).err().unwrap();
        let ErrorKind::InvalidServiceName(_, service, host, port) = error.kind() else { panic!("{error}") };
        assert_eq!((service.as_str(), host.as_str(), *port), ("base3", "127.0.0.1", responder.port()));
    }
}

#[test]
fn a_long_descriptor_comes_in_a_packet_of_its_own() {
    for generation in GENERATIONS {
        let responder = quiet(generation);
        let service = "s".repeat(400);
        let connection = oracledb::connect(with_descriptor(&responder.descriptor(&service))).unwrap();
        assert_eq!(connection.service_name().unwrap(), service);
    }
}

#[test]
fn easy_connect_and_aliases_reach_the_same_service() {
    let responder = quiet(Generation::V19);
    let short = format!("127.0.0.1:{}/orcl", responder.port());
    assert_eq!(oracledb::connect(with_descriptor(&short)).unwrap().service_name().unwrap(), "orcl");
    let folder = std::env::temp_dir().join(format!("plimsoll-tns-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    std::fs::write(folder.join("tnsnames.ora"), format!("THERE = {}\n", responder.descriptor("orcl"))).unwrap();
    let config = Config::default().set_credentials("SLOB", "secret").set_config_dir(folder.to_str().unwrap());
    let by_alias = oracledb::connect(config.clone().set_connect_string("there").unwrap()).unwrap();
    assert_eq!(by_alias.service_name().unwrap(), "orcl");
    let unknown = config.set_connect_string("elsewhere").err().unwrap();
    assert!(matches!(unknown.kind(), ErrorKind::TnsAliasNotFound(..)), "{unknown}");
    std::fs::remove_dir_all(&folder).unwrap();
}

/// What stands behind a question mark is not looked at by this release of the driver, so ours has to.
#[test]
fn the_driver_ignores_the_parameters_of_easy_connect_plus() {
    let config = with_descriptor("127.0.0.1:1521/orcl?retry_delay=7");
    assert!(!config.get_connect_descriptor().contains("RETRY"), "{}", config.get_connect_descriptor());
    let config = with_descriptor("(DESCRIPTION=(RETRY_DELAY=7)(ADDRESS=(HOST=h))(CONNECT_DATA=(SERVICE_NAME=s)))");
    assert!(config.get_connect_descriptor().contains("(RETRY_DELAY=7)"), "{}", config.get_connect_descriptor());
}

#[test]
fn the_password_is_checked() {
    for generation in GENERATIONS {
        let responder = quiet(generation);
        for (user, password) in [("SLOB", "Secret"), ("SLOB", "secrets"), ("SLOT", "secret")] {
            let error = oracledb::connect(config(&responder).set_credentials(user, password)).err().unwrap();
            assert_eq!(code(&error), 1017, "{error}");
        }
        let long = "p".repeat(40);
        let options = Options { password: long.clone(), hashings: 4096, ..options(generation) };
        let responder = Responder::start(options, |_: &Call| Answer::Ok);
        oracledb::connect(config(&responder).set_credentials("slob", &long)).unwrap();
    }
}

#[test]
fn what_goes_wrong_before_the_logon_is_named() {
    for generation in GENERATIONS {
        let responder = quiet(generation);
        let error = |fault: Fault| {
            responder.set_fault(Some(fault));
            oracledb::connect(config(&responder)).err().unwrap()
        };
        let refused = error(Fault::Refuse(12514));
        assert!(matches!(refused.kind(), ErrorKind::InvalidServiceName(..)), "{refused}");
        let refused = error(Fault::Refuse(12505));
        assert!(matches!(refused.kind(), ErrorKind::InvalidSid(..)), "{refused}");
        for reason in [12516, 12520, 12528] {
            let refused = error(Fault::Refuse(reason));
            let ErrorKind::ListenerRefusedConnection(.., code) = refused.kind() else { panic!("{refused}") };
            assert_eq!(*code, reason as usize);
        }
        let old = error(Fault::OldServer);
        assert!(matches!(old.kind(), ErrorKind::ServerVersionNotSupported), "{old}");
        for (number, message) in [(28000, "The account is locked."), (28001, "the password has expired")] {
            let refused = error(Fault::Logon { code: number, message: message.to_owned() });
            assert_eq!(code(&refused), number as usize);
            assert_eq!(refused.to_string(), format!("ORA-{number}: {message}"));
        }
        for stage in [Stage::Connect, Stage::Accepted, Stage::Password] {
            let closed = error(Fault::Close(stage));
            assert!(matches!(closed.kind(), ErrorKind::DeadConnection), "{stage:?}: {closed}");
        }
        responder.set_fault(None);
        connect(&responder).ping().unwrap();
    }
}

#[test]
fn two_faults_are_panics_that_can_be_caught() {
    for generation in GENERATIONS {
        let responder = quiet(generation);
        for (fault, words) in [
            (Fault::OldVerifier, "called `Option::unwrap()` on a `None` value"),
            (Fault::NativeEncryption, "not yet implemented"),
        ] {
            responder.set_fault(Some(fault.clone()));
            let config = config(&responder);
            let panic = catch_unwind(AssertUnwindSafe(|| oracledb::connect(config))).err().expect("a panic");
            let said = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
            let said = said.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap();
            assert!(said.starts_with(words), "{fault:?}: {said}");
        }
        responder.set_fault(None);
        connect(&responder).ping().unwrap();
    }
}

#[test]
fn nobody_listens_and_nobody_is_found() {
    let responder = quiet(Generation::V19);
    let descriptor = responder.descriptor("orcl");
    drop(responder);
    let error = oracledb::connect(with_descriptor(&descriptor)).err().unwrap();
    assert!(matches!(error.kind(), ErrorKind::StreamOperation), "{error}");
    assert!(error.to_string().contains("Connection refused"), "{error}");
    let nowhere = "(DESCRIPTION=(RETRY_DELAY=0)(ADDRESS=(HOST=nowhere.invalid))(CONNECT_DATA=(SERVICE_NAME=s)))";
    let error = oracledb::connect(with_descriptor(nowhere)).err().unwrap();
    assert!(matches!(error.kind(), ErrorKind::StreamOperation), "{error}");
}

/// The driver waits for ever for a server that has accepted a connection and says nothing. Whoever connects has to have a way out.
#[test]
fn a_silent_server_is_waited_for_until_its_connection_ends() {
    for generation in GENERATIONS {
        for stage in [Stage::Connect, Stage::Accepted, Stage::Password] {
            let responder = quiet(generation);
            responder.set_fault(Some(Fault::Silence(stage)));
            let (sender, receiver) = mpsc::channel();
            let config = config(&responder).set_transport_connect_timeout(Some(Duration::from_millis(10)));
            let connecting = thread::spawn(move || sender.send(oracledb::connect(config).err()));
            responder.wait_until("a session", |sessions| !sessions.is_empty());
            assert!(receiver.recv_timeout(Duration::from_millis(100)).is_err());
            responder.go_away();
            let error = receiver.recv().unwrap().unwrap();
            assert!(matches!(error.kind(), ErrorKind::DeadConnection | ErrorKind::StreamOperation), "{error}");
            connecting.join().unwrap().unwrap();
        }
    }
}

#[test]
fn a_slow_server_is_waited_for() {
    for generation in GENERATIONS {
        for stage in [Stage::Connect, Stage::Accepted, Stage::Password] {
            let responder = quiet(generation);
            responder.set_fault(Some(Fault::Delay(stage, Duration::from_millis(50))));
            let began = Instant::now();
            connect(&responder).ping().unwrap();
            assert!(began.elapsed() >= Duration::from_millis(50));
        }
    }
}

#[test]
fn a_redirect_is_followed() {
    for generation in GENERATIONS {
        let node = quiet(generation);
        let listener = quiet(generation);
        listener.set_fault(Some(Fault::Redirect(node.address())));
        connect(&listener).ping().unwrap();
        assert_eq!((listener.round_trips(), node.round_trips()), (0, 2), "a ping and a goodbye");
        assert_eq!(node.sessions()[0].service, "orcl");
    }
}

#[test]
fn the_next_address_is_tried() {
    let gone = quiet(Generation::V19);
    let here = quiet(Generation::V23);
    let descriptor = format!(
        "(DESCRIPTION=(RETRY_DELAY=0)(ADDRESS_LIST=(ADDRESS=(PROTOCOL=TCP)(HOST=127.0.0.1)(PORT={}))(ADDRESS=(PROTOCOL=TCP)(HOST=127.0.0.1)(PORT={})))(CONNECT_DATA=(SERVICE_NAME=orcl)))",
        gone.port(),
        here.port()
    );
    gone.go_away();
    oracledb::connect(with_descriptor(&descriptor)).unwrap().ping().unwrap();
    assert_eq!(here.sessions().len(), 1);
}

/// The third session and those after it are refused, as when all processes of an instance are taken.
struct Full;

impl Answers for Full {
    fn answer(&self, _: &Call) -> Answer {
        numbered(3)
    }

    fn connecting(&self, session: u32, service: &str) -> Option<Fault> {
        (session > 2 && service == "orcl").then_some(Fault::Refuse(12516))
    }
}

#[test]
fn sessions_beyond_what_a_server_has_are_refused_and_the_others_go_on() {
    for generation in GENERATIONS {
        let responder = Responder::start(options(generation), Full);
        let connections = [connect(&responder), connect(&responder)];
        assert!(oracledb::connect(config(&responder)).is_err());
        for connection in &connections {
            assert_eq!(first_column(connection.query("select n, t from t", &[]).unwrap()), [0, 1, 2]);
        }
        assert_eq!(responder.logged_on(), 2);
    }
}

#[test]
fn hundreds_of_sessions_are_served_at_once() {
    for generation in GENERATIONS {
        let sessions: usize = 300;
        let responder = Responder::start(options(generation), |_: &Call| numbered(5));
        let config = config(&responder);
        let connections: Vec<_> = thread::scope(|scope| {
            let connecting = (0..sessions).map(|_| {
                let config = config.clone();
                let thread = thread::Builder::new().stack_size(256 << 10);
                thread.spawn_scoped(scope, || oracledb::connect(config).unwrap()).unwrap()
            });
            let connecting: Vec<_> = connecting.collect();
            connecting.into_iter().map(|thread| thread.join().unwrap()).collect()
        });
        assert_eq!(responder.logged_on(), sessions);
        for connection in &connections {
            assert_eq!(first_column(connection.query("select n, t from t", &[]).unwrap()).len(), 5);
        }
        let mut ids: Vec<usize> = connections.iter().map(|connection| connection.session_id().unwrap()).collect();
        ids.sort_unstable();
        assert!(ids.into_iter().eq(1..=sessions));
        drop(connections);
        responder.wait_until("goodbyes", |all| all.iter().all(|session| session.state == State::LoggedOff));
    }
}

/// What the responder does not understand is an error of the test, never an answer by chance.
#[test]
#[should_panic(expected = "the responder did not understand")]
fn a_request_that_nobody_understands_fails_the_test() {
    let responder = quiet(Generation::V23);
    let connection = connect(&responder);
    // A LOB needs calls that the responder does not have.
    assert!(connection.create_lob(oracledb::DB_TYPE_BLOB).is_err());
    responder.wait_until("an end", |sessions| sessions[0].state == State::Gone);
}
