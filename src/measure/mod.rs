//! Recorders, interval merge and operating-system counters.
