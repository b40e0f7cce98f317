//! The page's program: the modules of `web/`, joined in the order of their imports.
//!
//! Each module's `import … from './other.js';` is on one line and imports names that an earlier module
//! exports, so joining removes these lines and the word `export`. Names are unique over all modules; a test
//! checks that.

use taskscope_cause::{Group, State};

/// The style of all pages.
pub const STYLE: &str = include_str!("../../web/page.css");

/// Modules, each after those that it imports.
const MODULES: [(&str, &str); 44] = [
    ("format.js", include_str!("../../web/format.js")),
    ("palette.js", include_str!("../../web/palette.js")),
    ("pixels.js", include_str!("../../web/pixels.js")),
    ("source.js", include_str!("../../web/source.js")),
    ("paper.js", include_str!("../../web/paper.js")),
    ("elements.js", include_str!("../../web/elements.js")),
    ("files.js", include_str!("../../web/files.js")),
    ("table.js", include_str!("../../web/table.js")),
    ("rows.js", include_str!("../../web/rows.js")),
    ("charts.js", include_str!("../../web/charts.js")),
    ("gestures.js", include_str!("../../web/gestures.js")),
    ("names.js", include_str!("../../web/names.js")),
    ("tracks.js", include_str!("../../web/tracks.js")),
    ("numbers.js", include_str!("../../web/numbers.js")),
    ("hover.js", include_str!("../../web/hover.js")),
    ("labels.js", include_str!("../../web/labels.js")),
    ("marks.js", include_str!("../../web/marks.js")),
    ("timeline.js", include_str!("../../web/timeline.js")),
    ("minimap.js", include_str!("../../web/minimap.js")),
    ("picture.js", include_str!("../../web/picture.js")),
    ("matrix.js", include_str!("../../web/matrix.js")),
    ("findings.js", include_str!("../../web/findings.js")),
    ("device_tables.js", include_str!("../../web/device_tables.js")),
    ("report_tables.js", include_str!("../../web/report_tables.js")),
    ("report.js", include_str!("../../web/report.js")),
    ("details.js", include_str!("../../web/details.js")),
    ("views.js", include_str!("../../web/views.js")),
    ("code_panel.js", include_str!("../../web/code_panel.js")),
    ("panel.js", include_str!("../../web/panel.js")),
    ("type_panel.js", include_str!("../../web/type_panel.js")),
    ("search.js", include_str!("../../web/search.js")),
    ("assembly_pane.js", include_str!("../../web/assembly_pane.js")),
    ("source_pane.js", include_str!("../../web/source_pane.js")),
    ("notes.js", include_str!("../../web/notes.js")),
    ("selection.js", include_str!("../../web/selection.js")),
    ("address.js", include_str!("../../web/address.js")),
    ("toolbar.js", include_str!("../../web/toolbar.js")),
    ("tips.js", include_str!("../../web/tips.js")),
    ("viewer.js", include_str!("../../web/viewer.js")),
    ("aligned.js", include_str!("../../web/aligned.js")),
    ("flame_difference.js", include_str!("../../web/flame_difference.js")),
    ("compare.js", include_str!("../../web/compare.js")),
    ("history.js", include_str!("../../web/history.js")),
    ("main.js", include_str!("../../web/main.js")),
];

/// One program from all modules.
pub fn program() -> String {
    let mut program = String::from("\n'use strict';\n");
    for (name, text) in MODULES {
        program.push_str(&format!("// ---- {name}\n"));
        for line in text.lines().filter(|line| !line.starts_with("import ")) {
            let line = line.strip_prefix("export ").unwrap_or(line);
            match (line.strip_suffix("_STATES = {};"), line.strip_suffix("GROUP_ORDER = [];")) {
                (Some(start), _) => {
                    program.push_str(&format!("{start}_STATES = {};", colours(start.ends_with("LIGHT"))))
                }
                (_, Some(start)) => {
                    program.push_str(&format!("{start}GROUP_ORDER = {:?};", Group::ALL.map(Group::name)))
                }
                (None, None) => program.push_str(line),
            }
            program.push('\n');
        }
    }
    program
}

/// The colours of states, as an object of the page's program.
fn colours(light: bool) -> String {
    let rows = State::ALL.into_iter().filter_map(|state| {
        let [on_light, on_dark] = state.colours()?;
        Some(format!("{}: '{}'", state.name(), if light { on_light } else { on_dark }))
    });
    format!("{{ {} }}", rows.collect::<Vec<_>>().join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn declared(text: &str) -> Vec<&str> {
        text.lines()
            .map(|line| line.strip_prefix("export ").unwrap_or(line))
            .filter_map(|line| {
                let rest = ["function ", "async function ", "const ", "class ", "let "]
                    .iter()
                    .find_map(|keyword| line.strip_prefix(keyword))?;
                rest.split(|c: char| !c.is_alphanumeric() && c != '_').next()
            })
            .collect()
    }

    #[test]
    fn names_are_unique_over_all_modules() {
        let mut seen: BTreeMap<&str, &str> = BTreeMap::new();
        for (file, text) in MODULES {
            for name in declared(text) {
                if let Some(other) = seen.insert(name, file) {
                    panic!("{name} is declared in {other} and in {file}");
                }
            }
        }
        assert!(seen.len() > 50, "{}", seen.len());
    }

    #[test]
    fn imports_name_earlier_modules() {
        let mut before: Vec<&str> = Vec::new();
        for (file, text) in MODULES {
            for line in text.lines().filter(|line| line.starts_with("import ")) {
                let from = line.split('\'').nth(1).and_then(|path| path.strip_prefix("./"));
                assert!(from.is_some_and(|from| before.contains(&from)), "{file}: {line}");
                assert!(!line.contains(" as "), "{file}: {line}");
            }
            before.push(file);
        }
    }

    #[test]
    fn nothing_is_loaded_from_anywhere() {
        let program = program();
        assert!(!program.contains("</script"), "it would end its element");
        // Types of parameters are in comments and name modules too.
        let comment = |line: &&str| !["*", "/*", "//"].iter().any(|c| line.trim_start().starts_with(c));
        let program: String = program.lines().filter(comment).collect::<Vec<_>>().join("\n");
        for word in ["http://", "https://", "innerHTML", "eval(", "import("] {
            let allowed = "http://www.w3.org/2000/svg";
            assert!(!program.replace(allowed, "").contains(word), "{word}");
            assert!(!STYLE.contains(word), "{word}");
        }
    }
}
