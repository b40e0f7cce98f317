//! Samples and their call paths.

use crate::by_process::by_process;
use crate::data_set::DataSet;
use crate::error::TableError;
use crate::numbers::Run;
use crate::rows::Value;
use rustc_hash::FxHashMap;
use taskscope_execution::{Module, ProcessIndex, ThreadIndex};
use taskscope_session::CodePlace;

struct Path<'a> {
    number: u64,
    thread: ThreadIndex,
    at: u64,
    addresses: &'a [u64],
}

/// Places of steps, found once each. Files that were loaded later may have taken the place of others, so a step is known by
/// its file, too.
#[derive(Default)]
struct Places {
    known: FxHashMap<(ProcessIndex, u64, Option<u64>, bool), CodePlace>,
}

impl Places {
    /// The place of a step of a path, in the file that was loaded at this time.
    fn of(&mut self, run: &Run<'_>, path: &Path<'_>, depth: usize, loaded: Option<u64>) -> &CodePlace {
        let (process, address) = (run.process_of(path.thread), path.addresses[depth]);
        let is_return = depth > 0;
        self.known
            .entry((process, address, loaded, is_return))
            .or_insert_with(|| run.session.places.step(process, address, path.at, is_return))
    }
}

pub(crate) fn write(set: &mut DataSet, run: &Run<'_>) -> Result<(), TableError> {
    let samples = &run.execution.samples;
    let mut known: FxHashMap<(ProcessIndex, &[u64]), u64> = FxHashMap::default();
    let mut paths: Vec<Path<'_>> = Vec::new();
    let mut numbers = Vec::with_capacity(samples.rows.len());
    for sample in &samples.rows {
        let addresses = samples.frames(sample);
        let number = *known.entry((run.process_of(sample.thread), addresses)).or_insert_with(|| {
            let number = run.first.path + paths.len() as u64;
            paths.push(Path { number, thread: sample.thread, at: sample.at, addresses });
            number
        });
        numbers.push(number);
    }
    set.next.path += paths.len() as u64;
    let rows: Vec<_> = samples.rows.iter().zip(numbers).collect();
    by_process(
        set,
        run,
        "sample",
        rows,
        |(row, _)| row.thread,
        |(row, _)| row.at,
        |file, (row, path)| {
            let task = samples.levels(row).iter().map(|level| level.task).find(|task| task.is_some());
            file.push([
                run.location(row.thread).into(),
                run.at(row.at),
                path.into(),
                task.and_then(|task| run.task(task)).into(),
                row.weight_ns.into(),
            ])
        },
    )?;
    let mut places = Places::default();
    let mut modules: FxHashMap<ProcessIndex, Vec<&Module>> = FxHashMap::default();
    for module in &run.execution.catalog.modules {
        modules.entry(module.process).or_default().push(module);
    }
    by_process(
        set,
        run,
        "path",
        paths,
        |path| path.thread,
        |path| path.number,
        |file, path| {
            let own = modules.get(&run.process_of(path.thread)).map_or(&[][..], Vec::as_slice);
            for (depth, address) in path.addresses.iter().enumerate() {
                let is_its =
                    |module: &&&Module| (module.start..module.end).contains(address) && module.at <= path.at;
                let module = own.iter().filter(is_its).max_by_key(|module| module.at);
                let place = places.of(run, &path, depth, module.map(|module| module.at));
                file.push([
                    path.number.into(),
                    (depth as u64).into(),
                    Value::bits(*address),
                    module.map(|module| module.path.as_str()).into(),
                    module.map_or(Value::Null, |module| Value::bits(address.wrapping_sub(module.bias))),
                    place.frame.function.as_deref().into(),
                    place.frame.file.as_deref().into(),
                    place.frame.line.into(),
                ])?;
            }
            Ok(())
        },
    )
}
