use super::*;

#[test]
fn one_server_that_is_missing_makes_the_sum_unknown_and_not_smaller() {
    let stats = |reads, writes| ServerStats {
        counters: Counters { logical_reads: reads, physical_writes: writes, ..Counters::default() },
        ..ServerStats::default()
    };
    let sum = sum_of_all(&[stats(Some(3), Some(1)), stats(Some(4), None)]);
    assert_eq!(sum, Counters { logical_reads: Some(7), ..Counters::default() });
}

#[test]
fn counters_over_another_connection_begin_anew() {
    let (mut node, begun) = (Node::new(), Instant::now());
    let mut counted = |reading: u64, connection| {
        node.answer = Answer::Here(Box::new(Read { at: begun, connection, reading }));
        let grown = |earlier: &u64, later: &mut u64, stats: &mut ServerStats| {
            stats.own.insert("grown".to_owned(), *later - earlier);
            Vec::new()
        };
        node.take("db1", grown).map(|stats| stats.own["grown"])
    };
    assert_eq!(
        [(5, 0), (8, 0), (9, 1), (11, 1)].map(|(reading, at)| counted(reading, at)),
        [None, Some(3), None, Some(2)]
    );
}
