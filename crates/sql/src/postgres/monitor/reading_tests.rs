use super::*;

fn views(counts: &[(&str, &str, u64)]) -> Views {
    let mut views = Views::new();
    for (view, name, count) in counts {
        views.entry((*view).to_owned()).or_default().insert((*name).to_owned(), *count);
    }
    views
}

fn reading(views: Views, pages: Option<u64>) -> Reading {
    Reading { views, pages, processes: None }
}

fn difference(earlier: &[(&str, &str, u64)], later: &[(&str, &str, u64)]) -> Difference {
    reading(views(later), None).since(&reading(views(earlier), None), 8192)
}

#[test]
fn blocks_are_reported_in_the_words_of_every_database() {
    let at = |hit, read, reset| {
        [
            ("pg_stat_database", "blks_hit", hit),
            ("pg_stat_database", "blks_read", read),
            ("pg_stat_database", RESET, reset),
        ]
    };
    let reported = difference(&at(100, 10, 7), &at(130, 15, 7));
    let counters =
        Counters { logical_reads: Some(35), cache_hits: Some(30), buffer_misses: Some(5), ..Counters::default() };
    assert_eq!(reported.counters, counters);
    assert_eq!(reported.own["pg_stat_database.blks_hit"], 30);
    assert_eq!(reported.own.keys().find(|name| name.contains(RESET)), None);
    assert!(reported.reset.is_empty());
}

#[test]
fn counters_that_were_set_back_are_unknown() {
    let at = |hit, reset, updated, wal| {
        [
            ("pg_stat_database", "blks_hit", hit),
            ("pg_stat_database", "blks_read", 0),
            ("pg_stat_database", RESET, reset),
            ("pg_stat_user_tables", "n_tup_upd", updated),
            ("pg_stat_wal", "wal_bytes", wal),
        ]
    };
    // They may be larger than before all the same.
    let reported = difference(&at(100, 7, 5, 10), &at(130, 8, 6, 11));
    assert_eq!(reported.counters, Counters { redo_bytes: Some(1), ..Counters::default() });
    assert_eq!(reported.reset, ["pg_stat_database", "pg_stat_user_tables"]);
    // Nobody says so after a crash.
    let reported = difference(&at(100, 7, 5, 10), &at(130, 7, 5, 9));
    assert_eq!((reported.counters.redo_bytes, reported.counters.cache_hits), (None, Some(30)));
    assert_eq!(reported.reset, ["pg_stat_wal"]);
}

#[test]
fn a_database_of_which_nothing_was_counted_yet_was_not_set_back() {
    let of = |count| [("pg_stat_database", "blks_hit", count), ("pg_stat_database", "blks_read", count)];
    let later = [&of(30)[..], &[("pg_stat_database", RESET, 7)]].concat();
    let reported = difference(&of(0), &later);
    assert_eq!((reported.counters.cache_hits, reported.reset.len()), (Some(30), 0));
    assert_eq!(difference(&of(1), &later).counters.cache_hits, None);
}

#[test]
fn buffers_written_and_checkpoints_are_found_in_every_version() {
    let old = |n| {
        [
            ("pg_stat_bgwriter", "buffers_checkpoint", n),
            ("pg_stat_bgwriter", "buffers_clean", n),
            ("pg_stat_bgwriter", "buffers_backend", 2 * n),
            ("pg_stat_bgwriter", "checkpoints_timed", n),
            ("pg_stat_bgwriter", "checkpoints_req", n),
        ]
    };
    let reported = difference(&old(1), &old(2)).counters;
    assert_eq!(
        (reported.physical_writes, reported.physical_write_bytes, reported.checkpoints),
        (Some(4), Some(4 * 8192), Some(2))
    );

    let new = |n: u64, done: bool| {
        let mut counts = vec![
            ("pg_stat_bgwriter", "buffers_clean", n),
            ("pg_stat_checkpointer", "num_timed", 2 * n),
            ("pg_stat_checkpointer", "num_requested", n),
            ("pg_stat_io", "checkpointer.relation.normal.write_bytes", 8192 * n),
            ("pg_stat_io", "client backend.relation.bulkread.write_bytes", 16384 * n),
            ("pg_stat_io", "client backend.temp relation.normal.write_bytes", 5 * n),
            ("pg_stat_io", "walwriter.wal.normal.write_bytes", 7 * n),
            ("pg_stat_io", "checkpointer.relation.normal.writes", n),
        ];
        if done {
            counts.push(("pg_stat_checkpointer", "num_done", n));
        }
        counts
    };
    let reported = difference(&new(1, false), &new(2, false)).counters;
    assert_eq!(
        (reported.physical_writes, reported.physical_write_bytes, reported.checkpoints),
        (Some(3), Some(3 * 8192), Some(3))
    );
    assert_eq!(difference(&new(1, true), &new(2, true)).counters.checkpoints, Some(1));
}

#[test]
fn a_row_of_io_that_appears_counts_from_zero_and_one_that_rests_is_left_out() {
    let reported = difference(
        &[("pg_stat_io", "checkpointer.relation.normal.writes", 5)],
        &[
            ("pg_stat_io", "checkpointer.relation.normal.writes", 5),
            ("pg_stat_io", "autovacuum worker.relation.vacuum.reads", 9),
        ],
    );
    assert_eq!(reported.own, [("pg_stat_io.autovacuum worker.relation.vacuum.reads".to_owned(), 9)].into());
    // Elsewhere a counter that appears was unknown before.
    let reported = difference(&[("pg_stat_wal", "a", 1)], &[("pg_stat_wal", "a", 1), ("pg_stat_wal", "b", 7)]);
    assert_eq!(reported.own, [("pg_stat_wal.a".to_owned(), 0)].into());
}

#[test]
fn growth_is_counted_once() {
    let mut sizes = [100, 120, 90, 120, 125].map(|pages| reading(Views::new(), Some(pages)));
    let mut grown = Vec::new();
    for at in 1..sizes.len() {
        let (earlier, later) = sizes.split_at_mut(at);
        let earlier = earlier.last().unwrap();
        grown.push(later[0].since(earlier, 8192).own["relation.main_pages_grown"]);
        later[0].remember_size(earlier);
    }
    assert_eq!(grown, [20, 0, 0, 5]);
}
