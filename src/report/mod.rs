//! Text, tables and CSV from a run and its findings.
