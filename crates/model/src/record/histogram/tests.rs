use super::super::counts::HIGHEST_NS;
use super::*;
use proptest::prelude::*;

fn of(values: &[u64]) -> Histogram {
    let mut histogram = Histogram::default();
    values.iter().for_each(|ns| histogram.record(*ns));
    histogram
}

#[test]
fn an_empty_histogram_knows_no_quantile() {
    let empty = Histogram::default();
    assert_eq!((empty.mean_ns(), empty.min_ns(), empty.max_ns(), empty.quantile_ns(0.5)), (None, None, None, None));
}

#[test]
fn a_wait_counts_in_the_lowest_bound_above_it() {
    for k in 0..POWER_OF_TWO_BOUNDS {
        let bound_ns = 1_000u64 << k;
        assert_eq!(of(&[bound_ns - 1]).power_of_two_us()[k], Some(1), "just below 2^{k} us");
        assert_eq!(of(&[bound_ns]).power_of_two_us()[k + 1], Some(1), "2^{k} us exactly");
    }
}

#[test]
fn equal_durations_do_not_deviate() {
    assert_eq!(of(&[123_457; 9]).standard_deviation_ns(), Some(0.0));
    assert_eq!(Histogram::default().standard_deviation_ns(), None);
}

#[test]
fn the_geometric_mean_is_that_of_the_durations() {
    let mean = of(&[100_000, 1_000_000, 10_000_000]).geometric_mean_ns().unwrap();
    assert!((mean / 1e6 - 1.0).abs() < 0.004, "{mean}");
    assert_eq!((of(&[0; 3]).geometric_mean_ns(), Histogram::default().geometric_mean_ns()), (Some(1.0), None));
    let same = of(&[123_457; 9]).geometric_mean_ns().unwrap();
    assert!((same - 123_457.0).abs() < 1e-6, "{same}");
    assert_eq!(Histogram::counted(5, Some(9)).geometric_mean_ns(), None);
}

#[test]
fn waits_beyond_the_range_keep_an_exact_maximum_and_sum() {
    let two_hours = 2 * HIGHEST_NS;
    let histogram = of(&[5, two_hours]);
    assert_eq!(histogram.max_ns(), Some(two_hours));
    assert_eq!(histogram.total_ns(), Some(two_hours + 5));
    assert_eq!(histogram.power_of_two_us()[POWER_OF_TWO_BOUNDS], Some(1));
}

#[test]
fn a_document_with_a_wrong_count_is_refused() {
    let json = serde_json::to_string(&of(&[1, 2, 3])).unwrap().replace("\"count\":3", "\"count\":4");
    let error = serde_json::from_str::<Histogram>(&json).unwrap_err().to_string();
    assert!(error.contains("holds 3 waits but says 4"), "{error}");
}

#[test]
fn a_packed_second_of_reads_takes_a_small_part_of_the_memory() {
    let mut second = Histogram::default();
    (0..20_000u64).for_each(|read| second.record(60_000 + read * read % 900_000));
    second.pack();
    let Buckets::Packed(packed) = &second.buckets else { panic!("it is not packed") };
    assert!(packed.bytes() < 1_500, "{} bytes", packed.bytes());
}

fn buckets(counts: &[(u64, Option<u64>, u64)]) -> Vec<ReportedBucket> {
    counts
        .iter()
        .map(|(from_ns, to_ns, count)| ReportedBucket { from_ns: *from_ns, to_ns: *to_ns, count: *count })
        .collect()
}

