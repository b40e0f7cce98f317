//! Findings of device queues of which no thread of the host is recorded: why they were idle.
//!
//! Queues are the workers: an idle queue waits for the host, for copies, or for other operations. While its
//! device computes for another queue it counts as in use, which is not a loss.

use super::rows::{Findings, Whose};
use crate::format::{counted, percent, time};
use crate::named_finding::NamedFinding;
use crate::verdict::{Total, verdict_on_queues};
use crate::words::numbered;
use taskscope_analysis::Confidence;
use taskscope_analysis::devices::{QueueLedger, ledgers};
use taskscope_cause::{Blamed, Cause, Pattern, Runtime};
use taskscope_execution::State;
use taskscope_session::Session;

/// All findings.
pub(super) fn findings(session: &Session) -> Findings {
    let mut rows: Vec<NamedFinding> = Vec::new();
    let (mut base_ns, mut lost_ns, mut unknown_ns) = (0, 0, 0);
    for (queue, ledger) in session.devices.queues.iter().zip(ledgers(&session.devices, session.times)) {
        let idle = &ledger.time;
        base_ns += idle.total();
        lost_ns += idle.idle() - idle.device_busy;
        unknown_ns += idle.unknown;
        let name = words_for(&queue.name);
        let losses = [
            (
                (Cause::Wait, Blamed::Code, Some(Pattern::HostBound), idle.host_bound),
                format!("{name} is idle: the host submits nothing to it"),
            ),
            (
                (Cause::Wait, Blamed::Operation, Some(Pattern::TransferBound), idle.transfer_bound),
                format!("{name} is idle: its operations wait while the device only copies"),
            ),
            (
                (Cause::Wait, Blamed::Nobody, Some(Pattern::DependencyBound), idle.dependency_bound),
                format!("{name} is idle: its operations wait for events, barriers or the driver"),
            ),
            (
                (Cause::Unknown, Blamed::Nobody, None, idle.unknown),
                format!("{name} is idle; why is not known, as submissions were not recorded"),
            ),
        ];
        for ((cause, blamed, pattern, ns), text) in losses {
            if ns > 0 {
                let what = (State::Idle, name.clone());
                let confidence =
                    if ledger.submissions < ledger.timed { Confidence::Low } else { Confidence::High };
                let finding = NamedFinding::new((cause, blamed), what, ns, confidence);
                rows.push(NamedFinding { pattern, text, evidence: evidence(&ledger), ..finding });
            }
        }
    }
    let rows = numbered(rows, |_| Some(Runtime::Devices));
    let total = Total { capacity_ns: base_ns, starting_ns: 0, lost_ns, unknown_ns };
    let verdict = verdict_on_queues(total, &rows);
    Findings { rows, base_ns, whose: Whose::Queues, verdict, cpu_time: None }
}

/// The use of the queue's time.
fn evidence(ledger: &QueueLedger) -> String {
    let total = ledger.time.total();
    let mut text = format!(
        "of {} from its first submission to its last end, kernels run {}, copies {}",
        time(total),
        percent(ledger.time.kernels, total),
        percent(ledger.time.transfers, total)
    );
    text.push_str(&format!("; {}", counted(ledger.timed, "operation")));
    if let Some(mean) = ledger.queueing.checked_div(ledger.submissions) {
        text.push_str(&format!(
            "; {} from submission to start on average, {} at most",
            time(mean),
            time(ledger.longest_queueing)
        ));
    }
    text
}

/// A queue in sentences: drivers often name one by a number.
fn words_for(name: &str) -> String {
    if name.to_lowercase().contains("queue") { name.to_owned() } else { format!("queue {name}") }
}
