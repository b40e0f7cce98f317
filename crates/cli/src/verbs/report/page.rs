//! The report as one HTML file.

use crate::messages::Failure;
use crate::watch::Watch;
use std::path::Path;
use std::process::ExitCode;
use taskscope_files::write_named;
use taskscope_session::Session;
use taskscope_view::html;
use taskscope_view::page::Page;

/// Writes the report as one page.
pub fn write_html(file: &Path, session: Session, watch: &Watch) -> anyhow::Result<ExitCode> {
    let page = Page::reported(session);
    watch.stage("writing");
    let written = write_page(file, &html::report(&page), Some(watch));
    // The process ends here: giving a large run's memory back piece by piece would only take time.
    std::mem::forget(page);
    written
}

/// Writes a page completely or not at all: the old one may be open in a reader.
pub fn write_page(file: &Path, text: &str, watch: Option<&Watch>) -> anyhow::Result<ExitCode> {
    let begun = |temporary: &Path| {
        if let Some(watch) = watch {
            watch.unfinished(Some(temporary));
        }
    };
    let written = write_named(file, begun, |out| out.write_all(text.as_bytes()));
    if let Some(watch) = watch {
        watch.unfinished(None);
    }
    written
        .map_err(|error| Failure::new(format!("cannot write {}", file.display())).why(error.to_string()))?;
    Ok(ExitCode::SUCCESS)
}
