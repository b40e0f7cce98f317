//! The modules of a crate form layers: no two of them import each other, directly or through others.
//!
//! A module is a file. It depends on the modules that define the names in its `use` declarations and in its
//! paths that begin with `crate`, `self`, `super` or a module of its own. A `pub use` is an alias: it is not
//! a dependency of its module unless that names the item itself, and an importer of the alias depends on the
//! module behind it. Code for tests is omitted, and calls of methods are not followed.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

#[test]
fn modules_of_a_crate_do_not_import_each_other_in_cycles() {
    let mut wrong = String::new();
    for krate in crates() {
        let name = krate.file_name().unwrap().to_str().unwrap().to_owned();
        let graph = Graph::from_crate(&krate.join("src"));
        let cycles = graph.cycles();
        if !cycles.is_empty() {
            wrong += &format!("{name}: modules import each other in a cycle\n");
            cycles.iter().for_each(|cycle| wrong += &graph.describe(cycle));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

/// Crate, directory of it, and the only modules outside of the directory that it imports.
const LAYERS: &[(&str, &str, &[&str])] = &[
    // Usable by any recorder: it knows no OpenMP.
    ("record-ompt", "sampler", &["mode", "pause"]),
    // Events to an execution: it knows no rules of ovni's, as `machine` does.
    ("model", "semantic", &["payload"]),
    // Events to an execution; facts without an event are added above it.
    ("session", "playing", &["cache", "names::places", "recorders", "selection"]),
    ("session", "side", &["devices::work", "playing::threads", "recorders"]),
    ("session", "selection", &["devices"]),
    ("session", "names", &[]),
];

#[test]
fn modules_import_only_lower_layers() {
    for (krate, directory, lower) in LAYERS {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(krate).join("src");
        let graph = Graph::from_crate(&source);
        let is_inside = |path: &ModulePath| path.first().is_some_and(|first| first == directory);
        let inside: Vec<_> = graph.edges.iter().filter(|(from, _)| is_inside(from)).collect();
        assert!(!inside.is_empty(), "{krate} has no {directory}");
        for (from, to) in inside {
            for target in to.keys() {
                let is_allowed = is_inside(target) || lower.contains(&target.join("::").as_str());
                assert!(is_allowed, "{} of {krate} imports {}", from.join("::"), target.join("::"));
            }
        }
    }
}

fn crates() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let entries = fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path());
    let mut crates: Vec<_> = entries.filter(|path| path.join("Cargo.toml").exists()).collect();
    crates.sort();
    assert!(crates.len() >= 20, "only {} crates were found", crates.len());
    crates
}

/// Names from the root of the crate, which has none.
type ModulePath = Vec<String>;

/// Imports between the modules of one crate.
struct Graph {
    /// Per module, the modules that it depends on, each with the names that it imports.
    edges: BTreeMap<ModulePath, BTreeMap<ModulePath, BTreeSet<String>>>,
}

impl Graph {
    fn from_crate(source: &Path) -> Graph {
        let mut files = BTreeMap::new();
        read_modules(source, source, &mut files);
        Graph::from_modules(files)
    }

    /// From modules with their text.
    fn from_modules(files: BTreeMap<ModulePath, String>) -> Graph {
        let modules: BTreeMap<ModulePath, Module> = files
            .iter()
            .map(|(path, text)| {
                let children =
                    files.keys().filter(|other| other.len() == path.len() + 1 && other.starts_with(path));
                let children = children.map(|child| child.last().unwrap().clone()).collect();
                (path.clone(), Module::parse(path, &tokens(text), &children))
            })
            .collect();
        let mut edges = BTreeMap::<_, BTreeMap<_, BTreeSet<_>>>::new();
        for (path, module) in &modules {
            for import in &module.imports {
                let (target, name) = resolve(&modules, import, 0);
                if target != *path {
                    edges.entry(path.clone()).or_default().entry(target).or_default().insert(name);
                }
            }
        }
        Graph { edges }
    }

    /// The sets of modules of which each depends on each other one, with more than one module.
    fn cycles(&self) -> Vec<BTreeSet<ModulePath>> {
        let reached: BTreeMap<&ModulePath, BTreeSet<&ModulePath>> =
            self.edges.keys().map(|from| (from, self.reached_from(from))).collect();
        let mut cycles = BTreeSet::new();
        for (from, reachable) in &reached {
            let back =
                |to: &&&ModulePath| reached.get(**to).is_some_and(|reachable| reachable.contains(from));
            let cycle: BTreeSet<ModulePath> = reachable.iter().filter(back).map(|to| (*to).clone()).collect();
            if cycle.len() > 1 {
                cycles.insert(cycle);
            }
        }
        cycles.into_iter().collect()
    }

    fn reached_from<'a>(&'a self, from: &ModulePath) -> BTreeSet<&'a ModulePath> {
        let direct = |module: &ModulePath| self.edges.get(module).into_iter().flat_map(BTreeMap::keys);
        let mut open: Vec<&ModulePath> = direct(from).collect();
        let mut reached = BTreeSet::new();
        while let Some(module) = open.pop() {
            if reached.insert(module) {
                open.extend(direct(module));
            }
        }
        reached
    }

    /// The imports inside a cycle, one a line.
    fn describe(&self, cycle: &BTreeSet<ModulePath>) -> String {
        let shown = |path: &ModulePath| if path.is_empty() { "(root)".to_owned() } else { path.join("::") };
        let edges = cycle
            .iter()
            .flat_map(|from| self.edges.get(from).into_iter().flatten().map(move |to| (from, to)));
        let inside = edges.filter(|(_, (to, _))| cycle.contains(*to));
        inside
            .map(|(from, (to, names))| format!("    {} -> {}: {names:?}\n", shown(from), shown(to)))
            .collect()
    }
}

