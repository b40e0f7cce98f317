//! Pairs of constructs of two versions of a program, as their lines may have moved.
//!
//! Names of constructs have their lines: `main [task at sim.c:21]`. One more line above them, and every construct of a comparison would be
//! gone, and new.
//!
//! ```text
//!   names of the sections of both sides ─▶ lines by function, kind and file
//!       before  main [loop at sim.c]: 25 40          as many lines on both sides, and not the same ones:
//!       after   main [loop at sim.c]: 26 47          paired in their order, 25 ─▶ 26, 40 ─▶ 47
//! ```
//! A construct that ran in one version only changes the number of lines of its function. Then nothing is paired, as no order says which one
//! is new: names stay what they are.
//!
//! Each of many runs is paired with the nearest later ones that have the function's constructs, so all have the lines of the newest.

use crate::format::counted;
use crate::run_numbers::RunNumbers;
use std::collections::{BTreeMap, BTreeSet};

/// Constructs before, as names have them (`[task at sim.c:21]`), and the same ones after.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct MovedLines(BTreeMap<String, String>);

impl MovedLines {
    /// Pairs the constructs of two sides.
    pub(crate) fn between(before: &[RunNumbers], after: &[RunNumbers]) -> MovedLines {
        let names = |runs: &[RunNumbers]| {
            let names: BTreeSet<String> =
                runs.iter().flat_map(|run| run.constructs.iter().cloned()).collect();
            lines_of(&names)
        };
        MovedLines::of(&names(before), &names(after))
    }

    fn of(before: &Lines, after: &Lines) -> MovedLines {
        let mut moved: BTreeMap<String, String> = BTreeMap::new();
        let mut unsure = BTreeSet::new();
        for (construct, lines) in before {
            let Some(others) = after.get(construct).filter(|others| others.len() == lines.len()) else {
                continue;
            };
            for (line, other) in lines.iter().zip(others) {
                let (from, to) = (construct.at(*line), construct.at(*other));
                // An inlined construct is in several functions.
                if moved.insert(from.clone(), to.clone()).is_some_and(|known| known != to) {
                    unsure.insert(from);
                }
            }
        }
        moved.retain(|from, to| from != to && !unsure.contains(from));
        MovedLines(moved)
    }

    /// A note on the constructs with another line; `None` without any. `which` are the lines that name them: `lines after`.
    pub(crate) fn note(&self, which: &str) -> Option<String> {
        let constructs = counted(self.0.len() as u64, "construct");
        (!self.0.is_empty()).then(|| {
            format!("{constructs} with other lines: those of a function are paired in their order, and named by their {which}")
        })
    }

    /// The numbers of a run before, under the names after.
    pub(crate) fn renamed(&self, run: &RunNumbers) -> RunNumbers {
        let name = |name: &String| self.rename(name);
        let mut renamed = run.clone();
        renamed.numbers =
            run.numbers.iter().map(|((group, key), value)| ((*group, name(key)), *value)).collect();
        renamed.labels = run.labels.iter().map(|(key, label)| (name(key), name(label))).collect();
        renamed.blocked = run.blocked.iter().map(name).collect();
        renamed
    }

    /// A name with the lines after.
    pub(crate) fn rename(&self, name: &str) -> String {
        let mut text = String::with_capacity(name.len());
        let mut rest = name;
        while let Some(at) = rest.find('[') {
            text.push_str(&rest[..at]);
            rest = &rest[at..];
            let end = rest.find(']').map_or(rest.len(), |end| end + 1);
            let known = self.0.get(&rest[..end]);
            // Brackets may belong to a name: `operator[]`.
            let taken = if known.is_some() { end } else { 1 };
            text.push_str(known.map_or(&rest[..taken], String::as_str));
            rest = &rest[taken..];
        }
        text + rest
    }
}

/// Runs in their order under the lines of the newest, and the constructs with other lines.
pub(crate) fn under_newest_lines(runs: &[RunNumbers]) -> (Vec<RunNumbers>, MovedLines) {
    let mut newest = Lines::new();
    let mut all = MovedLines::default();
    let mut renamed: Vec<RunNumbers> = Vec::with_capacity(runs.len());
    for run in runs.iter().rev() {
        let own = lines_of(&run.constructs);
        let moved = MovedLines::of(&own, &newest);
        renamed.push(moved.renamed(run));
        all.0.extend(moved.0);
        for (construct, lines) in own {
            // Others are paired with the newest ones, too.
            if newest.get(&construct).is_none_or(|known| known.len() != lines.len()) {
                newest.insert(construct, lines);
            }
        }
    }
    renamed.reverse();
    (renamed, all)
}

