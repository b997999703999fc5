//! The doors: one file a command; the only place that prints or exits.
