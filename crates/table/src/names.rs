//! Runs, processes, locations, and the names of code and objects.

use crate::data_set::DataSet;
use crate::error::TableError;
use crate::numbers::{Run, host_of};
use crate::rows::Value;
use taskscope_analysis::Analysis;
use taskscope_execution::{NO_TIME, Process, ProcessIndex, SiteIndex, ThreadIndex, TypeIndex, TypeKind};

pub(crate) fn write(set: &mut DataSet, run: &Run<'_>, analysis: &Analysis) -> Result<(), TableError> {
    run_row(set, run, analysis)?;
    processes(set, run)?;
    locations(set, run)?;
    code(set, run)?;
    regions(set, run)
}

fn run_row(set: &mut DataSet, run: &Run<'_>, analysis: &Analysis) -> Result<(), TableError> {
    let session = run.session;
    let source = session.root.display().to_string();
    let file = session.run.as_ref();
    let command = file.map(|file| file.command.join(" ")).unwrap_or_default();
    let (first, last) = match run.execution.whole().range() {
        (0, 0) => session.devices.range(),
        range => range,
    };
    let (begin, end) = run.execution.part_of_time();
    set.push(
        "run",
        [
            run.run.into(),
            source.as_str().into(),
            command.as_str().into(),
            file.map_or("", |file| file.host.as_str()).into(),
            file.and_then(|file| file.start_unix_ns).into(),
            run.at(begin.max(first)),
            run.at(end.min(last)),
            analysis.ledger.capacity_ns.into(),
            (analysis.ledger.workers as u64).into(),
            session.is_complete().into(),
            session.events.into(),
            session.lost_events().into(),
            session.part.as_deref().into(),
            file.and_then(|file| file.recorder.as_deref()).unwrap_or("").into(),
        ],
    )?;
    let mut counter = |name: &str, value: u64| {
        let row = [run.run.into(), Value::Null, name.into(), value.into()];
        if value > 0 { set.push("counter", row) } else { Ok(()) }
    };
    for (model, events) in &session.events_by_model {
        counter(&format!("events of {model}"), *events)?;
    }
    counter("clocks too far", session.clocks_too_far)?;
    counter("unreadable samples", session.unreadable_samples)?;
    let communication = &run.execution.communication;
    counter("unmatched sends", communication.unmatched_sends)?;
    counter("unmatched receives", communication.unmatched_receives)?;
    for (name, tally) in &run.execution.anomalies.by_name {
        counter(name, tally.count)?;
    }
    Ok(())
}

fn processes(set: &mut DataSet, run: &Run<'_>) -> Result<(), TableError> {
    let begin = run.origin.max(run.execution.part_of_time().0);
    for (row, process) in run.execution.processes.iter().enumerate() {
        let index = ProcessIndex::of(row);
        let Process { loom, pid, .. } = process;
        // One without events in the exported part has no time there.
        let (first, last) = if process.last == 0 { (begin, begin) } else { (process.first, process.last) };
        set.push(
            "process",
            [
                run.process(index).into(),
                run.run.into(),
                run.node(index).into(),
                host_of(loom).into(),
                (*pid).into(),
                rank_of(run, index),
                run.at(first),
                run.at(last),
            ],
        )?;
    }
    Ok(())
}

fn rank_of(run: &Run<'_>, process: ProcessIndex) -> Value<'static> {
    run.execution.communication.ranks.get(&process.0).map(|rank| rank.rank).into()
}

fn locations(set: &mut DataSet, run: &Run<'_>) -> Result<(), TableError> {
    for (row, thread) in run.execution.threads.iter().enumerate() {
        let index = ThreadIndex::of(row);
        let last = if thread.first == NO_TIME { NO_TIME } else { thread.last };
        set.push(
            "location",
            [
                run.location(index).into(),
                run.run.into(),
                run.node(thread.process).into(),
                run.process(thread.process).into(),
                thread.tid.into(),
                thread.role_name().into(),
                thread.name.as_str().into(),
                Value::Null,
                rank_of(run, thread.process),
                (thread.worker && thread.selected).into(),
                run.at(thread.first),
                run.at(last),
                thread.events.into(),
                thread.lost_events.into(),
            ],
        )?;
    }
    for (row, queue) in run.session.devices.queues.iter().enumerate() {
        let process = run.process_of_queue(queue);
        let starts = queue.operations.iter().map(|operation| operation.start).filter(|start| *start > 0);
        let last = queue.operations.iter().map(|operation| operation.end).max().filter(|end| *end > 0);
        set.push(
            "location",
            [
                run.queue(row).into(),
                run.run.into(),
                process.map_or(run.first.node, |process| run.node(process)).into(),
                process.and_then(|process| run.process(process)).into(),
                Value::Null,
                "device queue".into(),
                queue.name.as_str().into(),
                queue.device.as_str().into(),
                process.map_or(Value::Null, |process| rank_of(run, process)),
                false.into(),
                starts.min().map_or(Value::Null, |start| run.at(start)),
                last.map_or(Value::Null, |end| run.at(end)),
                (queue.operations.len() as u64).into(),
                (queue.lost.len() as u64).into(),
            ],
        )?;
    }
    Ok(())
}

fn code(set: &mut DataSet, run: &Run<'_>) -> Result<(), TableError> {
    let (catalog, places) = (&run.execution.catalog, &run.session.places);
    for (row, ty) in catalog.types.iter().enumerate() {
        let index = TypeIndex::of(row);
        let kind = match ty.kind {
            Some(TypeKind::Task { .. }) => "task",
            Some(TypeKind::Work { .. }) => "worksharing",
            None => "unknown",
        };
        let name = places.type_name(index);
        set.push(
            "task_type",
            [
                run.task_type(index).into(),
                run.run.into(),
                run.process(ty.process).into(),
                name.as_str().into(),
                kind.into(),
                run.site(ty.site).into(),
            ],
        )?;
    }
    for (row, site) in catalog.sites.iter().enumerate() {
        let index = SiteIndex::of(row);
        let place = places.code(index);
        set.push(
            "site",
            [
                run.site(index).into(),
                run.run.into(),
                run.process(site.process).into(),
                place.frame.function.as_deref().unwrap_or("").into(),
                place.frame.file.as_deref().unwrap_or("").into(),
                place.frame.line.into(),
                Value::bits(site.address),
            ],
        )?;
    }
    for (row, object) in catalog.objects.iter().enumerate() {
        let index = taskscope_execution::ObjectIndex::of(row);
        let name = places.object_name(index);
        set.push(
            "object",
            [
                run.object(index).into(),
                run.run.into(),
                run.process(object.process).into(),
                places.object_kind(index).into(),
                name.as_str().into(),
                Value::bits(object.id),
            ],
        )?;
    }
    Ok(())
}

fn regions(set: &mut DataSet, run: &Run<'_>) -> Result<(), TableError> {
    let known = |number: u32| (number > 0).then_some(number);
    let rows: Vec<u32> = (0..run.execution.regions.len() as u32).collect();
    let region = |row: &u32| &run.execution.regions[*row as usize];
    let begin = |row: &u32| region(row).begin;
    crate::by_process::by_process(
        set,
        run,
        "region",
        rows,
        |row| region(row).master,
        begin,
        |file, row| {
            let of = region(&row);
            file.push([
                run.region(taskscope_execution::RegionIndex(row)).into(),
                run.location(of.master).into(),
                run.site(of.site).into(),
                run.region(of.parent).into(),
                run.at(of.begin),
                run.at(of.end),
                known(of.requested).into(),
                known(of.team).into(),
            ])
        },
    )
}
