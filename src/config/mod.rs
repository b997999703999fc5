//! What the user asked for, as plain data.
