//! The sections on the time of threads.

use super::options::ReportOptions;
use crate::cpus::{MORE_WORKERS, shortage_text};
use crate::documents::{Named, Notice};
use crate::efficiency_text::EfficiencyBlock;
use crate::format::{
    Pids, Unit, byte_count, count, counted, fit, percent, short_count, short_counted, time, wrap,
};
use crate::report_json::Report;
use crate::report_rows::StateTimes;
use crate::section::Section;
use crate::sheet::{BOLD, DIM, Sheet};
use crate::thread_waits_text::write_waits;
use anstyle::{AnsiColor, Style};
use std::fmt::Write;
use taskscope_execution::{Group, State, ThreadKind};

const YELLOW: Style = AnsiColor::Yellow.on_default();

/// Nanoseconds of the states of a group.
fn group_ns(times: &StateTimes, group: Group) -> u64 {
    times.iter().filter(|(state, _)| state.0.group() == group).map(|(_, ns)| ns).sum()
}

pub(super) struct Page<'a> {
    pub(super) report: &'a Report,
    pub(super) options: &'a ReportOptions,
    pub(super) unit: Unit,
    pub(super) sheet: Sheet,
}

impl Page<'_> {
    pub(super) fn section(&mut self, section: Section) {
        match section {
            Section::Summary => self.summary(),
            Section::Efficiency => self.efficiency(),
            Section::Ranks => self.ranks(),
            Section::Calls => self.calls(),
            Section::Time => self.time(),
            Section::Findings => self.findings(),
            Section::Threads => self.threads(),
            Section::Tasks => self.tasks(),
            Section::Constructs => self.constructs(),
            Section::Locks => self.locks(),
            Section::Waits => self.waits(),
            // Sections with sources of their own, and those of the task graph.
            _ => {}
        }
    }

    fn line(&mut self, line: &str) {
        self.sheet.line(line);
    }

    fn heading(&mut self, title: &str, columns: &[(&str, usize)]) {
        self.sheet.heading(title, columns);
    }

    fn row(&mut self, indent: usize, name: &str, columns: &[(&str, usize)]) {
        self.sheet.row(indent, name, columns);
    }

    fn more(&mut self, hidden: usize, section: Section) {
        self.sheet.more(hidden, section.name(), self.options.top);
    }

    fn summary(&mut self) {
        let report = self.report;
        let recorded = self.options.recorded.as_deref();
        let command = report.command.as_ref().filter(|words| !words.is_empty() && recorded.is_none());
        if let Some(command) = command {
            let command = fit(&command.join(" "), self.sheet.width - 4);
            self.line(&format!("{BOLD}{command}{BOLD:#}"));
        }
        let lost = match report.lost_events {
            0 => "0 lost".to_string(),
            lost => format!("{YELLOW}{} lost{YELLOW:#}", count(lost)),
        };
        let mut threads = counted(report.threads as u64, "thread");
        if report.cpus_are_workers {
            threads = format!("{}  {threads}", counted(report.cpus as u64, "CPU"));
        } else if report.other_threads > 0 && !report.samples_alone {
            let _ = write!(threads, " ({})", counted(report.workers as u64, "worker"));
        }
        // If CPUs are the workers, the header already has their number.
        if let Some(cpus) = report.cpus_text.as_ref().filter(|_| !report.cpus_are_workers) {
            let _ = write!(threads, " on {cpus}");
        }
        if report.processes > 1 {
            threads = format!("{} processes  {threads}", report.processes);
        }
        let tasks = counted(report.tasks, "task");
        let events = short_counted(report.events, "event");
        let wall = time(report.wall_ns);
        match recorded {
            Some(trace) => {
                self.line(&format!("taskscope: {wall}  {threads}  {tasks}  {events}  {lost}  {trace}"));
            }
            None => self.line(&format!("  {wall}  {threads}  {tasks}  {events}  {lost}")),
        }
        if let Some(part) = &report.part {
            self.line(&format!("  part of the trace: {part}"));
        }
        let more_workers = report.notices.iter().find(|notice| notice.name == MORE_WORKERS);
        if let Some(notice) = more_workers.filter(|notice| self.is_allowed(notice)) {
            self.warning(&format!("more workers than CPUs: {}", notice.text));
        }
        if !report.problems.is_empty() {
            let counts = report.problems.iter().map(|row| format!("{} {}", count(row.count), row.name));
            let counts = counts.collect::<Vec<_>>().join(", ");
            self.line(&format!("  {YELLOW}problems{YELLOW:#}: {counts}"));
        }
        if !report.complete {
            let open = &report.incomplete_streams;
            let until = open.iter().filter_map(|stream| stream.kept_until_ns).max().map(time);
            let until = until.map_or("none of their events is in the report".to_string(), |at| {
                format!("everything up to {at}")
            });
            let why = match open.len() {
                0 => "see the notes".to_string(),
                open => format!(
                    "{open} of {} did not end properly; {until}",
                    counted(report.streams as u64, "stream")
                ),
            };
            self.line(&format!("  {YELLOW}incomplete{YELLOW:#}: {why}"));
        }
        if let Some(cost) = report.recording_cost_ns_per_event
            && report.capacity_ns > 0
        {
            let part = cost * report.events as f64 / report.capacity_ns as f64 * 100.0;
            self.line(&format!(
                "  {DIM}recording cost ≈ {cost:.0} ns an event, ≈ {part:.2} % of worker time (measured on the \
                 recording host){DIM:#}"
            ));
        }
        if report.capacity_ns == 0 {
            self.line("  nothing was recorded that has a length");
        }
        if let Some(verdict) = &report.verdict {
            self.sheet.verdict(verdict);
        }
    }

    fn efficiency(&mut self) {
        let report = self.report;
        let block = EfficiencyBlock {
            factors: &report.efficiency,
            capacity_ns: report.capacity_ns,
            wall_ns: report.wall_ns,
            workers: counted(report.workers as u64, if report.cpus_are_workers { "CPU" } else { "worker" }),
            overhead: self.overhead_parts(),
        };
        block.write(&mut self.sheet);
    }

    fn overhead_parts(&self) -> String {
        let capacity_ns = self.report.capacity_ns;
        let states = self.report.states.iter().filter(|(state, _)| state.0.group() == Group::Runtime);
        let parts: Vec<String> = states
            .filter(|(_, ns)| **ns as f64 / capacity_ns as f64 >= 0.0005)
            .map(|(state, ns)| format!("{} {}", state.0.label(), percent(*ns, capacity_ns)))
            .collect();
        if parts.is_empty() { String::new() } else { format!("   {DIM}({}){DIM:#}", parts.join(", ")) }
    }

    /// Ranks with the lowest efficiency first, if there are several.
    fn ranks(&mut self) {
        let mut rows: Vec<_> = self.report.ranks.iter().collect();
        if rows.len() < 2 {
            return;
        }
        rows.sort_by(|a, b| a.parallel_efficiency.total_cmp(&b.parallel_efficiency));
        let columns =
            [("workers", 10), ("efficiency", 12), ("useful", 10), ("in calls", 10), ("for others", 12)];
        self.heading("Ranks, least efficient first", &columns);
        for row in rows.iter().take(self.options.top) {
            let name = format!("rank {} ({}, process {})", row.rank, row.host, row.pid);
            let values = [
                (count(row.workers), 10),
                (format!("{:.2}", row.parallel_efficiency), 12),
                (time(row.useful_ns), 10),
                (time(row.communication_ns), 10),
                (time(row.peer_wait_ns), 12),
            ];
            self.row(0, &name, &values.each_ref().map(|(value, width)| (value.as_str(), *width)));
        }
        self.more(rows.len().saturating_sub(self.options.top), Section::Ranks);
    }

    /// The longest MPI calls, if any.
    fn calls(&mut self) {
        let rows = &self.report.mpi_calls;
        if rows.is_empty() {
            return;
        }
        let columns = [("calls", 9), ("bytes", 10), ("time", 10), ("waiting", 10), ("late rank", 14)];
        self.heading("Calls of MPI, longest first", &columns);
        for row in rows.iter().take(self.options.top) {
            let values = [
                (count(row.calls), 9),
                (byte_count(row.bytes), 10),
                (time(row.ns), 10),
                (time(row.wait_ns), 10),
                (row.latest().unwrap_or_default(), 14),
            ];
            let name = row.place.as_ref().unwrap_or(&row.call);
            self.row(0, name, &values.each_ref().map(|(value, width)| (value.as_str(), *width)));
        }
        self.more(rows.len().saturating_sub(self.options.top), Section::Calls);
    }

    fn time(&mut self) {
        let (report, capacity_ns) = (self.report, self.report.capacity_ns);
        self.heading("Where the time went", &[(self.unit.worker_label(), 16), ("share", 9)]);
        let mut states: Vec<(State, u64)> = report.states.iter().map(|(state, ns)| (state.0, *ns)).collect();
        states.sort_by_key(|(state, ns)| (std::cmp::Reverse(*ns), *state));
        // States below a thousandth get no line, unless everything was requested.
        let worth = states.iter().filter(|(_, ns)| ns.saturating_mul(1000) >= capacity_ns).count();
        let named = Section::OF_THREADS.iter().filter(|section| self.options.sections.contains(section));
        let shown = if named.count() > Section::SHORT.len() { states.len() } else { worth };
        for (state, ns) in &states[..shown] {
            let (state, ns) = (*state, *ns);
            let part = percent(ns, capacity_ns);
            let places = report.causes.iter().filter(|row| row.state == Named(state));
            let places: Vec<(&String, u64)> =
                places.filter_map(|row| Some((row.place.as_ref()?, row.ns))).collect();
            match places[..] {
                [(place, _)] => {
                    // Serial code of a process without regions has no place of its own.
                    let name = match place == state.label() {
                        true => place.clone(),
                        false => format!("{}: {place}", state.label()),
                    };
                    self.row(0, &name, &[(&self.unit.show(ns), 16), (&part, 9)]);
                }
                _ => {
                    self.row(0, state.label(), &[(&self.unit.show(ns), 16), (&part, 9)]);
                    for (place, ns) in places.iter().take(self.options.top) {
                        let part = percent(*ns, capacity_ns);
                        self.row(4, place, &[(&self.unit.show(*ns), 16), (&part, 9)]);
                    }
                    if places.len() > self.options.top {
                        let rest: u64 = places.iter().skip(self.options.top).map(|(_, ns)| ns).sum();
                        let name = format!("{} more", places.len() - self.options.top);
                        let part = percent(rest, capacity_ns);
                        self.row(4, &name, &[(&self.unit.show(rest), 16), (&part, 9)]);
                    }
                }
            }
        }
        if shown < states.len() {
            let rest: u64 = states[shown..].iter().map(|(_, ns)| ns).sum();
            let name = match states.len() - shown {
                1 => "1 other state".to_string(),
                others => format!("{others} other states"),
            };
            self.row(0, &name, &[(&self.unit.show(rest), 16), (&percent(rest, capacity_ns), 9)]);
        }
        let shortage = report.no_cpu.as_ref();
        let shortage =
            shortage.and_then(|shortage| shortage_text(shortage, &report.process_cpus, capacity_ns));
        if let Some(text) = shortage {
            for line in wrap(&text, self.sheet.width - 4) {
                self.row(0, &line, &[]);
            }
        }
    }

    fn findings(&mut self) {
        self.report.losses().write(&mut self.sheet, self.options.top, self.options.floor);
        self.starvation();
    }

    /// The tasks that kept others from running, if the program reports when tasks are able to run.
    fn starvation(&mut self) {
        let Some(starvation) = self.report.starvation.as_ref().filter(|found| !found.by.is_empty()) else {
            return;
        };
        let columns = [("others waited", 16), ("longest run", 12)];
        self.heading("Tasks that were able to run waited for", &columns);
        for row in starvation.by.iter().take(self.options.top) {
            let columns = [(&*time(row.waited_ns), 16), (&*time(row.longest_ns), 12)];
            self.row(0, row.place.as_deref().unwrap_or_default(), &columns);
        }
        if let Some(first) = starvation.by.first() {
            let text = format!(
                "{} starved the others most: {} waited {} in all, {} of it for this one, which ran up to {} \
                 without a pause ({} on thread {})",
                first.place.as_deref().unwrap_or_default(),
                if starvation.waits == 1 {
                    "a task".to_owned()
                } else {
                    format!("tasks ({} times)", count(starvation.waits))
                },
                time(starvation.waited_ns),
                time(first.waited_ns),
                time(first.longest_ns),
                first.longest_task_name,
                first.longest_tid,
            );
            for line in wrap(&text, self.sheet.width - 4) {
                self.row(0, &line, &[]);
            }
        }
        self.more(starvation.by.len().saturating_sub(self.options.top), Section::Findings);
    }

    fn threads(&mut self) {
        let report = self.report;
        let mut groups = vec![
            ("useful", Group::Useful),
            ("runtime", Group::Runtime),
            ("sync", Group::Sync),
            ("locks", Group::Mutex),
            ("idle", Group::Idle),
            ("no CPU", Group::Off),
            ("other", Group::Unknown),
        ];
        if report.efficiency.device_offload_loss_ns > 0 {
            groups.insert(4, ("device", Group::Device));
        }
        if report.thread_states.iter().any(|row| group_ns(&row.states, Group::Blocked) > 0) {
            groups.insert(groups.len() - 1, ("blocked", Group::Blocked));
        }
        // A thread's name is to be read beside them.
        let has_names = report.thread_states.iter().any(|row| !row.name.is_empty());
        let each = match groups.len() {
            _ if has_names => 8,
            8.. => 9,
            _ => 10,
        };
        let mut columns: Vec<(&str, usize)> = groups.iter().map(|(name, _)| (*name, each)).collect();
        columns.insert(0, ("events", each));
        let title =
            if report.cpus_are_workers { "CPUs, which are the workers, and threads" } else { "Threads" };
        self.heading(title, &columns);
        // CPUs first, if these are the workers.
        let (cpus, threads): (Vec<_>, Vec<_>) =
            report.thread_states.iter().partition(|row| row.kind == ThreadKind::Cpu.name());
        for row in cpus.into_iter().chain(threads) {
            let total: u64 = row.states.values().sum();
            let shares: Vec<String> =
                groups.iter().map(|(_, group)| percent(group_ns(&row.states, *group), total)).collect();
            let mut columns: Vec<(&str, usize)> = shares.iter().map(|text| (text.as_str(), each)).collect();
            let events = short_count(row.events);
            columns.insert(0, (&events, each));
            // If CPUs are the workers, a thread is labelled with its runtime's role.
            let role = match row.role {
                _ if row.kind == ThreadKind::Cpu.name() => String::new(),
                Some(role) => format!("  {}", role.0.name()),
                None if row.worker || report.cpus_are_workers => String::new(),
                None => "  no worker".to_owned(),
            };
            self.row(0, &format!("{}{role}", row.label), &columns);
        }
    }

    fn tasks(&mut self) {
        let total = format!("total {}", self.unit.short());
        let rows = &self.report.task_types;
        let has_blocked = rows.iter().any(|row| row.blocked_ns > 0);
        let each = if has_blocked { 9 } else { 10 };
        let mut columns = vec!["began", &*total, "mean", "median", "95 %", "longest"];
        if has_blocked {
            columns.insert(2, "blocked");
        }
        let columns: Vec<(&str, usize)> = columns.into_iter().map(|name| (name, each)).collect();
        if rows.is_empty() {
            return;
        }
        self.heading("Task types", &columns);
        let pids = Pids::of(rows.iter().map(|row| row.pid));
        for row in rows.iter().take(self.options.top) {
            let mut values = vec![
                count(row.began),
                self.unit.show(row.body_ns),
                time(row.mean_ns),
                time(row.median_ns),
                time(row.p95_ns),
                time(row.max_ns),
            ];
            if has_blocked {
                values.insert(2, self.unit.show(row.blocked_ns));
            }
            let columns: Vec<(&str, usize)> = values.iter().map(|value| (value.as_str(), each)).collect();
            self.row(0, &pids.beside(&row.name, row.pid), &columns);
        }
        self.more(rows.len().saturating_sub(self.options.top), Section::Tasks);
    }

    fn constructs(&mut self) {
        let (busy, lost) = (format!("busy {}", self.unit.short()), format!("lost {}", self.unit.short()));
        let columns = [("executed", 10), (&*busy, 10), ("balance", 10), (&*lost, 10)];
        let works = self.report.worksharing.iter().map(|row| (&row.name, &row.load, row.pid));
        let regions = self.report.regions.iter().map(|row| (&row.name, &row.load, row.pid));
        let mut rows: Vec<_> = works.chain(regions).collect();
        if rows.is_empty() {
            return;
        }
        self.heading("Constructs: how evenly their teams were loaded", &columns);
        rows.sort_by_key(|(_, load, _)| std::cmp::Reverse(load.imbalance_ns));
        let pids = Pids::of(rows.iter().map(|(_, _, pid)| *pid));
        for (name, load, pid) in rows.iter().take(self.options.top) {
            let values = [
                count(load.executions),
                self.unit.show(load.busy_ns),
                format!("{:.2}", load.load_balance),
                self.unit.show(load.imbalance_ns),
            ];
            let columns: Vec<(&str, usize)> = values.iter().map(|value| (value.as_str(), 10)).collect();
            self.row(0, &pids.beside(name, *pid), &columns);
        }
        self.more(rows.len().saturating_sub(self.options.top), Section::Constructs);
    }

    fn locks(&mut self) {
        let (held, waited) = (format!("held {}", self.unit.short()), format!("waited {}", self.unit.short()));
        let columns = [("acquired", 10), (&*held, 10), ("longest", 10), (&*waited, 10)];
        let rows = &self.report.locks;
        if rows.is_empty() {
            return;
        }
        self.heading("Locks, and who held them while others waited", &columns);
        let pids = Pids::of(rows.iter().map(|row| row.pid));
        for row in rows.iter().take(self.options.top) {
            let values = [
                count(row.acquisitions),
                self.unit.show(row.held_ns),
                time(row.longest_hold_ns),
                self.unit.show(row.waited_ns),
            ];
            let columns: Vec<(&str, usize)> = values.iter().map(|value| (value.as_str(), 10)).collect();
            self.row(0, &pids.beside(&row.object, row.pid), &columns);
            // A compiler that unrolls a loop makes several sites of one line.
            let mut holders: Vec<(&str, u64)> = Vec::new();
            for holder in &row.holders {
                let name = holder.place.as_deref().unwrap_or_default();
                match holders.iter_mut().find(|(known, _)| *known == name) {
                    Some((_, ns)) => *ns += holder.ns,
                    None => holders.push((name, holder.ns)),
                }
            }
            holders.sort_by_key(|(_, ns)| std::cmp::Reverse(*ns));
            for (name, ns) in holders.iter().take(self.options.top) {
                self.row(4, name, &[(&self.unit.show(*ns), 10)]);
            }
            if row.unheld_ns > 0 && row.unheld_ns.saturating_mul(100) > row.waited_ns {
                let nobody = if self.report.filtered { "not known" } else { "nobody (it was free)" };
                self.row(4, nobody, &[(&self.unit.show(row.unheld_ns), 10)]);
            }
        }
        self.more(rows.len().saturating_sub(self.options.top), Section::Locks);
    }

    /// Waits of threads for each other: of all threads, beside the capacity.
    fn waits(&mut self) {
        let rows = &self.report.thread_waits;
        let pids = Pids::of(rows.iter().map(|row| row.pid));
        let size = (self.unit, self.options.top);
        write_waits(&mut self.sheet, rows, size, |name, pid| pids.beside(name, pid));
    }

    fn is_allowed(&self, notice: &Notice) -> bool {
        self.options.allow.iter().all(|name| *name != notice.name)
    }

    /// Sentences of the header, the words before the first colon in colour.
    fn warning(&mut self, text: &str) {
        for (number, line) in wrap(text, self.sheet.width - 4).iter().enumerate() {
            match line.split_once(':').filter(|_| number == 0) {
                Some((name, rest)) => self.line(&format!("  {YELLOW}{name}{YELLOW:#}:{rest}")),
                None => self.line(&format!("    {line}")),
            }
        }
    }

    pub(super) fn notices(&mut self) {
        let in_header = |notice: &Notice| {
            notice.name == MORE_WORKERS && self.options.sections.contains(&Section::Summary)
        };
        let is_wanted = |notice: &&Notice| self.is_allowed(notice) && !notice.minor && !in_header(notice);
        let shown: Vec<_> = self.report.notices.iter().filter(is_wanted).collect();
        if !shown.is_empty() {
            self.line("");
        }
        for notice in shown {
            let text = format!("{}: {}", notice.name, notice.text);
            for (number, line) in wrap(&text, self.sheet.width - 7).iter().enumerate() {
                let label = if number == 0 { "note" } else { "    " };
                self.line(&format!("  {YELLOW}{label}{YELLOW:#} {line}"));
            }
        }
    }

    pub(super) fn next(&mut self) {
        let trace = self.options.trace_word(self.report);
        let (losses, floor) = (self.report.losses(), self.options.floor);
        let explain = losses.rows.iter().find(|row| losses.is_worth(row, floor));
        let explain = explain.map(|finding| format!("taskscope explain {} {trace}", finding.id));
        let more = format!("taskscope report --section all {trace}");
        let next: Vec<String> = explain.into_iter().chain([more]).collect();
        self.sheet.next(&next);
    }
}
