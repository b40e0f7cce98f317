//! Task graphs as graphs of other programs.

use taskscope_execution::graph::{GraphBuilder, NONE, NewData, NewTask, TaskGraph, TaskType};
use taskscope_export::task_graph::{GraphCounts, GraphForm, write_task_graph};

/// Two tasks on two nodes: one computes a value that the other one reads, and creates it.
fn graph(name: &str) -> TaskGraph {
    let mut builder = GraphBuilder::new();
    builder.add_worker(0, 0, 0, 400);
    builder.add_worker(1, 1, 0, 400);
    let ty = builder.add_type(TaskType { name: name.to_owned(), line: 12, ..TaskType::default() });
    builder.add_task(NewTask { created: 0, ..NewTask::new(1, ty) });
    builder.add_task(NewTask { created: 10, creator: Some(1), ..NewTask::new(2, ty) });
    builder.add_piece(0, 1, 0, 100);
    builder.add_piece(1, 2, 150, 300);
    let data = NewData {
        id: 7,
        producer: Some(1),
        produced: 100,
        home: 0,
        bytes: 8,
        name: NONE,
        synchronises: false,
    };
    builder.add_data(data);
    builder.add_copy(7, 1, 105, 140);
    builder.add_input(2, 7);
    builder.finish().unwrap()
}

fn written(name: &str, form: GraphForm) -> String {
    let mut out = Vec::new();
    let counts = write_task_graph(&graph(name), form, &mut out).unwrap();
    assert_eq!(counts, GraphCounts { nodes: 2, edges: 2 });
    String::from_utf8(out).unwrap()
}

#[test]
fn edges_have_their_data() {
    let text = written("a", GraphForm::Json);
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(document["nodes"][1]["id"], 2);
    assert_eq!(document["nodes"][1]["worker"], 1);
    assert_eq!(
        document["links"],
        serde_json::json!([
            {"source": 1, "target": 2, "key": 0, "kind": "creation", "produced_ns": 10},
            {"source": 1, "target": 2, "key": 1, "kind": "data", "data": 7, "bytes": 8, "produced_ns": 100,
             "sent_ns": 105, "arrived_ns": 140},
        ])
    );
    let dot = written("a", GraphForm::Dot);
    assert!(
        dot.contains("  1 [label=\"a\", ")
            && dot.contains("  1 -> 2 [kind=\"data\", data=\"7\", bytes=\"8\", produced_ns=\"100\""),
        "{dot}"
    );
    let xml = written("a", GraphForm::GraphMl);
    assert!(
        xml.contains("<edge id=\"e1\" source=\"1\" target=\"2\"><data key=\"edge.kind\">data</data>"),
        "{xml}"
    );
}

#[test]
fn names_of_any_characters_are_escaped() {
    let name = "a\"\\\n<&>\u{1}\u{ffff}é";
    assert!(written(name, GraphForm::Dot).contains("label=\"a\\\"\\\\\\n<&>\u{fffd}\u{ffff}é\""));
    assert!(written(name, GraphForm::GraphMl).contains(">a\"\\\n&lt;&amp;&gt;\u{fffd}\u{fffd}é</data>"));
    let document: serde_json::Value = serde_json::from_str(&written(name, GraphForm::Json)).unwrap();
    assert_eq!(document["nodes"][0]["type"], name);
}