/// A construct without its line.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Construct {
    function: String,
    /// `task at sim.c`.
    kind_and_file: String,
}

impl Construct {
    fn at(&self, line: u32) -> String {
        format!("[{}:{line}]", self.kind_and_file)
    }
}

/// Lines of constructs.
type Lines = BTreeMap<Construct, BTreeSet<u32>>;

fn lines_of(names: &BTreeSet<String>) -> Lines {
    let mut lines = Lines::new();
    for name in names {
        if let Some((construct, line)) = construct_of(name) {
            lines.entry(construct).or_default().insert(line);
        }
    }
    lines
}

/// The construct of a name that ends with one.
fn construct_of(name: &str) -> Option<(Construct, u32)> {
    let (function, place) = name.strip_suffix(']')?.rsplit_once('[')?;
    let (kind_and_file, line) = place.rsplit_once(':')?;
    let construct =
        Construct { function: function.trim_end().to_owned(), kind_and_file: kind_and_file.to_owned() };
    Some((construct, line.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run_numbers::NumberGroup;

    fn moved(before: &[&str], after: &[&str]) -> MovedLines {
        let lines = |names: &[&str]| lines_of(&names.iter().map(|name| (*name).to_owned()).collect());
        MovedLines::of(&lines(before), &lines(after))
    }

    #[test]
    fn constructs_of_one_function_and_kind_are_paired_in_order() {
        let before =
            ["main [loop at a.c:25]", "main [loop at a.c:29]", "main [task at a.c:21]", "f [loop at a.c:9]"];
        let after =
            ["main [loop at a.c:29]", "main [loop at a.c:33]", "main [task at a.c:25]", "f [loop at a.c:9]"];
        let moved = moved(&before, &after);
        assert_eq!(moved.0.len(), 3);
        // Line 29 of the one is not line 29 of the other.
        let name =
            "wait.sync: uneven work in main [loop at a.c:25], main [loop at a.c:29], f [loop at a.c:9]";
        let renamed =
            "wait.sync: uneven work in main [loop at a.c:29], main [loop at a.c:33], f [loop at a.c:9]";
        assert_eq!(moved.rename(name), renamed);
        assert_eq!(
            moved.rename("T::operator[](int) [task at a.c:21] in ["),
            "T::operator[](int) [task at a.c:25] in ["
        );
    }

    #[test]
    fn a_new_construct_leaves_its_function_as_it_is() {
        let before = ["main [loop at a.c:25]", "main [task at a.c:21]"];
        let after = ["main [loop at a.c:26]", "main [loop at a.c:30]", "main [task at a.c:22]"];
        let moved = moved(&before, &after);
        assert_eq!(moved.rename("main [loop at a.c:25]"), "main [loop at a.c:25]");
        assert_eq!(moved.rename("main [task at a.c:21]"), "main [task at a.c:22]");
    }

    #[test]
    fn many_runs_have_the_lines_of_the_newest() {
        let run = |names: &[&str]| {
            let mut run = RunNumbers::from_totals(1000.0);
            run.constructs = names.iter().map(|name| (*name).to_owned()).collect();
            for name in names {
                run.numbers.insert((NumberGroup::TaskType, (*name).to_owned()), 1.0);
            }
            run
        };
        let runs = [
            run(&["f [task at a.c:3]"]),
            run(&["f [task at a.c:5]"]),
            // Did not come to the task.
            run(&[]),
            run(&["f [task at a.c:5]", "g [loop at a.c:50]"]),
            run(&["f [task at a.c:7]", "g [loop at a.c:52]", "g [loop at a.c:60]"]),
        ];
        let (renamed, moved) = under_newest_lines(&runs);
        let names = |run: &RunNumbers| -> Vec<String> {
            let types = run.numbers.keys().filter(|(group, _)| *group == NumberGroup::TaskType);
            types.map(|(_, name)| name.clone()).collect()
        };
        let names: Vec<Vec<String>> = renamed.iter().map(names).collect();
        let f = "f [task at a.c:7]";
        assert_eq!(
            names,
            [
                vec![f],
                vec![f],
                vec![],
                vec![f, "g [loop at a.c:50]"],
                vec![f, "g [loop at a.c:52]", "g [loop at a.c:60]"]
            ]
        );
        assert!(moved.note("lines in the newest run").unwrap().starts_with("2 constructs with other lines"));
    }

    #[test]
    fn a_construct_that_goes_to_two_lines_is_not_paired() {
        let before = ["f [loop at a.h:5]", "g [loop at a.h:5]"];
        let after = ["f [loop at a.h:6]", "g [loop at a.h:7]"];
        assert_eq!(moved(&before, &after), MovedLines::default());
    }
}
