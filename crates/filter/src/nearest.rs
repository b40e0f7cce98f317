//! Which name was meant.

/// The candidate with the fewest changes of characters, if at most every second one changes. A change between lower and
/// upper case is half a change.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let word: Vec<char> = word.chars().collect();
    let rated = candidates.into_iter().map(|candidate| (half_changes(&word, candidate), candidate));
    let (changes, candidate) = rated.min_by_key(|(changes, _)| *changes)?;
    (changes <= word.len()).then_some(candidate)
}

/// Levenshtein's distance, doubled.
fn half_changes(word: &[char], other: &str) -> usize {
    let mut row: Vec<usize> = (0..=word.len()).map(|length| 2 * length).collect();
    for (line, there) in other.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = 2 * (line + 1);
        for (column, here) in word.iter().enumerate() {
            let change = match (*here == there, here.eq_ignore_ascii_case(&there)) {
                (true, _) => 0,
                (false, true) => 1,
                (false, false) => 2,
            };
            let changed = (diagonal + change).min(row[column] + 2).min(row[column + 1] + 2);
            diagonal = std::mem::replace(&mut row[column + 1], changed);
        }
    }
    row[word.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_name_is_the_one_with_fewest_changes() {
        let names = ["TASK_EXECUTE", "TASK_END", "VTx", "VTe"];
        for (word, expected) in [
            ("task_execute", Some("TASK_EXECUTE")),
            ("TASK_EXCUTE", Some("TASK_EXECUTE")),
            ("TASK_ENDS", Some("TASK_END")),
            ("VTX", Some("VTx")),
            ("VTE", Some("VTe")),
            ("barrier", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, names), expected, "{word}");
        }
    }
}
