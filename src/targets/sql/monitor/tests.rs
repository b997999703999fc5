use super::*;

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
