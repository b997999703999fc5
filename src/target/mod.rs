//! Where load lands.
