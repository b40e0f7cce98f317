//! The page about ovni's rules names every rule that weighs differently, and no other.

use taskscope_model::{Severity, ViolationCode};

#[test]
fn every_difference_is_a_row_of_the_page() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/ovni-compatibility.md");
    let page = std::fs::read_to_string(path).unwrap();
    let table = page.split("## Behaviour").next().unwrap();
    for code in ViolationCode::ALL {
        let row = table.lines().find(|line| line.starts_with(&format!("| `{}` |", code.name())));
        let differs = code.ovni_severity() != code.severity();
        assert_eq!(row.is_some(), differs, "{}", code.name());
        let Some(row) = row else { continue };
        let word = |severity| match severity {
            Severity::Silent => "passes",
            Severity::Warning => "warning",
            Severity::Error => "error",
            Severity::LintError => "error with `-l`",
        };
        let expected =
            format!("| `{}` | {} | {} |", code.name(), word(code.ovni_severity()), word(code.severity()));
        assert!(row.starts_with(&expected), "{row}\nshould start with\n{expected}");
    }
}