#[test]
fn reported_buckets_give_upper_edges_and_no_more() {
    let reported = Histogram::reported(
        buckets(&[(0, Some(1_024_000), 60), (1_024_000, Some(2_048_000), 39), (2_048_000, None, 1)]),
        Some(90_000_000),
        None,
        None,
    );
    assert_eq!(
        (reported.count(), reported.mean_ns(), reported.min_ns(), reported.max_ns()),
        (100, Some(900_000.0), None, None)
    );
    assert_eq!(reported.quantiles_ns(&[0.5, 0.99, 0.999]), [Some(1_024_000), Some(2_048_000), None]);
    assert_eq!((reported.standard_deviation_ns(), reported.to_hdr().is_none()), (None, true));
    assert_eq!(
        [1_024_000, 1_500_000, 4_000_000].map(|limit| reported.below_ns(limit)),
        [(60, 60), (60, 99), (99, 100)]
    );
    let folded = reported.power_of_two_us();
    assert_eq!(folded[..10], [None; 10], "how many of those below 1 ms were how short, nobody knows");
    assert_eq!((folded[10], folded[11], folded[12], folded[27]), (Some(60), Some(39), None, None));
    assert_eq!([0.9, 0.999].map(|quantile| reported.quantile_width(quantile)), [Some(2.0), None]);
    assert_eq!([0.6, 0.9, 0.999].map(|quantile| reported.knows_quantile(quantile)), [false; 3]);
    let fine =
        Histogram::reported(buckets(&[(100_000, Some(101_600), 9), (101_600, Some(103_200), 9)]), None, None, None);
    assert!(fine.knows_quantile(0.7), "a bucket of fio");
}

#[test]
fn a_table_of_powers_of_two_knows_no_percentile_where_a_rounded_share_ends_at_it() {
    let counts = |edges: [u64; 3]| {
        let [first, second, third] = edges;
        let counts = [(0, Some(first), 900_000), (first, Some(second), 90_000), (second, Some(third), 10_000)];
        Histogram::reported(buckets(&counts), None, None, None)
    };
    for table in
        [[8_192_000, 16_384_000, 32_768_000], [8_000_000, 16_000_000, 32_000_000], [8_000_000, 32_000_000, SECOND_NS]]
    {
        assert!(!counts(table).knows_quantile(0.99), "{table:?}");
    }
    let percentiles = counts([8_192_000, 16_384_000, 31_000_000]);
    assert!(percentiles.knows_quantile(0.9) && percentiles.knows_quantile(0.99), "p90, p99 and the maximum");
}

#[test]
fn edges_in_thousands_count_as_powers_of_two() {
    let reported = Histogram::reported(
        buckets(&[(2_000_000, Some(4_000_000), 7), (4_000_000, Some(8_192_000), 2)]),
        None,
        None,
        None,
    );
    assert_eq!(reported.power_of_two_us()[12..14], [Some(7), Some(2)]);
}

#[test]
fn percentiles_that_span_bounds_lose_no_wait() {
    let reported = Histogram::reported(
        buckets(&[
            (20_000, Some(50_000), 10),
            (50_000, Some(60_000), 20),
            (60_000, Some(97_000), 30),
            (97_000, Some(120_000), 25),
            (120_000, Some(600_000), 14),
            (600_000, None, 1),
        ]),
        None,
        None,
        None,
    );
    let folded = reported.power_of_two_us();
    assert_eq!(folded[4..12], [Some(0), None, Some(30), Some(55), None, None, Some(14), None]);
    assert_eq!(folded.iter().flatten().sum::<u64>(), 99, "all but the one without an upper edge");
}

#[test]
fn reported_histograms_merge_with_each_other_and_with_recorded_ones() {
    let mut reported = Histogram::reported(buckets(&[(0, Some(1_000), 5), (1_000, Some(2_000), 1)]), None, None, None);
    reported.merge(&Histogram::reported(buckets(&[(0, Some(1_000), 2)]), Some(900), None, None));
    assert_eq!((reported.count(), reported.total_ns(), reported.below_ns(1_000)), (8, None, (7, 7)));
    let mut recorded = of(&[5_000]);
    recorded.merge(&reported);
    assert_eq!((recorded.count(), recorded.max_ns(), recorded.is_reported()), (9, None, true));
    recorded.record(9_000);
    assert_eq!(recorded.count(), 10);
}

#[test]
fn waits_that_were_only_counted_have_no_distribution() {
    let counted = Histogram::counted(12, Some(24_000));
    assert_eq!((counted.mean_ns(), counted.quantile_ns(0.5), counted.is_distribution()), (Some(2_000.0), None, false));
    assert!(counted.power_of_two_us().iter().all(Option::is_none));
}

