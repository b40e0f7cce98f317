//! Paraver, and its import.

use crate::{beside, for_each_timeline, opened};
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use taskscope_export::paraver::RunWriter;
use taskscope_export::timeline::{Content, Export, Held, LaneKind, Record, Run, Timeline};
use taskscope_import::paraver::{ParaverFiles, read_paraver};

#[test]
fn paraver_has_every_section_and_arrow_in_order_on_declared_rows() {
    for_each_timeline(|name, timeline, sums| {
        let mut export = RunWriter::new(BTreeMap::new());
        timeline.play(&mut export).unwrap();
        let files = export.into_inner();
        let text = |file: &str| std::str::from_utf8(&files[file]).unwrap();
        let (header, body) = text("trace.prv").split_once('\n').unwrap();
        assert!(header.starts_with("#Paraver (14/11/2023 at 22:13):"), "{header}");
        // Threads of each task of each application, and CPUs of each node.
        let mut fields = header.split_once("):").unwrap().1.splitn(3, ':');
        let end: u64 = fields.next().unwrap().strip_suffix("_ns").unwrap().parse().unwrap();
        let cpus: u64 = (fields.next().unwrap().split_once('(').unwrap().1.trim_end_matches(')'))
            .split(',')
            .map(|count| count.parse::<u64>().unwrap())
            .sum();
        let (count, applications) = fields.next().unwrap().split_once(':').unwrap();
        let applications: Vec<Vec<u64>> = (applications.split("):"))
            .map(|of| {
                let tasks = of.split_once('(').unwrap().1.trim_end_matches(')').split(',');
                tasks.map(|task| task.split(':').next().unwrap().parse().unwrap()).collect()
            })
            .collect();
        assert_eq!(count.parse::<usize>().unwrap(), applications.len(), "{header}");
        let rows: u64 = applications.iter().flatten().sum();
        let lanes = timeline.lanes().iter().filter(|lane| lane.kind.beside().is_none());
        assert_eq!((rows, cpus), (lanes.count() as u64, rows), "{header}");
        let require_row = |row: &[u64]| {
            let [cpu, application, task, thread] = row.try_into().unwrap();
            let threads = applications[application as usize - 1][task as usize - 1];
            assert!((1..=threads).contains(&thread) && (1..=cpus).contains(&cpu), "{row:?} in {header}");
        };
        let (mut counts, mut ns, mut last, mut program_ns) = ([0u64; 4], 0, (0, 0), 0);
        let mut types = BTreeSet::new();
        let mut open: BTreeMap<(Vec<u64>, u64), u64> = BTreeMap::new();
        for line in body.lines() {
            let record: Vec<u64> = line.split(':').map(|field| field.parse().unwrap()).collect();
            require_row(&record[1..5]);
            counts[record[0] as usize] += 1;
            let at = record[5];
            assert!((at, record[0]) >= last && at <= end, "{name}: {line} after {last:?}");
            last = (at, record[0]);
            match record[0] {
                1 => {
                    ns += record[6] - at;
                    program_ns += if record[2] == 1 { record[6] - at } else { 0 };
                }
                2 => {
                    assert!(record.len().is_multiple_of(2) && record.len() > 6, "{line}");
                    for pair in record[6..].chunks(2) {
                        types.insert(pair[0]);
                        open.insert((record[2..5].to_vec(), pair[0]), pair[1]);
                    }
                }
                _ => {
                    require_row(&record[7..11]);
                    assert!(record[11] >= at && record.len() == 15, "{line}");
                }
            }
        }
        assert_eq!(ns, sums.ns.values().sum::<u64>() - beside(timeline, sums), "{name}");
        let threads =
            timeline.lanes().iter().zip(0..).filter(|(lane, _)| matches!(lane.kind, LaneKind::Thread(_)));
        let threads_ns: u64 = threads.filter_map(|(_, number)| sums.ns.get(&number)).sum();
        if threads_ns > 0 {
            assert_eq!(program_ns, threads_ns, "{name}: the program is the first application");
        }
        assert_eq!((counts[0], counts[3]), (0, sums.arrows), "{name}");
        let is_open = |((_, ty), value): &(&(Vec<u64>, u64), &u64)| **value != 0 && *ty < 9_500_100;
        assert_eq!(open.iter().find(is_open), None, "{name}: values end with their sections");
        let labels = text("trace.pcf");
        for ty in types {
            assert!(labels.contains(&format!("\n0    {ty} ")), "{name}: type {ty} has no label");
        }
        assert!(text("trace.row").starts_with(&format!("LEVEL CPU SIZE {cpus}\n")));
        assert!(!labels.lines().any(|line| !line.is_empty() && line.trim().is_empty()));
    });
}

