//! The report as calm lines for a terminal.

use crate::findings::{Findings, Whose};
use crate::format::{
    Unit, bar, byte_count, columns, count, counted, fit, percent, shell_word, short_count, short_counted,
    thread_words, time, wrap,
};
use crate::report_json::{pid_of_object, pid_of_site, pid_of_type};
use crate::section::Section;
use crate::sheet::{BOLD, DIM, Sheet};
use crate::verdict::FLOOR;
use crate::words;
use anstyle::{AnsiColor, Style};
use std::fmt::Write;
use taskscope_analysis::{Analysis, Problem, ThreadTime, share};
use taskscope_execution::{Group, State, ThreadKind};
use taskscope_session::Session;

/// Whether the rows of a table are of several processes, and so say of which.
struct Pids {
    are_told: bool,
}

impl Pids {
    fn of(mut pids: impl Iterator<Item = Option<i64>>) -> Pids {
        let first = pids.next().flatten();
        Pids { are_told: pids.any(|pid| pid != first) }
    }

    fn told(&self, name: String, pid: Option<i64>) -> String {
        match pid {
            Some(pid) if self.are_told => format!("{name}, process {pid}"),
            _ => name,
        }
    }
}

/// How to write it.
#[derive(Clone, Debug)]
pub struct Options {
    /// What to write.
    pub sections: Vec<Section>,
    /// Rows of each table; of the findings too.
    pub top: usize,
    /// Characters of a line.
    pub width: usize,
    /// Names of notices that are not shown.
    pub allow: Vec<String>,
    /// Share of capacity below which findings are one line together.
    pub floor: f64,
    /// Size and name of the trace, when the report is the last word of a recording.
    pub recorded: Option<String>,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            sections: Section::SHORT.to_vec(),
            top: 3,
            width: 100,
            allow: Vec::new(),
            floor: FLOOR,
            recorded: None,
        }
    }
}

const GREEN: Style = AnsiColor::Green.on_default();
const YELLOW: Style = AnsiColor::Yellow.on_default();

/// The report as text with ANSI styles.
pub fn report(session: &Session, analysis: &Analysis, problems: &[Problem], options: &Options) -> String {
    // Naming findings may walk all operations of devices.
    let says = |section: Section| options.sections.contains(&section);
    let needs = says(Section::Summary) || says(Section::Findings);
    let mut page = Page {
        session,
        analysis,
        findings: needs.then(|| Findings::of(session, analysis)),
        options,
        unit: Unit::for_total(analysis.ledger.capacity_ns),
        sheet: Sheet::new(options.width),
    };
    let wants = |section| options.sections.contains(&section);
    if wants(Section::Summary) {
        page.summary();
    }
    if analysis.ledger.capacity_ns > 0 {
        if wants(Section::Efficiency) {
            page.efficiency();
        }
        if wants(Section::Ranks) {
            page.ranks();
        }
        if wants(Section::Calls) {
            page.calls();
        }
        if wants(Section::Time) {
            page.time();
        }
        if wants(Section::Findings) {
            page.findings();
            page.starvation();
        }
        if wants(Section::Threads) {
            page.threads();
        }
        if wants(Section::Tasks) {
            page.tasks();
        }
        if wants(Section::Constructs) {
            page.constructs();
        }
        if wants(Section::Locks) {
            page.locks();
        }
        if wants(Section::Waits) {
            page.waits();
        }
    }
    page.notices(problems);
    // What follows on samples alone has its own.
    if wants(Section::Findings) && page.findings.as_ref().is_some_and(|all| all.whose == Whose::Workers) {
        page.next();
    }
    page.sheet.text
}

struct Page<'a> {
    session: &'a Session,
    analysis: &'a Analysis,
    findings: Option<Findings>,
    options: &'a Options,
    unit: Unit,
    sheet: Sheet,
}

