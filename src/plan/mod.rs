//! What will be done, decided from what was asked and the facts about the target.
