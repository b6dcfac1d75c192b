//! Two-tier SQLite state service for a personal-agent runtime.
