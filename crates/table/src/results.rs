//! The sums of the report: ledger, blame, findings.

use crate::data_set::DataSet;
use crate::error::TableError;
use crate::numbers::Run;
use crate::rows::Value;
use taskscope_analysis::{Analysis, Culprit, Whose};
use taskscope_execution::{Place, State};

pub(crate) fn write(set: &mut DataSet, run: &Run<'_>, analysis: &Analysis) -> Result<(), TableError> {
    let entries = &analysis.ledger.entries;
    let spent = entries.spent.by(|entry| {
        (entry.of.whose == Whose::Worker).then_some((entry.of.thread, entry.cause, entry.of.state))
    });
    for ((thread, cause, state), ns) in spent.iter() {
        set.push(
            "ledger",
            [
                run.run.into(),
                "state".into(),
                run.location(*thread).into(),
                cause.name().into(),
                state.name().into(),
                ns.into(),
            ],
        )?;
    }
    let charged = entries.charged.by(|entry| Some((entry.cause, entry.of.state, entry.of.culprit)));
    for ((cause, state, culprit), ns) in charged.largest_first() {
        let (place, site) = culprit_place(run, culprit);
        set.push(
            "blame",
            [
                run.run.into(),
                cause.name().into(),
                state.name().into(),
                culprit.blamed(run.execution).name().into(),
                place.as_str().into(),
                site.into(),
                ns.into(),
            ],
        )?;
    }
    for (number, finding) in analysis.findings.iter().enumerate() {
        let place = run.session.places.name(finding.state, finding.place);
        set.push(
            "finding",
            [
                run.run.into(),
                (number as u64).into(),
                finding.cause.name().into(),
                finding.blamed.name().into(),
                finding.pattern.map_or(Value::Null, |pattern| pattern.name().into()),
                finding.state.name().into(),
                place.as_str().into(),
                run.site_of(finding.place).into(),
                finding.ns.into(),
                finding.sole_ns.into(),
                finding.confidence.name().into(),
            ],
        )?;
    }
    Ok(())
}

/// A charged party in words, and its place in the code.
fn culprit_place(run: &Run<'_>, culprit: Culprit) -> (String, Option<u32>) {
    let named = |state: State, place: Place| (run.session.places.name(state, place), run.site_of(place));
    match culprit {
        Culprit::Code(state, place) => named(state, place),
        Culprit::Holder(place) => named(State::LockWait, place),
        Culprit::Nobody(place) => (String::new(), run.site_of(place)),
        Culprit::Device(operation) => {
            let operations = &run.execution.catalog.operations;
            let name = operation.and_then(|row| operations.get(row as usize));
            (name.cloned().unwrap_or_default(), None)
        }
        Culprit::Rank(process) => (run.execution.process_name(process).unwrap_or_default(), None),
    }
}
