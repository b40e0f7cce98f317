//! The report as calm lines for a terminal.

mod options;
mod page;

pub use options::ReportOptions;

use crate::findings::{Whose, findings_text, verdict_text};
use crate::format::{Unit, narrowed};
use crate::report_json::Report;
use crate::section::Section;
use crate::sheet::Sheet;
use crate::thread_split::thread_split_text;
use page::Page;

/// The report as text with ANSI styles: the run by its threads, or its device queues alone; then sections with sources of
/// their own.
pub fn report(report: &Report, options: &ReportOptions) -> String {
    let wants = |section| options.sections.contains(&section);
    let shows_queues = report.findings_of == Whose::Queues;
    let mut text = if shows_queues { String::new() } else { threads_table(report, options) };
    let devices = report.devices.as_ref();
    if let Some(devices) = devices.filter(|_| wants(Section::Summary) || wants(Section::Devices))
        && report.events == 0
    {
        text += &devices.header_text(&report.trace);
    }
    if shows_queues && wants(Section::Summary) {
        text += &verdict_text(report.verdict.as_deref(), options.width);
    }
    if shows_queues && wants(Section::Findings) && report.findings_base_ns > 0 {
        text += &findings_text(report.losses(), options.top, options.floor, options.width);
    }
    if let Some(devices) = devices.filter(|_| wants(Section::Devices)) {
        text += &devices.text(options.width);
    }
    if shows_queues && options.short && !report.findings.is_empty() {
        text += &options.next(report, &[]);
    }
    if let Some(shown) = report.instrumentation.as_ref().filter(|_| wants(Section::Instrumentation)) {
        text += &shown.text(options.instrumentation_top, options.width);
        if let Some(part) = &report.part {
            text += &format!("  only {part}\n");
        }
    }
    if wants(Section::Threads) {
        text += &thread_split_text(&report.thread_splits, report.samples_alone);
    }
    if let Some(paths) = report.call_paths.as_ref().filter(|_| wants(Section::CallPaths)) {
        if !text.is_empty() {
            text.push('\n');
        }
        text += &paths.text(&options.paths);
        if options.short {
            text += &options.next(report, &["taskscope report --section call-paths"]);
        }
    }
    narrowed(&text, options.width)
}

/// The sections on the time of threads.
fn threads_table(report: &Report, options: &ReportOptions) -> String {
    // With samples alone the states of workers are not known, and numbers computed from them would be empty.
    let has = |section: &Section| match report.samples_alone {
        true => [Section::Summary, Section::Findings, Section::Waits].contains(section),
        false => Section::OF_THREADS.contains(section),
    };
    let wants = |section| options.sections.contains(&section) && has(&section);
    if !options.sections.iter().any(has) {
        return String::new();
    }
    let unit = Unit::for_total(report.capacity_ns);
    let mut page = Page { report, options, unit, sheet: Sheet::new(options.width) };
    // Without a length of the run all but the summary is empty.
    let has_length = |section: &Section| report.capacity_ns > 0 || *section == Section::Summary;
    for section in Section::OF_THREADS.into_iter().filter(|section| wants(*section) && has_length(section)) {
        page.section(section);
    }
    page.notices();
    // With samples alone, the call paths below have such a line.
    if wants(Section::Findings) && report.findings_of == Whose::Workers {
        page.next();
    }
    page.sheet.text
}
