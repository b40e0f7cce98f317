//! A synthetic run as pages, for browser tests and benchmarks.
//!
//! ```text
//! show EVENTS THREADS json          the report's JSON on stdout
//! show EVENTS THREADS html FILE     the one-file report
//! show EVENTS THREADS serve         prints the viewer's address, answers until stdin closes
//! ```

use std::io::Read;
use std::sync::Arc;
use std::time::Instant;
use taskscope_session::Session;
use taskscope_testkit::synthetic::{Shape, execution};
use taskscope_view::page::Page;
use taskscope_view::server::Viewer;

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let number = |at: usize| arguments.get(at).and_then(|text| text.parse::<u64>().ok());
    let (Some(events), Some(threads)) = (number(0), number(1)) else {
        return Err(std::io::Error::other("usage: show EVENTS THREADS json|html FILE|serve"));
    };
    let threads = threads as usize;
    let shape = Shape { threads, team: threads.clamp(1, 64), processes_of_node: 4, events, seed: 1 };
    let begun = Instant::now();
    let session = Session::in_memory("synthetic.trace", execution(shape));
    eprintln!("made in {:.2} s", begun.elapsed().as_secs_f64());
    let begun = Instant::now();
    let (analysis, problems) = taskscope_analysis::analyse(&session.execution);
    eprintln!("analysed in {:.2} s", begun.elapsed().as_secs_f64());
    if arguments.get(2).is_some_and(|verb| verb == "json") {
        println!("{}", serde_json::json!(taskscope_view::report_json(&session, &analysis, &problems)));
        return Ok(());
    }
    let begun = Instant::now();
    let page = Page::new(session, &analysis, &problems);
    eprintln!("page ready in {:.2} s", begun.elapsed().as_secs_f64());
    match arguments.get(2).map(String::as_str) {
        Some("html") => {
            let begun = Instant::now();
            let text = taskscope_view::html::report(&page);
            eprintln!("report of {} bytes in {:.2} s", text.len(), begun.elapsed().as_secs_f64());
            std::fs::write(arguments.get(3).map_or("report.html", String::as_str), text)
        }
        _ => {
            let viewer = Viewer::start(Arc::new(page), 0)?;
            println!("{}", viewer.address());
            std::io::stdin().read_to_end(&mut Vec::new()).map(|_| ())
        }
    }
}
