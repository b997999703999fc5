//! Time limits that are a part of what is tested.

use std::panic::{AssertUnwindSafe, catch_unwind};

/// Tests with a long limit what failed with a short one: on a busy machine that may be too short for what does not wait on purpose.
pub fn patiently<T: Copy>([short, long]: [T; 2], test: impl Fn(T)) {
    if catch_unwind(AssertUnwindSafe(|| test(short))).is_err() {
        test(long);
    }
}