/// The module that defines the name of a path from the crate's root, and the name.
fn resolve(modules: &BTreeMap<ModulePath, Module>, path: &[String], depth: usize) -> (ModulePath, String) {
    let length = (0..=path.len()).rev().find(|length| modules.contains_key(&path[..*length])).unwrap_or(0);
    let (module, rest) = path.split_at(length);
    let found = (module.to_vec(), rest.join("::"));
    let (Some(name), true) = (rest.first(), depth < 8) else { return found };
    let known = &modules[module];
    if known.defined.contains(name) {
        return found;
    }
    if let Some((_, target)) = known.aliases.iter().find(|(alias, _)| alias == name) {
        let whole: Vec<String> = target.iter().chain(&rest[1..]).cloned().collect();
        return resolve(modules, &whole, depth + 1);
    }
    let defines =
        |module: &&ModulePath| modules.get(*module).is_some_and(|module| module.defined.contains(name));
    match known.globs.iter().find(defines) {
        Some(target) => (target.clone(), name.clone()),
        None => found,
    }
}

/// References to other modules in the text of a module.
#[derive(Default)]
struct Module {
    /// Paths from the crate's root that its code depends on.
    imports: BTreeSet<ModulePath>,
    /// Names that it publishes for items of other modules.
    aliases: Vec<(String, ModulePath)>,
    /// Modules of which it publishes all items.
    globs: Vec<ModulePath>,
    /// Items of its own.
    defined: BTreeSet<String>,
}

impl Module {
    fn parse(path: &ModulePath, tokens: &[String], children: &BTreeSet<String>) -> Module {
        let mut module = Module::default();
        let mut used = BTreeSet::new();
        // Names of modules that are inside this file, and the depth of braces at which each ends.
        let mut inner: Vec<(String, usize)> = Vec::new();
        let (mut at, mut depth, mut is_public) = (0, 0, false);
        while at < tokens.len() {
            let token = tokens[at].as_str();
            let next = tokens.get(at + 1).map_or("", String::as_str);
            let here =
                || path.iter().cloned().chain(inner.iter().map(|(name, _)| name.clone())).collect::<Vec<_>>();
            match token {
                "#" => {
                    let end = after_group(tokens, at + 1);
                    at = if is_for_tests(&tokens[at..end]) { after_item(tokens, end) } else { end };
                    continue;
                }
                "pub" => {
                    at = if next == "(" { after_group(tokens, at + 1) } else { at + 1 };
                    is_public = true;
                    continue;
                }
                // Not the `use<…>` of a type.
                "use" if next != "<" => {
                    let end = tokens[at..]
                        .iter()
                        .position(|token| token == ";")
                        .map_or(tokens.len(), |more| at + more);
                    let mut trees = Vec::new();
                    flatten(&tokens[at + 1..end], &[], &mut trees);
                    for (names, alias) in trees {
                        let Some(target) = absolute(&names, &here(), children) else { continue };
                        match (is_public, target.last().map(String::as_str)) {
                            (true, Some("*")) => module.globs.push(target[..target.len() - 1].to_vec()),
                            (false, Some("*")) => {
                                _ = module.imports.insert(target[..target.len() - 1].to_vec())
                            }
                            (true, _) => module.aliases.push((alias, target)),
                            (false, _) => _ = module.imports.insert(target),
                        }
                    }
                    at = end;
                }
                "mod" if tokens.get(at + 2).is_some_and(|token| token == "{") => {
                    inner.push((next.to_owned(), depth));
                    at += 1;
                }
                "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static"
                | "macro_rules" => {
                    let name =
                        if next == "!" || next == "mut" { tokens.get(at + 2) } else { tokens.get(at + 1) };
                    module.defined.extend(name.cloned());
                }
                "{" => depth += 1,
                "}" => {
                    depth = depth.saturating_sub(1);
                    inner.pop_if(|(_, end)| *end == depth);
                }
                _ if next == "::" && (at == 0 || tokens[at - 1] != "::") => {
                    let names: Vec<String> = tokens[at..]
                        .chunks(2)
                        .scan(true, |goes_on, pair| {
                            let shown = goes_on.then(|| pair[0].clone());
                            *goes_on &= pair.get(1).is_some_and(|token| token == "::");
                            shown
                        })
                        .filter(|name| is_identifier(name))
                        .collect();
                    used.insert(token.to_owned());
                    module.imports.extend(absolute(&names, &here(), children));
                    at += 2 * names.len().saturating_sub(1);
                }
                _ => _ = used.insert(token.to_owned()),
            }
            is_public = false;
            at += 1;
        }
        // Names that it both publishes and uses itself are imported, too.
        let named = module.aliases.iter().filter(|(alias, _)| used.contains(alias));
        module.imports.extend(named.map(|(_, target)| target.clone()).collect::<Vec<_>>());
        module
    }
}

