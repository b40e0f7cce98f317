//! Device queues as text: a section of reports, lines of `info`.

use super::document::{
    DeviceCalls, DeviceClock, DeviceQueue, DeviceQueueInTime, Devices, DevicesInTime, QueueTimes,
};
use crate::format::{Cell, count, counted, fit, percent, signed, time};
use crate::sheet::{BOLD, DIM, Sheet};
use std::fmt::Write;

/// Rows of kernels that are shown for each queue.
const NAMES_SHOWN: usize = 5;
/// Rows of waits that are shown.
const WAITS_SHOWN: usize = 5;

impl DevicesInTime {
    /// The header of a trace with only device queues; empty without queues.
    pub(crate) fn header_text(&self, trace: &str) -> String {
        if self.queues.is_empty() {
            return String::new();
        }
        let operations: usize = self.queues.iter().map(|row| row.queue.recorded).sum();
        let lost: u64 = self.queues.iter().map(|row| row.queue.account_of("lost")).sum();
        format!(
            "{trace}: {}  {}  {}  {} lost\n",
            time(self.run_wall_ns),
            counted(self.queues.len() as u64, "device queue"),
            counted(operations as u64, "operation"),
            count(lost)
        )
    }

    /// The section as text in lines of `width` columns, empty without queues.
    pub(crate) fn text(&self, width: usize) -> String {
        let mut sheet = Sheet::new(width);
        if self.queues.is_empty() {
            return sheet.text;
        }
        let columns = [("operations", 12), ("span", 11), ("kernels", 9), ("copies", 9), ("idle", 9)];
        sheet.heading("Device queues", &columns);
        for row in &self.queues {
            row.write(&mut sheet);
        }
        self.write_calls(&mut sheet);
        self.write_waits(&mut sheet);
        sheet.text
    }

    /// Device calls of each host thread: rows beside those of the queues.
    fn write_calls(&self, sheet: &mut Sheet) {
        let threads: Vec<&DeviceCalls> = self.calls.iter().filter(|thread| thread.calls > 0).collect();
        if threads.is_empty() {
            return;
        }
        let titles = ["calls", "submitting", "waiting", "other", "overhead"];
        sheet.heading("Calls for devices", &titles.map(|title| (title, 11)));
        let has_several = threads.iter().any(|thread| thread.pid != threads[0].pid);
        for thread in threads {
            let times =
                [thread.submitting_ns, thread.waiting_ns, thread.other_ns, thread.overhead_ns].map(time);
            let calls = count(thread.calls as u64);
            let columns: Vec<(&str, usize)> =
                [&calls].into_iter().chain(&times).map(|text| (text.as_str(), 11)).collect();
            let process = if has_several { format!(" of process {}", thread.pid) } else { String::new() };
            sheet.row(0, &format!("thread {}{process}", thread.tid), &columns);
        }
    }

    /// Waits of threads for devices, by call, queue and operation.
    fn write_waits(&self, sheet: &mut Sheet) {
        if self.waits.is_empty() {
            return;
        }
        let total: u64 = self.waits.iter().map(|wait| wait.time_ns).sum();
        sheet.heading("Waits for devices, longest first", &[("threads", 9), ("time", 11), ("share", 9)]);
        for wait in self.waits.iter().take(WAITS_SHOWN) {
            let text = match &wait.operation {
                Some(operation) => format!("in {} for {operation}", wait.call),
                None => format!("in {} while nothing runs on the device", wait.call),
            };
            let (threads, share) = (count(wait.threads as u64), percent(wait.time_ns, total));
            sheet.row(0, &text, &[(&threads, 9), (&time(wait.time_ns), 11), (&share, 9)]);
        }
        if self.waits.len() > WAITS_SHOWN {
            sheet.line(&format!("  {DIM}{} more{DIM:#}", self.waits.len() - WAITS_SHOWN));
        }
    }
}

impl DeviceQueueInTime {
    /// The queue's row, and lines on its idle time, operations and records.
    fn write(&self, sheet: &mut Sheet) {
        let (spent, span) = (&self.time_ns, self.span_ns);
        let operations = count(self.queue.operations as u64);
        let shares = [spent.kernels, spent.transfers, spent.idle()].map(|ns| percent(ns, span));
        let columns =
            [(&*operations, 12), (&*time(span), 11), (&*shares[0], 9), (&*shares[1], 9), (&*shares[2], 9)];
        sheet.row(0, &self.queue.name, &columns);
        if spent.idle() > 0 {
            sheet.aside("idle because", &self.idle_causes());
        }
        if let Some(mean) = self.queueing_ns.total.checked_div(self.queueing_ns.operations) {
            let (mean, longest) = (time(mean), time(self.queueing_ns.longest));
            sheet.aside("from submission to start", &format!("{mean} on average, {longest} at most"));
        }
        for row in self.names.iter().take(NAMES_SHOWN) {
            // Instances of a template may have one name.
            let is_shared = self.names.iter().filter(|other| other.short_name == row.short_name).count() > 1;
            let name = if is_shared { &row.name } else { &row.short_name };
            // Below the columns of the queue.
            let columns = [(&*count(row.operations), 12), (&*time(row.time_ns), 11), ("", 27)];
            sheet.row(2, name, &columns);
            if !row.submitted_by.is_empty() {
                sheet.aside("submitted", &row.submitted_by);
            }
        }
        for sentence in &self.queue.remarks {
            sheet.line(&format!("    {sentence}"));
        }
    }