#[test]
fn reported_histograms_come_back_from_the_document() {
    let reported = Histogram::reported(buckets(&[(0, Some(1_000), 5), (1_000, None, 1)]), None, Some(10), Some(5_000));
    let text = serde_json::to_string(&reported).unwrap();
    assert_eq!(serde_json::from_str::<Histogram>(&text).unwrap(), reported);
    assert!(!text.contains("hdr") && !text.contains("total_ns"), "{text}");
    let wrong = serde_json::from_str::<Histogram>(&text.replace("\"count\":6", "\"count\":7")).unwrap_err();
    assert!(wrong.to_string().contains("it holds 6 waits but says 7"), "{wrong}");
}

#[test]
fn a_share_that_is_not_exact_in_binary_takes_no_rank_more() {
    // What `p99.9` becomes when it is read.
    let share = 99.9 / 100.0;
    for thousands in [1, 2, 3, 7, 1_000, 10_000_000] {
        let mut times = Histogram::default();
        times.record_n(1_000, 999 * thousands);
        times.record_n(1_000_000, thousands);
        assert!(times.quantile_ns(share).is_some_and(|ns| ns < 2_000), "of {thousands} thousands");
        times.record(1_000_000);
        assert_eq!(times.quantile_ns(share), Some(1_000_000), "of {thousands} thousands and one");
    }
}