/// A path from the crate's root, if it leads into the crate by its first name.
fn absolute(names: &[String], here: &[String], children: &BTreeSet<String>) -> Option<ModulePath> {
    let (first, rest) = names.split_first()?;
    let base = match first.as_str() {
        "crate" => Vec::new(),
        "self" => here.to_vec(),
        "super" => {
            return absolute(
                &[&["self".to_owned()], rest].concat(),
                &here[..here.len().saturating_sub(1)],
                children,
            );
        }
        child if children.contains(child) => [here, &[child.to_owned()]].concat(),
        _ => return None,
    };
    let supers = rest.iter().take_while(|name| *name == "super").count();
    let base = &base[..base.len().saturating_sub(supers)];
    Some([base, &rest[supers..]].concat())
}

/// The paths of a tree of imports, each with the name that it gets.
fn flatten(tokens: &[String], before: &[String], paths: &mut Vec<(ModulePath, String)>) {
    let mut path = before.to_vec();
    let mut alias = None;
    let mut at = 0;
    let mut push = |path: &mut ModulePath, alias: &mut Option<String>| {
        if path.len() > before.len() {
            let name = alias.take().or(path.last().cloned()).unwrap_or_default();
            // `self` inside of braces is the module before them.
            if before.len() + 1 == path.len()
                && !before.is_empty()
                && path.last().is_some_and(|name| name == "self")
            {
                path.pop();
            }
            paths.push((std::mem::replace(path, before.to_vec()), name));
        }
    };
    let mut groups = Vec::new();
    while at < tokens.len() {
        match tokens[at].as_str() {
            "," => push(&mut path, &mut alias),
            "::" => {}
            "as" => {
                alias = tokens.get(at + 1).cloned();
                at += 1;
            }
            "{" => {
                let end = after_group(tokens, at);
                groups.push((at + 1..end - 1, std::mem::replace(&mut path, before.to_vec())));
                at = end - 1;
            }
            name => path.push(name.to_owned()),
        }
        at += 1;
    }
    push(&mut path, &mut alias);
    for (range, before) in groups {
        flatten(&tokens[range], &before, paths);
    }
}

fn is_for_tests(attribute: &[String]) -> bool {
    let has = |wanted: &str| attribute.iter().any(|token| token == wanted);
    has("cfg") && has("test") && !has("not")
}

/// The index behind the item that begins here, with its attributes.
fn after_item(tokens: &[String], mut at: usize) -> usize {
    while at < tokens.len() {
        match tokens[at].as_str() {
            ";" => return at + 1,
            "{" => return after_group(tokens, at),
            "(" | "[" => at = after_group(tokens, at),
            _ => at += 1,
        }
    }
    at
}

