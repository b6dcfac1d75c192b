//! Reads the configuration.