impl Page<'_> {
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
        let (session, analysis) = (self.session, self.analysis);
        let ledger = &analysis.ledger;
        let recorded = self.options.recorded.as_deref();
        let run = session.run.as_ref().filter(|run| !run.command.is_empty() && recorded.is_none());
        if let Some(run) = run {
            let command = fit(&run.command.join(" "), self.sheet.width - 4);
            self.line(&format!("{BOLD}{command}{BOLD:#}"));
        }
        let lost = session.lost_events();
        let lost = match lost {
            0 => "0 lost".to_string(),
            lost => format!("{YELLOW}{} lost{YELLOW:#}", count(lost)),
        };
        let mut threads = counted(ledger.os_threads() as u64, "thread");
        if ledger.cpus > 0 {
            threads = format!("{}  {threads}", counted(ledger.cpus as u64, "CPU"));
        } else if ledger.other_threads > 0 && !words::knows_samples_alone(session, analysis) {
            let _ = write!(threads, " ({})", counted(ledger.workers as u64, "worker"));
        }
        // Where CPUs are the workers, their number is there already.
        if let Some(cpus) = crate::cpus::header(&session.execution).filter(|_| ledger.cpus == 0) {
            let _ = write!(threads, " on {cpus}");
        }
        let processes = session.execution.process_count();
        if processes > 1 {
            threads = format!("{processes} processes  {threads}");
        }
        let tasks = counted(analysis.tasks, "task");
        let events = short_counted(session.events, "event");
        let wall = time(ledger.wall_ns);
        match recorded {
            Some(trace) => {
                self.line(&format!("taskscope: {wall}  {threads}  {tasks}  {events}  {lost}  {trace}"));
            }
            None => self.line(&format!("  {wall}  {threads}  {tasks}  {events}  {lost}")),
        }
        if let Some(part) = &session.part {
            self.line(&format!("  part of the trace: {part}"));
        }
        if let Some(notice) = crate::cpus::more_workers(session).filter(|n| self.is_shown(&n.name)) {
            self.warning(&format!("more workers than CPUs: {}", notice.text));
        }
        if let Some(problems) = words::problem_counts(session) {
            self.line(&format!("  {YELLOW}problems{YELLOW:#}: {problems}"));
        }
        if !session.is_complete() {
            let start = session.execution.range().0;
            let open: Vec<_> = session.streams.iter().filter(|s| !(s.finished && s.whole)).collect();
            let until = open.iter().filter_map(|s| s.last).max().map(|at| time(at.saturating_sub(start)));
            let until =
                until.map_or("nothing of them is here".to_string(), |at| format!("everything up to {at}"));
            let why = match open.len() {
                0 => "see the notes".to_string(),
                open => format!(
                    "{open} of {} did not end properly; {until}",
                    counted(session.streams.len() as u64, "stream")
                ),
            };
            self.line(&format!("  {YELLOW}incomplete{YELLOW:#}: {why}"));
        }
        if let Some(cost) = session.run.as_ref().and_then(|run| run.recording_cost_ns_per_event)
            && ledger.capacity_ns > 0
        {
            let part = cost * session.events as f64 / ledger.capacity_ns as f64 * 100.0;
            self.line(&format!(
                "  {DIM}recording cost ≈ {cost:.0} ns an event, ≈ {part:.2} % of worker time (measured on the \
                 recording host){DIM:#}"
            ));
        }
        if ledger.capacity_ns == 0 {
            self.line("  nothing was recorded that has a length");
        }
        if let Some(verdict) = self.findings.as_ref().and_then(|findings| findings.verdict.as_ref()) {
            self.sheet.verdict(verdict);
        }
    }

    fn efficiency(&mut self) {
        let (ledger, efficiency) = (&self.analysis.ledger, &self.analysis.efficiency);
        let lost = ledger.capacity_ns - efficiency.start_ns - efficiency.useful_ns;
        let base = format!(
            "({} × {}; {} {} lost)",
            counted(ledger.workers as u64, if ledger.workers_are_cpus() { "CPU" } else { "worker" }),
            time(ledger.wall_ns),
            self.unit.show(lost),
            self.unit.of_workers()
        );
        let mut factors = vec![
            ("Load balance", efficiency.load_balance, efficiency.load_balance_ns),
            ("Serialization", efficiency.serialization, efficiency.serialization_ns),
        ];
        if efficiency.cpu_availability_ns > 0 {
            factors
                .insert(0, ("CPU availability", efficiency.cpu_availability, efficiency.cpu_availability_ns));
        }
        if efficiency.device_offload_ns > 0 {
            factors.push(("Device offload", efficiency.device_offload, efficiency.device_offload_ns));
        }
        if efficiency.blocked_ns > 0 {
            factors.push(("Blocked", efficiency.blocked, efficiency.blocked_ns));
        }
        factors.push(("Runtime overhead", efficiency.runtime_overhead, efficiency.runtime_overhead_ns));
        if efficiency.unknown_ns > 0 {
            factors.push(("Known", efficiency.known, efficiency.unknown_ns));
        }
        let largest = factors.iter().map(|(_, _, loss)| *loss).max().unwrap_or(0);
        let drawn = format!("{GREEN}{}{GREEN:#}", bar(efficiency.parallel, 20));
        let pad = 22 - columns(&bar(efficiency.parallel, 20));
        self.line("");
        self.line(&format!(
            "  {BOLD}Parallel efficiency  {:.2}{BOLD:#}   {drawn}{:pad$}{DIM}{base}{DIM:#}",
            efficiency.parallel, ""
        ));
        let last = factors.len() - 1;
        for (number, (name, factor, loss)) in factors.into_iter().enumerate() {
            let branch = if number == last { "└" } else { "├" };
            // What is shown as 1.00 is no loss to speak of.
            let mark = if loss == largest && factor < 0.995 { "   ← largest loss" } else { "" };
            let parts = if name == "Runtime overhead" { self.overhead_parts() } else { String::new() };
            let lost = if loss > 0 { format!("{} lost", self.unit.show(loss)) } else { String::new() };
            self.line(&format!("   {branch} {name:<18} {factor:.2}  {lost:>12}{mark}{parts}"));
        }
        if efficiency.start_ns > 0 {
            self.line(&format!(
                "     {DIM}without {} {} while ranks start or end MPI{DIM:#}",
                self.unit.show(efficiency.start_ns),
                self.unit.of_workers()
            ));
        }
    }

    fn overhead_parts(&self) -> String {
        let ledger = &self.analysis.ledger;
        let states = State::ALL.iter().filter(|s| s.group() == Group::Runtime);
        let parts: Vec<String> = states
            .filter(|state| share(ledger, **state) >= 0.0005)
            .map(|state| {
                format!("{} {}", state.label(), percent(ledger.by_state.get(*state), ledger.capacity_ns))
            })
            .collect();
        if parts.is_empty() { String::new() } else { format!("   {DIM}({}){DIM:#}", parts.join(", ")) }
    }

    /// Those with the lowest efficiency first, where there are several.
    fn ranks(&mut self) {
        let mut rows = crate::ranks::ranks(self.session, self.analysis);
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

    /// The calls of MPI that took longest, where there are any.
    fn calls(&mut self) {
        let rows = crate::mpi_calls::rows(self.session);
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
        let ledger = &self.analysis.ledger;
        let causes = words::causes(&self.session.places, self.analysis);
        self.heading("Where the time went", &[(self.unit.of_workers(), 16), ("share", 9)]);
        let mut states: Vec<(State, u64)> = ledger.by_state.iter().collect();
        states.sort_by_key(|(state, ns)| (std::cmp::Reverse(*ns), *state));
        // Below a thousandth a state is worth no line of its own, unless everything was asked for.
        let worth = states.iter().filter(|(_, ns)| ns.saturating_mul(1000) >= ledger.capacity_ns).count();
        let shown = if self.options.sections.len() > Section::SHORT.len() { states.len() } else { worth };
        for (state, ns) in &states[..shown] {
            let (state, ns) = (*state, *ns);
            let part = percent(ns, ledger.capacity_ns);
            let places: Vec<_> =
                causes.iter().filter(|(s, place, _)| *s == state && !place.is_empty()).collect();
            match places[..] {
                [(_, place, _)] => {
                    self.row(
                        0,
                        &format!("{}: {place}", state.label()),
                        &[(&self.unit.show(ns), 16), (&part, 9)],
                    );
                }
                _ => {
                    self.row(0, state.label(), &[(&self.unit.show(ns), 16), (&part, 9)]);
                    for (_, place, ns) in places.iter().take(self.options.top) {
                        let part = percent(*ns, ledger.capacity_ns);
                        self.row(4, place, &[(&self.unit.show(*ns), 16), (&part, 9)]);
                    }
                    if places.len() > self.options.top {
                        let rest: u64 = places.iter().skip(self.options.top).map(|(_, _, ns)| ns).sum();
                        let name = format!("{} more", places.len() - self.options.top);
                        let part = percent(rest, ledger.capacity_ns);
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
            self.row(0, &name, &[(&self.unit.show(rest), 16), (&percent(rest, ledger.capacity_ns), 9)]);
        }
        if let Some(text) = crate::cpus::shortage_text(&self.session.execution, ledger.capacity_ns) {
            for line in wrap(&text, self.sheet.width - 4) {
                self.row(0, &line, &[]);
            }
        }
    }

    fn findings(&mut self) {
        if let Some(findings) = &self.findings {
            findings.write(&mut self.sheet, self.options.top, self.options.floor);
        }
    }

    /// Which tasks kept others from running, where the program told when tasks were able to run.
    fn starvation(&mut self) {
        let starvation = &self.analysis.starvation;
        let worth = starvation.by.iter().filter(|row| row.waited_ns > 0).count();
        if worth == 0 {
            return;
        }
        let places = &self.session.places;
        let columns = [("others waited", 16), ("longest run", 12)];
        self.heading("Tasks that were able to run waited for", &columns);
        for row in starvation.by.iter().take(worth.min(self.options.top)) {
            let columns = [(&*time(row.waited_ns), 16), (&*time(row.longest_ns), 12)];
            self.row(0, &places.type_name(row.ty), &columns);
        }
        if let Some(first) = starvation.by.first().filter(|row| row.waited_ns > 0) {
            let thread = &self.session.execution.threads[first.longest_on.index()];
            let text = format!(
                "{} starved the others most: {} waited {} in all, {} of it for this one, which ran up to {} \
                 without a pause ({} on thread {})",
                places.type_name(first.ty),
                if starvation.waits == 1 {
                    "a task".to_owned()
                } else {
                    format!("tasks ({} times)", count(starvation.waits))
                },
                time(starvation.waited_ns),
                time(first.waited_ns),
                time(first.longest_ns),
                self.session.execution.task_name(first.longest_task),
                thread.tid,
            );
            for line in wrap(&text, self.sheet.width - 4) {
                self.row(0, &line, &[]);
            }
        }
        self.more(worth.saturating_sub(self.options.top), Section::Findings);
    }

    fn threads(&mut self) {
        let mut groups = vec![
            ("useful", Group::Useful),
            ("runtime", Group::Runtime),
            ("sync", Group::Sync),
            ("locks", Group::Mutex),
            ("idle", Group::Idle),
            ("no CPU", Group::Off),
            ("other", Group::Unknown),
        ];
        if self.analysis.efficiency.device_offload_ns > 0 {
            groups.insert(4, ("device", Group::Device));
        }
        if self.analysis.ledger.threads.iter().any(|row| row.by_state.get(State::Blocked) > 0) {
            groups.insert(groups.len() - 1, ("blocked", Group::Blocked));
        }
        // A thread's name is to be read beside them.
        let threads = &self.session.execution.threads;
        let has_names = threads.iter().any(|thread| !thread.name.is_empty());
        let each = match groups.len() {
            _ if has_names => 8,
            8.. => 9,
            _ => 10,
        };
        let mut columns: Vec<(&str, usize)> = groups.iter().map(|(name, _)| (*name, each)).collect();
        columns.insert(0, ("events", each));
        let cpus = self.analysis.ledger.cpus > 0;
        self.heading(if cpus { "CPUs, which are the workers, and threads" } else { "Threads" }, &columns);
        // CPUs first, where these are the workers.
        let rows = &self.analysis.ledger.threads;
        let is_cpu =
            |row: &ThreadTime| self.session.execution.threads[row.thread.index()].kind == ThreadKind::Cpu;
        let ordered = rows.iter().filter(|row| is_cpu(row)).chain(rows.iter().filter(|row| !is_cpu(row)));
        for row in ordered.collect::<Vec<_>>() {
            let thread = &self.session.execution.threads[row.thread.index()];
            let process = &self.session.execution.processes[thread.process.index()];
            let total = row.by_state.total();
            let shares: Vec<String> =
                groups.iter().map(|(_, group)| percent(row.by_state.of_group(*group), total)).collect();
            let mut columns: Vec<(&str, usize)> = shares.iter().map(|text| (text.as_str(), each)).collect();
            let events = short_count(thread.events);
            columns.insert(0, (&events, each));
            // Where CPUs are the workers, a thread has the runtime's word.
            let role = match thread.role {
                Some(role) => format!("  {}", role.name()),
                None if thread.worker || self.analysis.ledger.cpus > 0 => String::new(),
                None => "  no worker".to_owned(),
            };
            let name = match words::cpu_name(&self.session.execution, row.thread) {
                Some(name) => name,
                None => format!("{}{role}", thread_words(process, thread)),
            };
            self.row(0, &name, &columns);
        }
    }

    fn tasks(&mut self) {
        let total = format!("total {}", self.unit.short());
        let rows = &self.analysis.task_types;
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
        let pids = Pids::of(rows.iter().map(|row| pid_of_type(self.session, row.ty)));
        for row in rows.iter().take(self.options.top) {
            let name = pids.told(self.session.places.type_name(row.ty), pid_of_type(self.session, row.ty));
            let mut values = vec![
                count(row.began),
                self.unit.show(row.body_ns),
                time(row.mean_ns()),
                time(row.median_ns),
                time(row.p95_ns),
                time(row.max_ns),
            ];
            if has_blocked {
                values.insert(2, self.unit.show(row.blocked_ns));
            }
            let columns: Vec<(&str, usize)> = values.iter().map(|value| (value.as_str(), each)).collect();
            self.row(0, &name, &columns);
        }
        self.more(rows.len().saturating_sub(self.options.top), Section::Tasks);
    }

    fn constructs(&mut self) {
        let (busy, lost) = (format!("busy {}", self.unit.short()), format!("lost {}", self.unit.short()));
        let columns = [("executed", 10), (&*busy, 10), ("balance", 10), (&*lost, 10)];
        if self.analysis.regions.is_empty() && self.analysis.works.is_empty() {
            return;
        }
        self.heading("Constructs: how evenly their teams were loaded", &columns);
        let places = &self.session.places;
        let works = (self.analysis.works.iter())
            .map(|row| (places.type_name(row.ty), row.load, pid_of_type(self.session, row.ty)));
        let regions = (self.analysis.regions.iter()).map(|row| {
            (places.construct("parallel", row.site), row.load, pid_of_site(self.session, row.site))
        });
        let mut rows: Vec<_> = works.chain(regions).collect();
        rows.sort_by_key(|(_, load, _)| std::cmp::Reverse(load.imbalance_ns()));
        let pids = Pids::of(rows.iter().map(|(_, _, pid)| *pid));
        for (name, load, pid) in rows.iter().take(self.options.top) {
            let values = [
                count(load.executions),
                self.unit.show(load.busy_ns),
                format!("{:.2}", load.balance()),
                self.unit.show(load.imbalance_ns()),
            ];
            let columns: Vec<(&str, usize)> = values.iter().map(|value| (value.as_str(), 10)).collect();
            self.row(0, &pids.told(name.clone(), *pid), &columns);
        }
        self.more(rows.len().saturating_sub(self.options.top), Section::Constructs);
    }

    fn locks(&mut self) {
        let (held, waited) = (format!("held {}", self.unit.short()), format!("waited {}", self.unit.short()));
        let columns = [("acquired", 10), (&*held, 10), ("longest", 10), (&*waited, 10)];
        let places = &self.session.places;
        let rows = &self.analysis.locks;
        if rows.is_empty() {
            return;
        }
        self.heading("Locks, and who held them while others waited", &columns);
        let pids = Pids::of(rows.iter().map(|row| pid_of_object(self.session, row.object)));
        for row in rows.iter().take(self.options.top) {
            let values = [
                count(row.acquisitions),
                self.unit.show(row.held_ns),
                time(row.longest_hold_ns),
                self.unit.show(row.waited_ns),
            ];
            let columns: Vec<(&str, usize)> = values.iter().map(|value| (value.as_str(), 10)).collect();
            let pid = pid_of_object(self.session, row.object);
            self.row(0, &pids.told(places.object_name(row.object), pid), &columns);
            // A compiler that unrolls a loop makes several sites of one line.
            let mut holders: Vec<(String, u64)> = Vec::new();
            for holder in &row.holders {
                let name = places.construct(places.object_kind(row.object), holder.site);
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
                let nobody = if self.session.filtered { "not known" } else { "nobody (it was free)" };
                self.row(4, nobody, &[(&self.unit.show(row.unheld_ns), 10)]);
            }
        }
        self.more(rows.len().saturating_sub(self.options.top), Section::Locks);
    }

    /// Waits of threads for each other: of all threads, beside the capacity.
    fn waits(&mut self) {
        let rows = crate::thread_waits::rows(self.session, self.analysis);
        if rows.is_empty() {
            return;
        }
        let waited = format!("waited {}", self.unit.short());
        let columns = [(&*waited, 10), ("waits", 10), ("longest", 10)];
        self.heading("Waits of threads for each other (all threads)", &columns);
        let pids = Pids::of(rows.iter().map(|row| row.pid));
        for row in rows.iter().take(self.options.top) {
            let values = [self.unit.show(row.waited_ns), count(row.waits), time(row.longest_ns)];
            let columns: Vec<(&str, usize)> = values.iter().map(|value| (value.as_str(), 10)).collect();
            let place = row.place.as_deref().unwrap_or("code that is not known");
            let name = match &row.object {
                Some(object) => format!("{} {object}: {place}", row.kind),
                None => format!("{}: {place}", row.kind),
            };
            self.row(0, &pids.told(name, row.pid), &columns);
            for part in row.parts.iter().take(self.options.top) {
                self.row(4, &part.text(), &[(&self.unit.show(part.ns), 10)]);
            }
        }
        self.more(rows.len().saturating_sub(self.options.top), Section::Waits);
    }

    fn is_shown(&self, notice: &str) -> bool {
        self.options.allow.iter().all(|name| name != notice)
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

    fn notices(&mut self, problems: &[Problem]) {
        let all = words::notices(self.session, problems);
        // Late reports of releases are the rule with OMPT and move nothing that can be seen.
        let is_noise = |name: &str| {
            let late = problems.iter().find(|p| p.name == name && name == "late-release");
            late.is_some_and(|p| p.tally.max_ns.saturating_mul(100) < self.analysis.ledger.wall_ns)
        };
        // The header has that one.
        let in_header = |name: &str| {
            name == crate::cpus::MORE_WORKERS && self.options.sections.contains(&Section::Summary)
        };
        let is_wanted = |name: &str| self.is_shown(name) && !is_noise(name) && !in_header(name);
        let shown: Vec<_> = all.iter().filter(|notice| is_wanted(&notice.name)).collect();
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

    fn next(&mut self) {
        let trace = shell_word(&self.session.root);
        let (findings, floor) = (self.findings.as_ref(), self.options.floor);
        let explain = findings.and_then(|all| all.rows.iter().find(|row| all.is_worth(row, floor)));
        let explain = explain.map(|finding| format!("taskscope explain {} {trace}", finding.id));
        let more = format!("taskscope report --section all {trace}");
        let next: Vec<String> = explain.into_iter().chain([more]).collect();
        self.line("");
        // A command must be one line, as it is there to be copied.
        let one = 2 + 7 + columns(&next.join("     ")) <= self.sheet.width;
        let between = if one { "     " } else { "\n         " };
        let _ = writeln!(self.sheet.text, "  {DIM}next:{DIM:#}  {}", next.join(between));
    }
}