#[test]
fn paraver_has_numbers_of_extrae_and_nanos() {
    let types = |name: &str| {
        let session = opened(name, "..");
        let mut names = session.names();
        let timeline = Timeline::of(&session.execution, &session.devices, &mut names, Run::default());
        let mut export = RunWriter::new(BTreeMap::new());
        timeline.play(&mut export).unwrap();
        String::from_utf8(export.into_inner()["trace.pcf"].clone()).unwrap()
    };
    let mpi_types = types("traces/pic");
    for text in [
        "60000023   Executed OpenMP task function\n",
        "send_task [task at pic.c:170]\n",
        "60000123   Executed OpenMP task function line and file\n",
        "170 (",
        "50000001   MPI Point-to-point\n",
        "\n3      MPI_Isend\n",
        "\n5      MPI_Wait\n",
        "9200002    Work Descriptor id:\n",
        "\n1     Running\n",
        "\n1     {0,0,255}\n",
    ] {
        assert!(mpi_types.contains(text), "{text} is not in {mpi_types}");
    }
}

/// Sections as (row, begin, end, name, activity), and arrows as (kind, begin, end), in order.
type Imported = (Vec<(String, u64, u64, String, String)>, Vec<(String, u64, u64)>);

fn contents(run: &taskscope_import::spans::Run) -> Imported {
    let mut sections = Vec::new();
    for thread in run.threads.iter().filter(|thread| !thread.name.starts_with("uncertain: ")) {
        for span in &thread.spans {
            let kind = &run.kinds[span.kind as usize];
            let activity = format!("{:?}", kind.activity);
            sections.push((thread.name.clone(), span.start, span.end, kind.name.clone(), activity));
        }
    }
    sections.sort();
    let flow = |flow: &taskscope_import::spans::Flow| {
        (run.domains[flow.domain as usize].clone(), flow.from_at, flow.to_at)
    };
    let mut arrows: Vec<_> = run.flows.iter().map(flow).collect();
    arrows.sort();
    (sections, arrows)
}

#[test]
fn imported_paraver_has_the_exported_sections_and_arrows() {
    for_each_timeline(|name, timeline, sums| {
        let mut export = RunWriter::new(BTreeMap::new());
        timeline.play(&mut export).unwrap();
        let files = export.into_inner();
        let text = |file: &str| std::str::from_utf8(&files[file]).unwrap();
        let run = read_paraver(ParaverFiles {
            records: text("trace.prv"),
            labels: text("trace.pcf"),
            rows: text("trace.row"),
        });
        let (sections, arrows) = contents(&run.unwrap());
        let mut expected = Expected::default();
        timeline.play(&mut expected).unwrap();
        expected.sections.sort();
        expected.arrows.sort();
        assert_eq!(sections.len(), expected.sections.len(), "{name}");
        let different = sections.iter().zip(&expected.sections).find(|(found, wanted)| {
            (&found.0, found.1, found.2, &found.3) != (&wanted.0, wanted.1, wanted.2, &wanted.3)
        });
        assert_eq!(different, None, "{name}");
        assert_eq!((arrows.len() as u64, &arrows), (sums.arrows, &expected.arrows), "{name}");
    });
}

/// The sections and arrows of a timeline, from its begin.
#[derive(Default)]
struct Expected {
    begin: u64,
    sections: Vec<(String, u64, u64, String, String)>,
    arrows: Vec<(String, u64, u64)>,
}

impl Export for Expected {
    fn holds(&self, _: Content) -> Held {
        Held::As("rows")
    }

    fn begin(&mut self, timeline: &Timeline<'_>) -> io::Result<()> {
        self.begin = timeline.range().0;
        Ok(())
    }

    fn record(&mut self, timeline: &Timeline<'_>, record: &Record<'_>) -> io::Result<()> {
        match record {
            Record::Enter { section, .. } => {
                let lane = &timeline.lanes()[section.lane as usize];
                if lane.kind.beside().is_none() {
                    let (start, end) = (section.start - self.begin, section.end - self.begin);
                    let name = timeline.codes()[section.code as usize].name.clone();
                    // The import takes the mark off again.
                    let row = lane.name.strip_suffix(", not a worker").unwrap_or(&lane.name).to_owned();
                    self.sections.push((row, start, end, name, String::new()));
                }
            }
            Record::ArrowStart { arrow, .. } => {
                let [start, end] = [false, true].map(|is_end| arrow.position(is_end) - self.begin);
                self.arrows.push((arrow.kind.name().to_owned(), start, end));
            }
            _ => {}
        }
        Ok(())
    }

    fn end(&mut self, _: &Timeline<'_>) -> io::Result<()> {
        Ok(())
    }
}
