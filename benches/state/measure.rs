//! Turns, medians, and the table.

use std::future::Future;
use std::time::{Duration, Instant};

/// Times of the two sides, one of each a turn.
#[derive(Default)]
pub(crate) struct Turns {
    ours: Vec<Duration>,
    raw: Vec<Duration>,
}

impl Turns {
    pub(crate) fn ours(&mut self, took: Duration) {
        self.ours.push(took);
    }

    pub(crate) fn raw(&mut self, took: Duration) {
        self.raw.push(took);
    }

    /// Median time of our side.
    pub(crate) fn our_median(&self) -> Duration {
        median(self.ours.clone())
    }

    /// Our share of SQLite's speed in each turn, sorted.
    fn shares(&self) -> Vec<f64> {
        let turns = self.ours.iter().zip(&self.raw);
        let mut shares: Vec<f64> = turns
            .map(|(ours, raw)| raw.as_secs_f64() / ours.as_secs_f64())
            .collect();
        shares.sort_by(f64::total_cmp);
        shares
    }
}

/// The time of one work.
pub(crate) async fn timed<T>(work: impl Future<Output = T>) -> (Duration, T) {
    let since = Instant::now();
    let value = work.await;
    (since.elapsed(), value)
}

pub(crate) fn median(mut times: Vec<Duration>) -> Duration {
    times.sort();
    times[times.len() / 2]
}

/// Milliseconds with three places.
pub(crate) fn ms(time: Duration) -> String {
    format!("{:.3} ms", time.as_secs_f64() * 1_000.0)
}

/// What was measured, printed line by line: a run that is cut off has said what it knew.
pub(crate) struct Table;

impl Table {
    pub(crate) fn new() -> Self {
        println!(
            "{:<50} {:>12} {:>12}  {:<22} budget",
            "work", "ours", "SQLite", "share (lowest, highest)"
        );
        Self
    }

    /// A work both sides did: median times for one of `units`, and our share of SQLite's speed.
    pub(crate) fn both(&mut self, work: &str, turns: &Turns, units: usize, budget: &str) {
        let units = u32::try_from(units).unwrap();
        let shares = turns.shares();
        let share = format!(
            "{:.2} ({:.2}, {:.2})",
            shares[shares.len() / 2],
            shares[0],
            shares[shares.len() - 1]
        );
        let ours = ms(turns.our_median() / units);
        let raw = ms(median(turns.raw.clone()) / units);
        println!("{work:<50} {ours:>12} {raw:>12}  {share:<22} {budget}");
    }

    /// A work only we do.
    pub(crate) fn ours(&mut self, work: &str, figure: &str, note: &str, budget: &str) {
        println!("{work:<50} {figure:>12} {:>12}  {note:<22} {budget}", "");
    }
}
