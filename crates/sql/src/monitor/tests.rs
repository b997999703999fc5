use super::*;

/// What so many servers have reported since the last time; slow ones are asked again, and then report what they did in all that time.
pub(crate) fn next_of<R: ServerReader>(monitor: &Monitor<R>, servers: usize) -> Reported {
    let begun = Instant::now();
    loop {
        let reported = monitor.take();
        if reported.servers.len() == servers {
            return reported;
        }
        assert!(begun.elapsed() < Duration::from_secs(120), "{servers} servers never report: {reported:?}");
    }
}

/// The same of an only server.
pub(crate) fn next<R: ServerReader>(monitor: &Monitor<R>) -> Reported {
    next_of(monitor, 1)
}

/// A node's answers, one after the other: of each server its name, when it was started, and a count. Gives by how much each that
/// was reported has grown.
fn taken(
    node: &mut Node<u64>,
    at: Instant,
    connection: u64,
    servers: &[(Option<(&str, &str)>, u64)],
) -> Vec<(String, u64)> {
    let counted = servers.iter().map(|(member, reading)| {
        let member = member.map(|(name, started)| Member { name: name.to_owned(), started: started.to_owned() });
        Counted { member, reading: *reading }
    });
    let read = node.read(at, connection, counted.collect());
    if node.servers.is_empty() {
        node.servers = read.into_iter().map(|(name, read)| Server::new(name, read)).collect();
        return Vec::new();
    }
    node.answer = Answer::Here(read);
    let grown = |earlier: &u64, later: &mut u64, stats: &mut ServerStats| {
        stats.own.insert("grown".to_owned(), *later - earlier);
        Vec::new()
    };
    node.take(grown).into_iter().map(|stats| (stats.node, stats.own["grown"])).collect()
}

#[test]
fn counters_over_another_connection_begin_anew() {
    let (mut node, begun) = (Node::new("db1".to_owned()), Instant::now());
    let mut grown = |connection, reading| taken(&mut node, begun, connection, &[(None, reading)]);
    let db1 = |grown| vec![("db1".to_owned(), grown)];
    assert_eq!([grown(0, 5), grown(0, 8), grown(1, 9), grown(1, 11)], [vec![], db1(3), vec![], db1(2)]);
}

#[test]
fn a_cluster_s_servers_are_each_told_and_come_and_go() {
    let (mut node, begun) = (Node::new("scan".to_owned()), Instant::now());
    let one = |started, reading| (Some(("one", started)), reading);
    let two = |started, reading| (Some(("two", started)), reading);
    let of = |name: &str, grown| (name.to_owned(), grown);
    let mut grown = |connection, servers: &[_]| taken(&mut node, begun, connection, servers);
    assert_eq!(grown(0, &[one("a", 5), two("b", 100)]), []);
    assert_eq!(grown(0, &[one("a", 6), two("b", 110)]), [of("one", 1), of("two", 10)]);
    // It is gone, what it counted then is unknown, and the other goes on over another connection.
    assert_eq!(grown(1, &[one("a", 8)]), [of("one", 2)]);
    // It is there again, and begins anew; another one comes.
    let three = |reading| (Some(("three", "c")), reading);
    assert_eq!(grown(1, &[one("a", 9), two("d", 3), three(70)]), [of("one", 1)]);
    assert_eq!(grown(1, &[three(77), one("a", 9), two("d", 4)]), [of("three", 7), of("one", 0), of("two", 1)]);
    let notes = &node.notes;
    for says in ["`two` is not there any more", "`two` was started again", "`three` came during the load"] {
        assert_eq!(notes.iter().filter(|note| note.contains(says)).count(), 1, "{says}: {notes:?}");
    }
    assert_eq!(notes.len(), 3, "{notes:?}");
}

#[test]
fn a_cluster_of_which_a_server_is_unknown_has_no_sum() {
    let stats = |commits| ServerStats {
        counters: Counters { commits: Some(commits), ..Counters::default() },
        ..ServerStats::default()
    };
    assert_eq!(sum(&[stats(2), stats(3)], 2).commits, Some(5));
    assert_eq!(sum(&[stats(2)], 2).commits, None);
}

#[test]
fn a_stall_is_looked_at_closely_to_its_end_and_load_that_has_become_slower_is_not() {
    let mut usual = Usual::default();
    let ms = |ms| Some(Duration::from_millis(ms));
    assert!(!usual.is_exceeded(ms(500), true), "nothing is usual yet");
    (0..20).for_each(|_| assert!(!usual.is_exceeded(ms(5), true)));
    assert!(!usual.is_exceeded(ms(24), true), "shorter than an episode");
    (0..600).for_each(|look| assert!(usual.is_exceeded(ms(30 + look * 50), true), "{look}"));
    assert!(!usual.is_exceeded(None, true) && usual.is_exceeded(ms(40), false));
    let close = (0..2_000).take_while(|_| usual.is_exceeded(ms(400), true)).count();
    assert!((1_200..1_400).contains(&close), "{close}");
}

#[test]
fn one_slow_look_is_no_reason_to_look_away_and_slow_ones_are() {
    let mut pace = Pace::default();
    let mut period = |ms| pace.period(Duration::from_millis(ms), SAMPLE_EVERY, SAMPLING_SHARE).as_millis();
    assert_eq!([period(1), period(1_500), period(2)], [50, 50, 50]);
    assert_eq!([period(10), period(10), period(10), period(10), period(10)], [50, 50, 50, 50, 200]);
}
