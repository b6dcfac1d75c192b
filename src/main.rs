//! The `zeroclaw` command.

fn main() {}
