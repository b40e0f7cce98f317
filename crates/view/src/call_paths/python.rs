//! Interpreters of Python whose functions recorders cannot read.

/// The second numbers of the versions that recorders read (`record-ompt`, `sampler::python::layout`).
const KNOWN: core::ops::RangeInclusive<u32> = 9..=13;

/// A note on the functions of Python that are not known, from the paths of a program's files.
pub(super) fn unknown_functions<'a>(mut files: impl Iterator<Item = &'a str>) -> Option<String> {
    let (version, why) = files.find_map(unknown_version)?;
    Some(format!(
        "functions of Python are not known: {why} (Python {version}); call paths have the interpreter's own functions instead \
         (known are 3.{} to 3.{})",
        KNOWN.start(),
        KNOWN.end()
    ))
}

/// The version of the interpreter in a file, and the reason why its functions are not known; `None` if they are, or it is no interpreter.
fn unknown_version(path: &str) -> Option<(String, &'static str)> {
    let name = path.rsplit('/').next().unwrap_or(path);
    let version = name.strip_prefix("lib").unwrap_or(name).strip_prefix("python3.")?;
    let digits = version.find(|digit: char| !digit.is_ascii_digit()).unwrap_or(version.len());
    let (minor, kind) = version.split_at_checked(digits)?;
    let number: u32 = minor.parse().ok()?;
    let is_of_kind = |kind: &str, letter: &str| {
        kind.strip_prefix(letter).is_some_and(|end| end.is_empty() || end.starts_with(".so"))
    };
    if is_of_kind(kind, "t") || is_of_kind(kind, "td") {
        return Some((format!("3.{minor}t"), "its build has no global lock"));
    }
    let is_interpreter = is_of_kind(kind, "") || is_of_kind(kind, "d");
    (is_interpreter && !KNOWN.contains(&number)).then(|| (format!("3.{minor}"), "of another version"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn interpreters_of_other_versions_are_named() {
        let of = |path: &str| unknown_functions(["/usr/lib/libc.so.6", path].into_iter());
        for known in [
            "/usr/bin/python3.11",
            "/usr/lib/libpython3.9.so.1.0",
            "python3.13d",
            "/opt/python3.14-config",
            "/opt/libpython3.so",
            "/opt/python3.x",
            "/lib/python3.14/site-packages/numpy.so",
        ] {
            assert_eq!(of(known), None, "{known}");
        }
        for (unknown, version) in [
            ("/usr/bin/python3.14", "(Python 3.14)"),
            ("/usr/lib/libpython3.8.so.1.0", "(Python 3.8)"),
            ("/usr/lib/libpython3.13t.so.1.0", "(Python 3.13t)"),
            ("python3.14td", "(Python 3.14t)"),
        ] {
            assert!(of(unknown).is_some_and(|note| note.contains(version)), "{unknown}");
        }
    }
}