proptest! {
    #[test]
    fn packed_counts_read_and_merge_as_before(values in prop::collection::vec(0u64..HIGHEST_NS * 2, 0..200)) {
        let spread = of(&values);
        let mut packed = spread.clone();
        packed.pack();
        prop_assert_eq!(&packed, &spread);
        prop_assert_eq!((packed.count(), packed.quantile_ns(0.9)), (spread.count(), spread.quantile_ns(0.9)));
        prop_assert_eq!(serde_json::to_string(&packed).unwrap(), serde_json::to_string(&spread).unwrap());
        let (mut twice, mut expected) = (packed.clone(), spread.clone());
        twice.merge(&packed);
        expected.merge(&spread);
        prop_assert_eq!(twice, expected);
    }

    #[test]
    fn merge_equals_concatenation(
        left in prop::collection::vec(0u64..HIGHEST_NS * 2, 0..200),
        right in prop::collection::vec(0u64..10_000_000, 0..200),
    ) {
        let mut merged = of(&left);
        merged.merge(&of(&right));
        prop_assert_eq!(merged, of(&[left, right].concat()));
    }

    #[test]
    fn the_fold_loses_no_wait_and_misplaces_none(values in prop::collection::vec(0u64..1 << 42, 1..300)) {
        let folded = of(&values).power_of_two_us();
        let mut expected = [0; POWER_OF_TWO_BOUNDS + 1];
        for ns in &values {
            let index = (0..POWER_OF_TWO_BOUNDS).find(|k| *ns < 1_000u64 << k).unwrap_or(POWER_OF_TWO_BOUNDS);
            expected[index] += 1;
        }
        prop_assert_eq!(folded, expected.map(Some));
    }

    #[test]
    fn quantiles_are_within_one_bucket(values in prop::collection::vec(1u64..1 << 40, 1..300), q in 0.0f64..1.0) {
        let mut sorted = values.clone();
        sorted.sort_unstable();
        let rank = ((q * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len()) - 1;
        let exact = sorted[rank] as f64;
        let estimate = of(&values).quantile_ns(q).unwrap() as f64;
        prop_assert!(estimate >= exact * 0.999 && estimate <= exact * 1.008, "reported {estimate}, exact {exact}");
    }

    #[test]
    fn the_standard_deviation_is_within_its_bound(values in prop::collection::vec(0u64..1 << 40, 1..300)) {
        let mean_of = |squares: f64| squares / values.len() as f64;
        let mean = mean_of(values.iter().map(|v| *v as f64).sum());
        let exact = mean_of(values.iter().map(|v| (*v as f64 - mean).powi(2)).sum()).sqrt();
        let root_mean_square = mean_of(values.iter().map(|v| (*v as f64).powi(2)).sum()).sqrt();
        let estimate = of(&values).standard_deviation_ns().unwrap();
        prop_assert!((estimate - exact).abs() <= 0.004 * root_mean_square + 0.5, "reported {estimate}, exact {exact}");
    }

    #[test]
    fn the_geometric_mean_is_within_its_bound(values in prop::collection::vec(0u64..1 << 40, 1..300)) {
        let logarithms = values.iter().map(|v| (*v.max(&1) as f64).ln()).sum::<f64>();
        let exact = (logarithms / values.len() as f64).exp();
        let estimate = of(&values).geometric_mean_ns().unwrap();
        prop_assert!((estimate / exact - 1.0).abs() <= 0.004, "reported {estimate}, exact {exact}");
    }

    #[test]
    fn quantiles_are_those_of_hdr_histogram_packed_or_not(
        values in prop::collection::vec(0u64..1 << 43, 1..200),
        quantile in 0.0_f64..=1.0,
    ) {
        let mut histogram = of(&values);
        let reported = histogram.to_hdr().unwrap().value_at_quantile(quantile);
        let wanted = Some(reported.min(histogram.max_ns().unwrap()).max(histogram.min_ns().unwrap()));
        prop_assert_eq!(histogram.quantile_ns(quantile), wanted);
        let spread: Vec<_> = histogram.buckets_ns().collect();
        histogram.pack();
        prop_assert_eq!(histogram.quantile_ns(quantile), wanted);
        prop_assert_eq!(histogram.buckets_ns().collect::<Vec<_>>(), spread);
        let several = [0.0, 0.5, quantile.max(0.5), 1.0];
        let each: Vec<_> = several.iter().map(|q| histogram.quantile_ns(*q)).collect();
        prop_assert_eq!(histogram.quantiles_ns(&several), each);
    }

    #[test]
    fn the_document_form_round_trips(values in prop::collection::vec(0u64..1 << 41, 0..200)) {
        let histogram = of(&values);
        let json = serde_json::to_string(&histogram).unwrap();
        prop_assert_eq!(serde_json::from_str::<Histogram>(&json).unwrap(), histogram);
    }

    #[test]
    fn narrow_counters_merge_as_if_recorded_here(values in prop::collection::vec(0u64..1 << 41, 1..200)) {
        let mut narrow = Counts::default();
        values.iter().for_each(|ns| narrow.record_n(*ns, 1));
        let mut merged = Histogram::default();
        let (min, max) = (*values.iter().min().unwrap(), *values.iter().max().unwrap());
        merged.merge_counts(&narrow, values.iter().sum(), min, max);
        prop_assert_eq!(merged, of(&values));
    }
}

proptest! {
    #[test]
    fn numbers_come_back_as_they_were(numbers in prop::collection::vec(any::<u64>(), 0..50)) {
        let mut bytes = Vec::new();
        numbers.iter().for_each(|number| push(&mut bytes, *number));
        let mut rest = bytes.as_slice();
        let back: Vec<u64> = std::iter::from_fn(|| pull(&mut rest)).collect();
        prop_assert_eq!(back, numbers);
    }
}

#[test]
fn an_encoding_that_claims_memory_it_does_not_fill_is_refused() {
    let mut histogram = Histogram::default();
    histogram.record(1_000);
    let document = serde_json::to_value(&histogram).unwrap();
    let encoded = STANDARD.decode(document["hdr_v2_deflate_base64"].as_str().unwrap()).unwrap();
    let plain = inflated(&encoded).unwrap();
    let read = |plain: &[u8]| {
        let mut document = document.clone();
        document["hdr_v2_deflate_base64"] = STANDARD.encode(plain).into();
        serde_json::from_value::<Histogram>(document)
    };
    assert_eq!(read(&plain).unwrap(), histogram);
    let changed = |at: usize, word: u32| {
        let mut plain = plain.clone();
        plain[at..at + 4].copy_from_slice(&word.to_be_bytes());
        read(&plain).unwrap_err().to_string()
    };
    // Four gigabytes of counts, and two million buckets.
    assert!(changed(4, u32::MAX).contains("its header is damaged"));
    assert!(changed(12, 5).contains("its header is damaged"));
    assert!(changed(0, 0).contains("it is in no known encoding"));
}
