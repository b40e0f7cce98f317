//! Pages in one file: style, program and data inline, with a content-security policy that allows
//! exactly these and no request to anywhere.

mod bundle;
mod compared;
mod embed;
mod many_runs;

pub use crate::page::page_data::PageData;
pub(crate) use compared::compared_viewer;
pub use compared::comparison;
pub use embed::{MAX_REPORT_BYTES, profile_page, report};
pub use many_runs::history;

use crate::format::harmless;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use sha2::{Digest, Sha256};

/// The viewer's page, which asks its server for data, and its content-security policy.
pub(crate) fn viewer() -> (String, String) {
    let program = bundle::program();
    let policy = policy(&program, bundle::STYLE, "connect-src 'self'; ");
    (document("taskscope", &policy, &program, &[]), policy)
}

/// A content-security policy for a page with this one program and this one style.
fn policy(program: &str, style: &str, more: &str) -> String {
    let hash = |text: &str| STANDARD.encode(Sha256::digest(text.as_bytes()));
    format!(
        "default-src 'none'; script-src 'sha256-{}'; style-src 'sha256-{}'; img-src data: blob:; {more}\
         base-uri 'none'; form-action 'none'",
        hash(program),
        hash(style)
    )
}

/// A whole page. `data` are elements of JSON, each with its id.
fn document(title: &str, policy: &str, program: &str, data: &[(&str, String)]) -> String {
    let mut page = String::from("<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n");
    page.push_str(&format!(
        "<meta http-equiv=\"Content-Security-Policy\" content=\"{policy}\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta name=\"color-scheme\" content=\"light dark\">\n\
         <title>{}</title>\n<style>",
        escaped(&harmless(title))
    ));
    page.push_str(bundle::STYLE);
    page.push_str("</style>\n</head>\n<body>\n<main id=\"page\"><p id=\"wait\">Loading…</p></main>\n");
    page.push_str("<noscript>This page draws with JavaScript; nothing is loaded from anywhere.</noscript>\n");
    for (id, json) in data {
        page.push_str(&format!("<script type=\"application/json\" id=\"{id}\">"));
        page.push_str(&inert(json));
        page.push_str("</script>\n");
    }
    page.push_str("<script type=\"module\">");
    page.push_str(program);
    page.push_str("</script>\n</body>\n</html>\n");
    page
}

/// Text as HTML.
fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// JSON that cannot close its HTML element, whatever names it contains.
fn inert(json: &str) -> String {
    json.replace('<', "\\u003c")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_cannot_leave_their_element() {
        let page =
            document("a<b>\u{202e}", "p", "1", &[("x", r#"{"n":"</script><script>alert(1)"}"#.to_string())]);
        assert_eq!(page.matches("</script>").count(), 2);
        assert!(page.contains("<title>a&lt;b&gt;\u{fffd}</title>"));
    }

    #[test]
    fn the_policy_names_the_program_and_the_style_and_nothing_else() {
        let (page, policy) = viewer();
        assert!(page.contains(&policy));
        assert!(!policy.contains("unsafe"), "{policy}");
        assert_eq!(page.matches("<style>").count(), 1);
    }
}
