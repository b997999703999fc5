//! Updates that make a production's commits, writes and redo.

use targets::database::RedoSizes;

/// Blocks that one update changes at most.
pub(super) const MAX_UPDATE: f64 = 1_024.0;

/// Updates that make a production's commits, writes and redo.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Updates {
    /// On cold blocks, per second: each of their changes is written once.
    pub(super) cold_per_s: f64,
    pub(super) cold_blocks: f64,
    /// On hot blocks, per second.
    pub(super) hot_per_s: f64,
    pub(super) hot_blocks: f64,
    pub(super) heavy_share: f64,
}

impl Updates {
    pub(super) fn per_s(&self) -> f64 {
        self.cold_per_s + self.hot_per_s
    }

    pub(super) fn hot_touches(&self) -> f64 {
        self.hot_per_s * self.hot_blocks
    }

    pub(super) fn cold_touches(&self) -> f64 {
        self.cold_per_s * self.cold_blocks
    }

    /// Bytes of redo that they make per second.
    pub(super) fn redo(&self, sizes: RedoSizes) -> f64 {
        let change = change_bytes(sizes, self.heavy_share);
        (self.cold_touches() + self.hot_touches()) * change + self.per_s() * sizes.commit_bytes as f64
    }
}

fn change_bytes(sizes: RedoSizes, heavy_share: f64) -> f64 {
    let (lite, heavy) = (sizes.lite_bytes as f64, sizes.heavy_bytes as f64);
    lite + (heavy - lite) * heavy_share
}

/// What updates are asked for, per second.
#[derive(Debug, Clone, Copy)]
pub(super) struct Asked {
    pub(super) commits: f64,
    /// Cold blocks that are changed.
    pub(super) changes: f64,
    /// Bytes of redo; absent where they are not reported.
    pub(super) redo: Option<f64>,
}

/// What is known of the data.
#[derive(Debug, Clone, Copy)]
pub(super) struct OnData {
    /// Cold blocks of each schema.
    pub(super) cold_blocks: u64,
    /// Hot blocks of each that may be changed; 0 for none.
    pub(super) hot_blocks: u64,
    pub(super) redo: Option<RedoSizes>,
}

/// The updates that do what is asked, as far as data have the blocks for it.
pub(super) fn updates(asked: Asked, data: OnData) -> Updates {
    let (Asked { commits, changes, redo }, OnData { cold_blocks, hot_blocks: hot_set, redo: sizes }) = (asked, data);
    if commits <= 0.0 {
        return Updates::default();
    }
    let most = MAX_UPDATE.min(cold_blocks.max(1) as f64);
    // What no hot set takes goes to cold blocks.
    let all_cold = |per_s: f64| {
        let blocks = (changes / per_s).clamp(1.0, most);
        Updates { cold_per_s: per_s, cold_blocks: blocks, ..Updates::default() }
    };
    let updates = match hot_set {
        0 => all_cold(commits),
        _ if changes >= commits => all_cold(commits),
        _ => {
            let cold = if changes > 0.0 { all_cold(changes) } else { Updates::default() };
            Updates { hot_per_s: commits - cold.cold_per_s, hot_blocks: 1.0, ..cold }
        }
    };
    let (Some(sizes), Some(redo)) = (sizes, redo) else { return updates };
    let least = updates.redo(sizes);
    let heavy = Updates { heavy_share: 1.0, ..updates }.redo(sizes);
    if redo <= least {
        return updates;
    }
    if redo <= heavy {
        return Updates { heavy_share: (redo - least) / (heavy - least), ..updates };
    }
    if hot_set == 0 {
        return Updates { heavy_share: 1.0, ..updates };
    }
    // More than these changes can make: blocks that are hot are changed besides, and written no more often for that.
    let updates = match updates.hot_per_s {
        0.0 => {
            let half = all_cold(commits / 2.0);
            Updates { hot_per_s: commits / 2.0, ..half }
        }
        _ => updates,
    };
    let bytes = change_bytes(sizes, 1.0);
    let rest = redo - updates.per_s() * sizes.commit_bytes as f64 - updates.cold_touches() * bytes;
    let hot_blocks = (rest / bytes / updates.hot_per_s).clamp(1.0, hot_set as f64);
    Updates { heavy_share: 1.0, hot_blocks, ..updates }
}
