//! Marks of an instrumented program in the table `mark`.

use parquet::file::reader::{FileReader, SerializedFileReader};
use std::fs::File;
use taskscope_analysis::analyse;
use taskscope_event::models::instrument;
use taskscope_session::Session;
use taskscope_table::{DataSet, write_run};
use taskscope_testkit::trace_builder::StreamBuilder;

fn bytes(parts: &[&[u8]]) -> Vec<u8> {
    parts.concat()
}

#[test]
fn marks_have_names_values_and_ends() {
    let place = tempfile::tempdir().unwrap();
    let (key, value) = (5_u32.to_le_bytes(), 64_u64.to_le_bytes());
    let zero = 0_u32.to_le_bytes();
    let name = bytes(&[&key, &zero, &zero, b"bytes\0\0B\0"]);
    let value_name = bytes(&[&key, &value, b"cache line\0\0"]);
    let thread = || StreamBuilder::new(0, 1, 7).require(&["ovni"]).cpus(1);
    // Marks are in the recorder's own file.
    let marks = thread()
        .jumbo(11, instrument::KEY, &name)
        .jumbo(12, instrument::KEY_VALUE, &value_name)
        .event(20, instrument::POINT, &bytes(&[&key, &value]))
        .event(30, instrument::BURST_OPEN, &bytes(&[&key, &7_u64.to_le_bytes()]))
        .event(40, instrument::BURST_CLOSE, &bytes(&[&key, &7_u64.to_le_bytes()]))
        .event(45, instrument::STATE_PUSH, &2_u32.to_le_bytes());
    let mut stream = thread().execute(10, 0).end(50);
    stream.own = Some(marks.standard);
    stream.write(&place.path().join("trace")).unwrap();
    let session = Session::open(place.path().join("trace")).unwrap();
    let tables = place.path().join("tables");
    let mut set = DataSet::create(&tables).unwrap();
    write_run(&mut set, &session, &analyse(&session.execution).0).unwrap();
    assert_eq!(set.finish().unwrap().tables["mark"].rows, 3);
    let file = File::open(tables.join("mark/node=0000/process=0000.parquet")).unwrap();
    let reader = SerializedFileReader::new(file).unwrap();
    let rows: Vec<String> = reader
        .get_row_iter(None)
        .unwrap()
        .map(|row| {
            row.unwrap()
                .into_columns()
                .iter()
                .map(|(_, value)| value.to_string())
                .collect::<Vec<_>>()
                .join(" ")
        })
        .collect();
    assert_eq!(rows[0], r#"0 10 10 "point" "bytes" 64 "cache line" "B""#);
    assert_eq!(rows[1], r#"0 20 30 "burst" "bytes" 7 null "B""#);
    assert_eq!(rows[2], r#"0 35 40 "state" "STARTUP" null null null"#, "the end of the thread ends it");
}
