//! How far a run is: phase, done of total, rate and time left, for a person who waits or a program that watches.
//!
//! On a terminal one line is drawn over and over; with `--json` each report is a line on stderr; else nothing but the
//! phases themselves is told. Never more than ten reports a second, but the first and the last of a phase always.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::record::Item;
use super::sources::{ReadError, Sink};
use crate::cli::output::{Out, ProgressLine, size, span};

/// Shortest time between two reports of one phase.
const EVERY: Duration = Duration::from_millis(100);
/// A rate is no more than a guess before this.
const SETTLED: Duration = Duration::from_millis(500);

/// One report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(crate) struct Event {
    /// `look`, `backup`, `apply`, `verify`, `retire` or `index`.
    pub(crate) phase: &'static str,
    /// Bytes of sources done with.
    pub(crate) done_bytes: u64,
    /// Bytes there are; 0 where bytes are no measure of the phase.
    pub(crate) total_bytes: u64,
    /// Records done with.
    pub(crate) done_records: u64,
    /// Records there are; 0 where nobody knows yet.
    pub(crate) total_records: u64,
    /// Since the phase began.
    pub(crate) elapsed_ms: u64,
    /// Rate so far; 0 before there is one.
    pub(crate) bytes_per_second: u64,
    /// The same in records.
    pub(crate) records_per_second: u64,
    /// What is left at that rate; `None` before it can be told.
    pub(crate) left_ms: Option<u64>,
    /// Whether the phase is done.
    pub(crate) is_done: bool,
}

/// What is counted in a phase.
#[derive(Clone, Copy, Debug)]
struct Meter {
    phase: &'static str,
    began: Instant,
    told: Option<Instant>,
    bytes: (u64, u64),
    records: (u64, u64),
}

impl Meter {
    fn event(&self, now: Instant, is_done: bool) -> Event {
        let elapsed = now.saturating_duration_since(self.began);
        let per_second = |done: u64| match elapsed < SETTLED {
            true => 0,
            false => (u128::from(done) * 1_000 / elapsed.as_millis()) as u64,
        };
        let mut event = Event {
            phase: self.phase,
            done_bytes: self.bytes.0,
            total_bytes: self.bytes.1,
            done_records: self.records.0,
            total_records: self.records.1,
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            bytes_per_second: per_second(self.bytes.0),
            records_per_second: per_second(self.records.0),
            left_ms: None,
            is_done,
        };
        // Whichever is known: bytes of a phase that reads, records of one that does not.
        let (rate, left) = match event.total_bytes {
            0 => (
                event.records_per_second,
                self.records.1.saturating_sub(self.records.0),
            ),
            total => (event.bytes_per_second, total.saturating_sub(self.bytes.0)),
        };
        event.left_ms = match (is_done, rate) {
            (true, _) => Some(0),
            (false, 0) => None,
            (false, rate) => Some(left.saturating_mul(1_000) / rate),
        };
        event
    }
}

/// Where reports go.
#[derive(Debug)]
enum Teller {
    /// Notes alone.
    Notes(Out),
    Json(Out),
    Terminal(Out, ProgressLine),
}

#[derive(Debug)]
struct Inner {
    teller: Teller,
    meter: Mutex<Option<Meter>>,
}

/// How far a run is. Clones speak of the same run.
#[derive(Clone, Debug)]
pub(crate) struct Progress(Arc<Inner>);

impl Progress {
    /// As the flags and the terminal say.
    pub(crate) fn to(out: &Out) -> Self {
        Self::with(match (out.is_json(), out.talk_is_terminal()) {
            (true, _) => Teller::Json(out.clone()),
            (false, true) => Teller::Terminal(out.clone(), ProgressLine::new()),
            (false, false) => Teller::Notes(out.clone()),
        })
    }

    fn with(teller: Teller) -> Self {
        Self(Arc::new(Inner {
            teller,
            meter: Mutex::new(None),
        }))
    }

    /// Says what is going on.
    pub(crate) fn note(&self, text: &str) {
        match &self.0.teller {
            Teller::Json(_) => {}
            Teller::Notes(out) => out.note(text),
            Teller::Terminal(out, line) => line.aside(|| out.note(text)),
        }
    }

    /// Begins a phase, and ends the one before it.
    ///
    /// * `bytes`, `records`: all there are; 0 where that is unknown or no measure.
    pub(crate) fn begin(&self, phase: &'static str, bytes: u64, records: u64) {
        self.end();
        let now = Instant::now();
        let meter = Meter {
            phase,
            began: now,
            told: Some(now),
            bytes: (0, bytes),
            records: (0, records),
        };
        *self.meter() = Some(meter);
        self.tell(&meter.event(now, false));
    }

    /// Counts what was done. What is done twice does not make it more than all.
    pub(crate) fn advance(&self, bytes: u64, records: u64) {
        let now = Instant::now();
        let event = {
            let mut meter = self.meter();
            let Some(meter) = meter.as_mut() else { return };
            let add = |(done, total): (u64, u64), more: u64| match total {
                0 => (done + more, total),
                total => ((done + more).min(total), total),
            };
            meter.bytes = add(meter.bytes, bytes);
            meter.records = add(meter.records, records);
            let is_due = meter
                .told
                .is_none_or(|told| now.saturating_duration_since(told) >= EVERY);
            if !is_due {
                return;
            }
            meter.told = Some(now);
            meter.event(now, false)
        };
        self.tell(&event);
    }

    /// Ends the phase, if one is under way.
    pub(crate) fn end(&self) {
        let ended = self.meter().take();
        if let Some(meter) = ended {
            self.tell(&meter.event(Instant::now(), true));
        }
    }