    /// The causes of idle time with their shares of the span, largest first.
    fn idle_causes(&self) -> String {
        let (idle, total) = (&self.time_ns, self.span_ns);
        let causes = [
            ("nothing is submitted", idle.idle_host_bound),
            ("the device copies", idle.idle_transfer_bound),
            ("other queues compute", idle.idle_device_busy),
            ("it waits for events or the driver", idle.idle_dependency_bound),
            ("(submissions were not recorded)", idle.idle_unknown),
        ];
        let mut causes: Vec<_> = causes.into_iter().filter(|(_, nanos)| *nanos > 0).collect();
        causes.sort_by_key(|(_, nanos)| std::cmp::Reverse(*nanos));
        // Shares below half a thousandth are omitted.
        let shown = causes.iter().take_while(|(_, nanos)| nanos * 2000 >= total).count();
        causes.truncate(shown.max(1));
        let texts: Vec<String> =
            causes.iter().map(|(text, nanos)| format!("{text} {}", percent(*nanos, total))).collect();
        texts.join(", ")
    }
}

impl QueueTimes {
    /// Nanoseconds in which nothing of the queue ran.
    fn idle(&self) -> u64 {
        let ready = self.idle_device_busy + self.idle_dependency_bound + self.idle_unknown;
        self.idle_host_bound + self.idle_transfer_bound + ready
    }
}

/// The source of a queue's order (`order_from` of documents) in words.
pub fn order_source(order_from: &str) -> &str {
    match order_from {
        "told" => "stated",
        "overlaps" => "observed",
        other => other,
    }
}

impl Devices {
    /// Operations of all queues.
    pub(crate) fn recorded(&self) -> u64 {
        self.queues.iter().map(|queue| queue.recorded as u64).sum()
    }

    /// The lines of `info` on queues and their clocks; empty without queues.
    pub(crate) fn text(&self) -> String {
        let mut page = String::new();
        if self.queues.is_empty() {
            return page;
        }
        let _ = writeln!(
            page,
            "\n  {BOLD}{:<24}{:<24}{:>9}{:>10}{:>10}{:>6}{:>7}{BOLD:#}",
            "device queue", "order", "appended", "delivered", "cancelled", "lost", "lanes"
        );
        for queue in &self.queues {
            let _ = writeln!(
                page,
                "  {:<24}{:<24}{:>9}{:>10}{:>10}{:>6}{:>7}",
                Cell(fit(&queue.name, 23)),
                Cell(format!("{} ({})", queue.order, order_source(&queue.order_from))),
                count(queue.account_of("appended")),
                count(queue.account_of("delivered")),
                count(queue.account_of("cancelled")),
                count(queue.account_of("lost")),
                count(queue.account_of("lanes")),
            );
            for sentence in queue.remarks.iter().chain(&queue.clock.sentences()) {
                let _ = writeln!(page, "    {sentence}");
            }
        }
        if self.vendor_dropped > 0 {
            let dropped = counted(self.vendor_dropped, "record");
            let _ = writeln!(page, "  vendors' interfaces dropped {dropped}");
        }
        page
    }
}

impl DeviceQueue {
    /// A count of the recorder or import; 0 without it.
    fn account_of(&self, name: &str) -> u64 {
        self.account.get(name).copied().unwrap_or(0)
    }
}

impl DeviceClock {
    /// The map of the queue's clock, its tolerance, and its violations.
    fn sentences(&self) -> Vec<String> {
        let clock = self;
        let mut sentences = Vec::new();
        if clock.bounds == 0 && clock.source.is_empty() {
            return sentences;
        }
        let mut text = String::from("clock: ");
        if !clock.source.is_empty() {
            let _ = write!(text, "{}; ", clock.source);
        }
        let pieces = clock.knots.len().saturating_sub(1).max(1);
        let _ = write!(text, "{} within {}", counted(pieces as u64, "line"), counted(clock.bounds, "bound"));
        if clock.drift_ppm.abs() >= 0.05 {
            let _ = write!(text, ", drift {} ppm", signed(clock.drift_ppm, 1));
        }
        let room = |slack: Option<u64>| slack.map_or("–".to_owned(), time);
        let _ = write!(
            text,
            ", slack {} below and {} above",
            room(clock.lower_slack_ns),
            room(clock.upper_slack_ns)
        );
        sentences.push(text);
        if clock.violated > 0 {
            sentences.push(format!(
                "clock: {} bounds are violated, by {} at most: operations start before they were submitted, or end after they were seen to have ended",
                count(clock.violated),
                time(clock.worst_violation_ns)
            ));
        }
        for (ticks, nanos) in clock.steps.iter().take(3) {
            let sign = if *nanos < 0 { "−" } else { "+" };
            sentences.push(format!(
                "clock: a step of {sign}{} at device time {ticks}",
                time(nanos.unsigned_abs())
            ));
        }
        sentences
    }
}
