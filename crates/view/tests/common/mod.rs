//! Runs to look at, and a client of the viewer's server that says exactly what it is told to.
#![allow(dead_code)] // each test file uses its own part

use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Arc;
use std::time::Duration;
use taskscope_execution::Execution;
use taskscope_session::Session;
use taskscope_testkit::synthetic::{Shape, execution};
use taskscope_view::page::Page;
use taskscope_view::server::Viewer;

/// A run of two processes with four threads each.
pub fn small() -> Execution {
    execution(Shape { threads: 8, team: 4, processes_of_node: 1, events: 30_000, seed: 3 })
}

/// What pages show of a run.
pub fn page_of(execution: Execution) -> Page {
    let session = Session::in_memory("synthetic.trace", execution);
    let (analysis, problems) = taskscope_analysis::analyse(&session.execution);
    Page::new(session, &analysis, &problems)
}

/// A viewer of a run.
pub fn viewer_of(execution: Execution) -> (Arc<Page>, Viewer) {
    let page = Arc::new(page_of(execution));
    let viewer = Viewer::start(page.clone(), 0).unwrap();
    (page, viewer)
}

/// An answer.
pub struct Answer {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
}

/// Sends bytes as they are and reads the answer to its end.
pub fn send(viewer: &Viewer, request: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(("127.0.0.1", viewer.port())).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    // The server may refuse before it has read everything.
    let _ = stream.write_all(request);
    let mut bytes = Vec::new();
    let _ = stream.read_to_end(&mut bytes);
    let split = bytes.windows(4).position(|w| w == b"\r\n\r\n").map_or(bytes.len(), |at| at + 4);
    let head = String::from_utf8_lossy(&bytes[..split]).into_owned();
    let status = head.split(' ').nth(1).and_then(|code| code.parse().ok()).unwrap_or(0);
    Answer { status, head, body: bytes[split..].to_vec() }
}

/// A question as the page asks it.
pub fn ask(viewer: &Viewer, target: &str) -> Answer {
    let host = format!("127.0.0.1:{}", viewer.port());
    ask_with(viewer, target, &[("Host", &host), ("X-Taskscope-Token", viewer.token())])
}

/// A question with these headers and no others.
pub fn ask_with(viewer: &Viewer, target: &str, headers: &[(&str, &str)]) -> Answer {
    let lines: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    send(viewer, format!("GET {target} HTTP/1.1\r\n{lines}Connection: close\r\n\r\n").as_bytes())
}
