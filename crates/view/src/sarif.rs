//! Findings as SARIF 2.1.0 (OASIS), which code hosts show at the lines of the source.
//!
//! Findings without a file are notifications of the run: GitHub refuses a whole document if one result has no location.

use crate::Report;
use crate::findings::FindingRow;
use serde_json::{Map, Value, json};
use std::path::{Component, Path, PathBuf};

const SCHEMA: &str = "https://json.schemastore.org/sarif-2.1.0.json";
/// Share of the time from which a finding is a warning.
const WARNING: f64 = 0.05;
/// Characters that a path in a URI has unchanged.
const UNRESERVED: &[u8] = b"-._~/";

/// The findings of a report that are at least `floor` of the time, at lines relative to the directory `root`.
pub fn sarif(report: &Report, root: &Path, floor: f64) -> Value {
    let base = report.findings_base_ns.max(1) as f64;
    let share = |finding: &FindingRow| finding.ns as f64 / base;
    let findings: Vec<&FindingRow> =
        report.findings.iter().filter(|finding| share(finding) >= floor || finding.hang.is_some()).collect();
    let mut causes: Vec<_> = findings.iter().map(|finding| finding.cause.0).collect();
    causes.sort_by_key(|cause| cause.name());
    causes.dedup_by_key(|cause| cause.name());
    let rules = causes.iter().map(|cause| {
        json!({
            "id": cause.name(),
            "shortDescription": {"text": cause.label()},
            "fullDescription": {"text": cause.text().meaning},
        })
    });
    let (mut results, mut notifications) = (Vec::new(), Vec::new());
    for finding in &findings {
        let level = if finding.hang.is_some() {
            "error"
        } else if share(finding) >= WARNING {
            "warning"
        } else {
            "note"
        };
        let percent = share(finding) * 100.0;
        let mut text = format!("{} ({percent:.1} % of the time)", finding.text);
        if !finding.remedy.is_empty() {
            text = format!("{text}. {}", finding.remedy);
        }
        let mut row = json!({
            "level": level,
            "message": {"text": text},
            "properties": {"id": finding.id, "ns": finding.ns, "share": share(finding)},
        });
        let rule = finding.cause.0.name();
        match location(finding, root) {
            Some(location) => {
                row["ruleId"] = rule.into();
                row["locations"] = json!([location]);
                results.push(row);
            }
            None => {
                row["associatedRule"] = json!({"id": rule});
                notifications.push(row);
            }
        }
    }
    json!({
        "$schema": SCHEMA,
        "version": "2.1.0",
        "runs": [{
            "tool": {"driver": {
                "name": "taskscope",
                "semanticVersion": env!("CARGO_PKG_VERSION"),
                "informationUri": env!("CARGO_PKG_REPOSITORY"),
                "rules": rules.collect::<Vec<_>>(),
            }},
            "columnKind": "unicodeCodePoints",
            "invocations": [{"executionSuccessful": true, "toolExecutionNotifications": notifications}],
            "results": results,
        }],
    })
}

/// The file and line of a finding, if they are known.
fn location(finding: &FindingRow, root: &Path) -> Option<Value> {
    let code = finding.code.as_ref()?;
    let file = code.file.as_deref().filter(|file| !file.is_empty())?;
    let file = normalised(file);
    let mut artifact = Map::new();
    match file.strip_prefix(root) {
        Ok(relative) => {
            artifact.insert("uri".to_owned(), uri(&relative.to_string_lossy()).into());
            artifact.insert("uriBaseId".to_owned(), "%SRCROOT%".into());
        }
        Err(_) if file.is_absolute() => {
            artifact.insert("uri".to_owned(), format!("file://{}", uri(&file.to_string_lossy())).into());
        }
        Err(_) => {
            artifact.insert("uri".to_owned(), uri(&file.to_string_lossy()).into());
        }
    }
    let mut physical = json!({"artifactLocation": artifact});
    if let Some(line) = code.line.filter(|line| *line > 0) {
        physical["region"] = json!({"startLine": line});
    }
    let mut location = json!({"physicalLocation": physical});
    if let Some(function) = &code.function {
        location["logicalLocations"] = json!([{"name": function, "kind": "function"}]);
    }
    Some(location)
}

/// The path without `.` and, after a name, without `..`: code hosts compare names of files. The file need not be here, so links
/// are not followed.
fn normalised(path: &str) -> PathBuf {
    let mut normalised = PathBuf::new();
    for component in Path::new(path).components() {
        let last = normalised.components().next_back();
        match (component, last) {
            (Component::CurDir, _) | (Component::ParentDir, Some(Component::RootDir)) => {}
            (Component::ParentDir, Some(Component::Normal(_))) => drop(normalised.pop()),
            _ => normalised.push(component),
        }
    }
    normalised
}

/// A path as a part of a URI: all but unreserved bytes are escaped.
fn uri(path: &str) -> String {
    let mut uri = String::new();
    for byte in path.bytes() {
        if byte.is_ascii_alphanumeric() || UNRESERVED.contains(&byte) {
            uri.push(char::from(byte));
        } else {
            uri.push_str(&format!("%{byte:02X}"));
        }
    }
    uri
}

#[cfg(test)]
mod tests {
    use super::{normalised, uri};
    use std::path::Path;

    #[test]
    fn paths_are_normalised() {
        for (path, expected) in [
            ("./lock.c", "lock.c"),
            ("/src/./a/../lock.c", "/src/lock.c"),
            ("a/./b.c", "a/b.c"),
            ("../../b.c", "../../b.c"),
            ("a/../../b.c", "../b.c"),
            ("/../b.c", "/b.c"),
        ] {
            assert_eq!(normalised(path), Path::new(expected), "{path}");
        }
    }

    #[test]
    fn paths_are_escaped() {
        assert_eq!(uri("a b/é%#?.c"), "a%20b/%C3%A9%25%23%3F.c");
    }
}