/// The index behind the brackets that begin here, or behind the `!` and these.
fn after_group(tokens: &[String], at: usize) -> usize {
    let mut depth = 0;
    for (index, token) in tokens.iter().enumerate().skip(at) {
        match token.as_str() {
            "(" | "[" | "{" => depth += 1,
            ")" | "]" | "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 && token != "!" {
            return index + 1;
        }
    }
    tokens.len()
}

fn is_identifier(token: &str) -> bool {
    token.starts_with(|first: char| first == '_' || first.is_alphabetic())
}

/// Identifiers, `::` and single characters, without comments, strings and characters in quotes.
fn tokens(text: &str) -> Vec<String> {
    let mut tokens = Vec::new();
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let taken = if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |end| end + 2)
        } else if let Some(taken) = raw_string(rest) {
            taken
        } else if first == '"' {
            quoted(rest, '"')
        } else if first == '\'' && is_character(rest) {
            quoted(rest, '\'')
        } else if first == '_' || first.is_alphanumeric() {
            let end = rest.find(|next: char| next != '_' && !next.is_alphanumeric()).unwrap_or(rest.len());
            tokens.push(rest[..end].to_owned());
            end
        } else if rest.starts_with("::") {
            tokens.push("::".to_owned());
            2
        } else {
            if !first.is_whitespace() {
                tokens.push(first.to_string());
            }
            first.len_utf8()
        };
        rest = &rest[taken..];
    }
    tokens
}

/// The length of a string or character in quotes.
fn quoted(text: &str, quote: char) -> usize {
    let mut is_escaped = false;
    for (at, next) in text.char_indices().skip(1) {
        match next {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            _ if next == quote => return at + next.len_utf8(),
            _ => {}
        }
    }
    text.len()
}

/// The length of a raw string.
fn raw_string(text: &str) -> Option<usize> {
    let rest = text.strip_prefix("br").or(text.strip_prefix("r"))?;
    let hashes = rest.len() - rest.trim_start_matches('#').len();
    rest[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    let start = text.len() - rest.len() + hashes + 1;
    text[start..].find(&end).map(|at| start + at + end.len())
}

/// Whether a quote begins a character, and not a lifetime.
fn is_character(text: &str) -> bool {
    let mut chars = text.chars().skip(1);
    chars.next() == Some('\\') || chars.next() == Some('\'')
}

fn read_modules(source: &Path, directory: &Path, files: &mut BTreeMap<ModulePath, String>) {
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            read_modules(source, &path, files);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let relative = path.strip_prefix(source).unwrap().with_extension("");
            let mut names: ModulePath =
                relative.iter().map(|name| name.to_str().unwrap().to_owned()).collect();
            match names.last().map(String::as_str) {
                Some("tests") => continue,
                Some("mod" | "lib" | "main") => _ = names.pop(),
                _ => {}
            }
            files.entry(names).or_default().push_str(&fs::read_to_string(&path).unwrap());
        }
    }
}

fn graph(modules: &[(&str, &str)]) -> Graph {
    let path = |name: &str| name.split("::").filter(|name| !name.is_empty()).map(str::to_owned).collect();
    Graph::from_modules(modules.iter().map(|(name, text)| (path(name), (*text).to_owned())).collect())
}

#[test]
fn imports_both_ways_are_a_cycle() {
    let both = graph(&[
        ("", "mod a; mod b;"),
        ("a", "use crate::b::B; struct A;"),
        ("b", "fn b(_: super::a::A) {} struct B;"),
    ]);
    assert_eq!(both.cycles(), [BTreeSet::from([vec!["a".to_owned()], vec!["b".to_owned()]])]);
}

#[test]
fn comments_strings_and_tests_import_nothing() {
    let text = "// use crate::a;\nconst T: &str = \"crate::a\"; #[cfg(test)] mod tests { use crate::a::A; }";
    assert!(graph(&[("", ""), ("a", "use crate::b::T; struct A;"), ("b", text)]).cycles().is_empty());
}

#[test]
fn published_names_are_aliases_of_the_module_behind() {
    let layered = [
        ("", "pub use a::A;"),
        ("a", "use crate::b::B; pub struct A;"),
        ("b", "pub struct B;"),
        ("c", "use crate::A;"),
    ];
    let found = graph(&layered);
    assert!(found.cycles().is_empty());
    assert!(found.edges[&vec!["c".to_owned()]].contains_key(&vec!["a".to_owned()]));
    let used = [("", "pub use a::A; fn f(_: A) {} pub struct R;"), ("a", "use crate::R; pub struct A;")];
    assert_eq!(graph(&used).cycles().len(), 1);
}
