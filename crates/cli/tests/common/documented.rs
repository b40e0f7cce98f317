//! Commands in the documentation: fenced blocks `console`, with a command after `$ ` and its output below.
//!
//! Words after `console`, separated by commas, are conditions:
//!
//! | word | meaning |
//! | --- | --- |
//! | `needs=PROGRAM` | runs only if PROGRAM is on the path |
//! | `norun=REASON` | is parsed and never run |
//! | `exit=CODE` | the last command of the block ends with CODE instead of 0 |
//! | `live=REASON` | recordings of the block are not stored, so later output is not compared |

#![allow(dead_code)] // the parse test of the command uses a part of this

use std::fs;
use std::path::{Path, PathBuf};

/// One command with the output that the page shows.
pub struct Command {
    /// The text after `$ `, continuation lines joined by line ends.
    pub text: String,
    /// Index of the line that begins the output.
    pub output_begin: usize,
    /// Index of the line after the output.
    pub output_end: usize,
}

/// One fenced block.
pub struct Block {
    /// Index of the line that opens it.
    pub line: usize,
    /// Conditions: the words after `console`.
    pub conditions: Vec<String>,
    /// Its commands, in order.
    pub commands: Vec<Command>,
}

impl Block {
    /// The value of the condition `NAME=value`.
    pub fn condition(&self, name: &str) -> Option<&str> {
        self.conditions.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }
}

/// Every page of the documentation, as paths.
pub fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let folders = ["", "docs", "docs/howto", "docs/runtimes", "examples"];
    let mut pages: Vec<PathBuf> = folders
        .iter()
        .flat_map(|folder| fs::read_dir(root.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "md"))
        .collect();
    pages.sort();
    pages
}

/// Returns the blocks `console` of a page.
pub fn blocks(lines: &[&str]) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut at = 0;
    while at < lines.len() {
        let Some(info) = lines[at].strip_prefix("```") else {
            at += 1;
            continue;
        };
        let begin = at;
        let end = (begin + 1..lines.len()).find(|&line| lines[line] == "```").expect("a fence is closed");
        let mut words = info.split(',').map(str::trim);
        if words.next() == Some("console") {
            let conditions = words.map(str::to_owned).collect();
            blocks.push(Block { line: begin, conditions, commands: commands(lines, begin + 1, end) });
        }
        at = end + 1;
    }
    blocks
}

fn commands(lines: &[&str], begin: usize, end: usize) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    let mut at = begin;
    while at < end {
        if let Some(text) = lines[at].strip_prefix("$ ") {
            let mut text = text.to_owned();
            while text.ends_with('\\') && at + 1 < end {
                at += 1;
                text = format!("{text}\n{}", lines[at]);
            }
            commands.push(Command { text, output_begin: at + 1, output_end: at + 1 });
        } else if let Some(command) = commands.last_mut() {
            command.output_end = at + 1;
        }
        at += 1;
    }
    commands
}

/// Numbered lines of a page with the commands that it mentions and does not run: between backquotes, and lines of blocks other than
/// `console`. Brackets, ellipses and explanations after two blanks are left out.
pub fn mentioned(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut block: Option<bool> = None;
    for (number, line) in text.lines().enumerate() {
        if let Some(info) = line.strip_prefix("```") {
            block = if block.is_some() { None } else { Some(info.starts_with("console")) };
            continue;
        }
        let commands: Vec<&str> = match block {
            Some(true) => Vec::new(),
            Some(false) => vec![line],
            None => line.split('`').skip(1).step_by(2).collect(),
        };
        // `cargo test -p taskscope` is a command of another program.
        let commands = commands
            .into_iter()
            .filter(|command| command.contains("taskscope ") && !command.contains("-p taskscope "));
        let plain = commands.map(|command| {
            let command = command.trim_start().split("  ").next().unwrap_or_default();
            command.replace(['[', ']', '…'], "").replace("SUBCOMMAND", "").trim_end().to_owned()
        });
        found.extend(plain.map(|command| (number + 1, command)));
    }
    found
}

/// Splits a shell command into simple commands of words. Quotes are removed, redirections left out.
pub fn simple_commands(text: &str) -> Vec<Vec<String>> {
    let mut all = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut skip_next = false;
    let mut letters = text.chars().peekable();
    let finish = |word: &mut Option<String>, all: &mut Vec<Vec<String>>, skip: &mut bool| {
        if let Some(word) = word.take()
            && !std::mem::take(skip)
        {
            all.last_mut().unwrap().push(word);
        }
    };
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), _) if letter == open => quote = None,
            (Some(_), _) => word.get_or_insert_default().push(letter),
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None, '\\') => {
                if let Some(next) = letters.next()
                    && next != '\n'
                {
                    word.get_or_insert_default().push(next);
                }
            }
            (None, '#') if word.is_none() => break,
            (None, '|' | ';' | '&') => {
                finish(&mut word, &mut all, &mut skip_next);
                all.push(Vec::new());
            }
            (None, '>' | '<') => {
                // `2>` is a redirection of descriptor 2.
                if word.as_deref().is_some_and(|word| word.chars().all(|c| c.is_ascii_digit())) {
                    word = None;
                }
                finish(&mut word, &mut all, &mut skip_next);
                while letters.peek().is_some_and(|next| matches!(next, '>' | '&')) {
                    letters.next();
                }
                skip_next = true;
            }
            (None, _) if letter.is_whitespace() => finish(&mut word, &mut all, &mut skip_next),
            (None, _) => word.get_or_insert_default().push(letter),
        }
    }
    finish(&mut word, &mut all, &mut skip_next);
    all.retain(|words| !words.is_empty());
    all
}

/// Argument lists of `taskscope` in a shell command, also behind launchers such as `mpirun -n 4`.
pub fn taskscope_arguments(text: &str) -> Vec<Vec<String>> {
    let of = |words: Vec<String>| {
        let at = words.iter().position(|word| word == "taskscope")?;
        (at + 1 < words.len()).then(|| words[at..].to_vec())
    };
    simple_commands(text).into_iter().filter_map(of).collect()
}
