//! Two-tier SQLite state service for a personal-agent runtime.
pub mod backup;
pub mod clock;
pub mod config;
pub mod db;
pub mod fs;
pub mod model;
pub mod service;
pub mod store;
