//! What load does, as pure generators from a seed.