    /// Counts a source while it is read.
    ///
    /// * `records`: how many it holds; 0 where nobody knows, and its bytes then count at its end.
    pub(crate) fn source<'s, S>(
        &'s self,
        bytes: u64,
        records: u64,
        sink: &'s mut S,
    ) -> Counted<'s, S> {
        Counted {
            progress: self,
            sink,
            bytes: (0, bytes),
            records: (0, records),
        }
    }

    fn tell(&self, event: &Event) {
        match &self.0.teller {
            Teller::Notes(_) => {}
            Teller::Json(out) => out.progress(event),
            Teller::Terminal(_, line) if event.is_done => line.clear(),
            Teller::Terminal(_, line) => line.show(share(event), &told(event)),
        }
    }

    fn meter(&self) -> MutexGuard<'_, Option<Meter>> {
        // A count is whole at every moment: one who panicked holding it left nothing half done.
        self.0.meter.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Thousandths that are done; `None` where nobody knows the whole.
fn share(event: &Event) -> Option<u64> {
    let (done, total) = match event.total_bytes {
        0 => (event.done_records, event.total_records),
        total => (event.done_bytes, total),
    };
    (done * 1_000).checked_div(total)
}

/// A report for people.
fn told(event: &Event) -> String {
    let mut parts = vec![event.phase.to_owned()];
    if event.total_bytes > 0 {
        let (done, total) = (size(event.done_bytes), size(event.total_bytes));
        parts.push(format!("{done} of {total}"));
    }
    let noun = match event.phase {
        "retire" => "files",
        "index" => "rows",
        _ => "records",
    };
    match (event.done_records, event.total_records) {
        (0, 0) => {}
        (done, 0) => parts.push(format!("{done} {noun}")),
        (done, total) => parts.push(format!("{done} of {total} {noun}")),
    }
    match (event.bytes_per_second, event.records_per_second) {
        (0, 0) => {}
        (0, records) => parts.push(format!("{records}/s")),
        (bytes, _) => parts.push(format!("{}/s", size(bytes))),
    }
    if let Some(left) = event.left_ms {
        // Nobody waits in tenths.
        let left = i64::try_from(left.div_ceil(1_000) * 1_000).unwrap_or(i64::MAX);
        parts.push(format!("{} left", span(left)));
    }
    parts.join(", ")
}

/// A sink that counts what goes through it.
pub(crate) struct Counted<'s, S> {
    progress: &'s Progress,
    sink: &'s mut S,
    bytes: (u64, u64),
    records: (u64, u64),
}

impl<S> Counted<'_, S> {
    fn count(&mut self, records: u64) {
        self.records.0 += records;
        let share = u128::from(self.bytes.1) * u128::from(self.records.0);
        let share = share.checked_div(u128::from(self.records.1)).unwrap_or(0);
        let done = u64::try_from(share).unwrap_or(u64::MAX).min(self.bytes.1);
        self.progress
            .advance(done.saturating_sub(self.bytes.0), records);
        self.bytes.0 = self.bytes.0.max(done);
    }

    /// Ends the source: all its bytes are done with.
    pub(crate) fn finish(self) {
        self.progress.advance(self.bytes.1 - self.bytes.0, 0);
    }
}

impl<S: Sink> Sink for Counted<'_, S> {
    async fn take(&mut self, items: Vec<Item>) -> Result<(), ReadError> {
        let is_record = |item: &&Item| !matches!(item, Item::Damage { .. } | Item::Note { .. });
        let records = items.iter().filter(is_record).count() as u64;
        self.sink.take(items).await?;
        self.count(records);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn silent() -> Progress {
        Progress::with(Teller::Notes(Out::from_environment()))
    }

    fn meter(bytes: (u64, u64), records: (u64, u64)) -> Meter {
        Meter {
            phase: "apply",
            began: Instant::now(),
            told: None,
            bytes,
            records,
        }
    }

    #[test]
    fn rate_and_time_left_follow_from_what_is_done() {
        let meter = meter((1_000, 4_000), (10, 40));

        let event = meter.event(meter.began + Duration::from_secs(2), false);

        assert_eq!((event.bytes_per_second, event.records_per_second), (500, 5));
        assert_eq!(event.left_ms, Some(6_000));
        assert_eq!(share(&event), Some(250));
        assert_eq!(
            told(&event),
            "apply, 1000 B of 3.9 KiB, 10 of 40 records, 500 B/s, 6 s left"
        );
    }

    #[test]
    fn where_nothing_is_known_nothing_is_made_up() {
        let early = meter((1_000, 4_000), (0, 0));
        let event = early.event(early.began + Duration::from_millis(10), false);
        assert_eq!((event.bytes_per_second, event.left_ms), (0, None));

        let unknown = meter((0, 0), (0, 0));
        let event = unknown.event(unknown.began + Duration::from_secs(2), false);
        assert_eq!((share(&event), told(&event).as_str()), (None, "apply"));
    }

    #[test]
    fn a_source_read_twice_is_not_more_than_all() {
        let progress = silent();
        progress.begin("apply", 100, 10);

        progress.advance(80, 8);
        progress.advance(80, 8);

        let meter = (*progress.meter()).unwrap();
        assert_eq!((meter.bytes, meter.records), ((100, 100), (10, 10)));
        progress.end();
        assert!(progress.meter().is_none());
    }

    #[test]
    fn bytes_of_a_source_count_as_its_records_do() {
        let progress = silent();
        progress.begin("apply", 1_000, 0);
        let mut sink = ();
        let mut counted = progress.source(1_000, 4, &mut sink);

        counted.count(1);
        assert_eq!((*progress.meter()).unwrap().bytes.0, 250);
        counted.count(5);
        assert_eq!((*progress.meter()).unwrap().bytes.0, 1_000);
        counted.finish();
        assert_eq!((*progress.meter()).unwrap().bytes.0, 1_000);
    }
}
