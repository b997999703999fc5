//! Fewer values that look the same.

/// At most about `most` values: of each of many equal stretches the least and the largest, in their order, so that no spike is
/// lost. A mean would hide exactly what a chart of latency is looked at for.
pub(in crate::html) fn thin(values: &[(f64, f64)], most: usize) -> Vec<(f64, f64)> {
    let stretches = (most / 2).max(1);
    if values.len() <= most {
        return values.to_vec();
    }
    let length = values.len().div_ceil(stretches);
    let kept = values.chunks(length).flat_map(|stretch| {
        let by = |a: &(usize, &(f64, f64)), b: &(usize, &(f64, f64))| a.1.1.total_cmp(&b.1.1);
        let least = stretch.iter().enumerate().min_by(by).map(|(at, _)| at).unwrap_or(0);
        let largest = stretch.iter().enumerate().max_by(by).map(|(at, _)| at).unwrap_or(0);
        let both = [least.min(largest), least.max(largest)];
        both.into_iter().take(if least == largest { 1 } else { 2 }).map(|at| stretch[at])
    });
    kept.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn spikes_survive_and_order_is_kept(values in prop::collection::vec(0.0_f64..1e9, 1..5_000), most in 2_usize..300) {
            let values: Vec<(f64, f64)> = values.into_iter().enumerate().map(|(x, y)| (x as f64, y)).collect();
            let kept = thin(&values, most);
            prop_assert!(kept.len() <= most.max(2), "{} of at most {most}", kept.len());
            prop_assert!(kept.windows(2).all(|pair| pair[0].0 < pair[1].0));
            let extremes = |values: &[(f64, f64)]| {
                values.iter().fold((f64::INFINITY, 0.0_f64), |(low, high), (_, y)| (low.min(*y), high.max(*y)))
            };
            prop_assert_eq!(extremes(&kept), extremes(&values));
        }
    }
}
