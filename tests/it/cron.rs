//! Scheduled jobs: when they are due, and that each time they are they run once.

mod zones;
