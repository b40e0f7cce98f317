//! Numbers as a person reads them: three significant figures, thin groups, one unit.

use std::fmt;
use std::path::Path;
use taskscope_event::{Count, Counted, Noun};
use taskscope_execution::{Process, Thread};
use taskscope_terminal::acts;
pub use taskscope_terminal::harmless;
use unicode_segmentation::UnicodeSegmentation;
use unicode_width::UnicodeWidthStr;

/// A time: `1.23 s`, `12.3 ms`, `456 µs`, `789 ns`; three significant figures.
pub fn time(ns: u64) -> String {
    let (value, unit) = match ns {
        0..1_000 => return format!("{ns} ns"),
        // Limits at which rounding to three figures would give 1000 of a unit.
        1_000..999_500 => (ns as f64 / 1e3, "µs"),
        999_500..999_500_000 => (ns as f64 / 1e6, "ms"),
        _ => (ns as f64 / 1e9, "s"),
    };
    format!("{} {unit}", three_figures(value))
}

/// The one unit of a column of times.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unit {
    /// Microseconds.
    Micros,
    /// Milliseconds.
    Millis,
    /// Seconds.
    Seconds,
}

impl Unit {
    /// The unit for a column whose largest value is `ns`.
    pub fn for_total(ns: u64) -> Unit {
        match ns {
            0..1_000_000 => Unit::Micros,
            1_000_000..1_000_000_000 => Unit::Millis,
            _ => Unit::Seconds,
        }
    }

    /// `worker-seconds` and the like.
    pub const fn worker_label(self) -> &'static str {
        match self {
            Unit::Micros => "worker-µs",
            Unit::Millis => "worker-ms",
            Unit::Seconds => "worker-seconds",
        }
    }

    /// `s`, `ms`, `µs`.
    pub const fn short(self) -> &'static str {
        match self {
            Unit::Micros => "µs",
            Unit::Millis => "ms",
            Unit::Seconds => "s",
        }
    }

    /// The value of a time in this unit: three significant figures from 1 on, three decimals below.
    pub fn show(self, ns: u64) -> String {
        let value = match self {
            Unit::Micros => ns as f64 / 1e3,
            Unit::Millis => ns as f64 / 1e6,
            Unit::Seconds => ns as f64 / 1e9,
        };
        match value {
            0.0 => "0".to_string(),
            value if value < 0.0005 => "<0.001".to_string(),
            value if value < 9.9995 => format!("{value:.3}"),
            value if value < 99.995 => format!("{value:.2}"),
            value => format!("{value:.1}"),
        }
    }
}

fn three_figures(value: f64) -> String {
    if value < 9.995 {
        format!("{value:.2}")
    } else if value < 99.95 {
        format!("{value:.1}")
    } else {
        format!("{value:.0}")
    }
}

/// A count in groups of three: `12 345 678`.
pub fn count(number: u64) -> String {
    Count(number).to_string()
}

/// A number of bytes with three digits: `512 B`, `1.25 MiB`.
pub fn byte_count(bytes: u64) -> String {
    let (unit, size) = match bytes {
        0..=0x3ff => return format!("{bytes} B"),
        0x400..=0xf_ffff => ("KiB", bytes as f64 / 1024.0),
        0x10_0000..=0x3fff_ffff => ("MiB", bytes as f64 / 1_048_576.0),
        _ => ("GiB", bytes as f64 / 1_073_741_824.0),
    };
    let decimals = if size < 9.995 { 2 } else { usize::from(size < 99.95) };
    format!("{size:.decimals$} {unit}")
}

/// A count with its noun: `1 thread`, `12 threads`.
pub fn counted(number: u64, noun: &str) -> String {
    Counted(number, noun).to_string()
}

/// A large count short: `21.4 M`; below 100 000 in full.
pub fn short_count(number: u64) -> String {
    match number {
        0..100_000 => count(number),
        100_000..999_500 => format!("{} k", three_figures(number as f64 / 1e3)),
        999_500..999_500_000 => format!("{} M", three_figures(number as f64 / 1e6)),
        _ => format!("{} G", three_figures(number as f64 / 1e9)),
    }
}

/// A large count, short, with its noun: `21.4 M events`.
pub fn short_counted(number: u64, noun: &str) -> String {
    format!("{} {}", short_count(number), Noun(number, noun))
}

/// A part of a whole in percent: `74.3 %`.
pub fn percent(part: u64, whole: u64) -> String {
    if whole == 0 { "–".to_string() } else { format!("{:.1} %", part as f64 * 100.0 / whole as f64) }
}

/// A difference with its sign and so many decimals: `+1.5`, `−1.5`. The minus sign is U+2212 in all texts and pages.
pub fn signed(value: f64, decimals: usize) -> String {
    let size = format!("{:.decimals$}", value.abs());
    // A difference that is rounded to zero has not fallen.
    let is_zero = size.bytes().all(|byte| matches!(byte, b'0' | b'.'));
    let sign = if value < 0.0 && !is_zero { '−' } else { '+' };
    format!("{sign}{size}")
}

/// A relative change in percent with its sign: `−18.6 %`.
pub fn growth(share: f64) -> String {
    format!("{} %", signed(share * 100.0, 1))
}

/// Thousandths of a CPU with their noun: `1 CPU`, `1.5 CPUs`.
pub fn cpu_limit(millicpus: u64) -> String {
    let noun = if millicpus == 1000 { "CPU" } else { "CPUs" };
    format!("{} {noun}", cpu_count(millicpus))
}

/// Thousandths of a CPU as CPUs, such as `1.5`.
pub fn cpu_count(millicpus: u64) -> String {
    let text = format!("{}.{:03}", millicpus / 1000, millicpus % 1000);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// A bar of eighths, `width` characters for 1.
pub fn bar(share: f64, width: usize) -> String {
    const EIGHTHS: [char; 8] = [' ', '▏', '▎', '▍', '▌', '▋', '▊', '▉'];
    let eighths = (share.clamp(0.0, 1.0) * (width * 8) as f64).round() as usize;
    let mut text = "█".repeat(eighths / 8);
    if !eighths.is_multiple_of(8) {
        text.push(EIGHTHS[eighths % 8]);
    }
    text
}

/// [`harmless`] text of a path.
pub fn path(path: &Path) -> String {
    harmless(&path.display().to_string()).into_owned()
}

/// `12/34 solver`: a thread by its process and its id, with its name if it has one.
pub fn thread_words(process: &Process, thread: &Thread) -> String {
    match harmless(&thread.name) {
        none if none.is_empty() => format!("{}/{}", process.pid, thread.tid),
        name => format!("{}/{} {name}", process.pid, thread.tid),
    }
}

/// Columns of a terminal that a text takes: two for `日`, none for a combining mark.
pub fn columns(text: &str) -> usize {
    if text.is_ascii() { text.len() } else { text.width() }
}

/// A text that format strings pad to a number of [`columns`]: `{:<20}`, `{:>20}`.
#[derive(Clone, Copy, Debug)]
pub struct Cell<T: AsRef<str>>(pub T);

impl<T: AsRef<str>> fmt::Display for Cell<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.0.as_ref();
        let missing = f.width().unwrap_or(0).saturating_sub(columns(text));
        let left = match f.align() {
            Some(fmt::Alignment::Right) => missing,
            Some(fmt::Alignment::Center) => missing / 2,
            Some(fmt::Alignment::Left) | None => 0,
        };
        write!(f, "{:left$}{text}{:right$}", "", "", right = missing - left)
    }
}

/// [`harmless`] `text` in at most `width` [`columns`]; a longer one is cut in the middle, as names differ at both ends.
pub fn fit(text: &str, width: usize) -> String {
    let text = harmless(text);
    if columns(&text) <= width || width < 3 {
        return text.to_string();
    }
    let (head, tail) = ((width - 1).div_ceil(2), (width - 1) / 2);
    let start = &text[..bytes_of(text.graphemes(true), head)];
    let end = &text[text.len() - bytes_of(text.graphemes(true).rev(), tail)..];
    format!("{start}…{end}")
}

/// [`harmless`] `text` in at most `width` [`columns`]; a longer one is cut at its start.
pub fn fit_end(text: &str, width: usize) -> String {
    let text = harmless(text);
    if columns(&text) <= width {
        return text.to_string();
    }
    let end = bytes_of(text.graphemes(true).rev(), width.saturating_sub(1));
    format!("…{}", &text[text.len() - end..])
}

/// Bytes of the characters, as users see them, that fit into so many columns.
fn bytes_of<'t>(characters: impl Iterator<Item = &'t str>, width: usize) -> usize {
    let mut room = width;
    let fitting = characters.take_while(|character| {
        let left = room.checked_sub(columns(character));
        room = left.unwrap_or(0);
        left.is_some()
    });
    fitting.map(str::len).sum()
}

/// A line with ANSI styles, broken at spaces into lines of at most `width` [`columns`]; all but the first are
/// indented further than it. A longer word gets its own line.
pub fn broken(line: &str, width: usize) -> Vec<String> {
    if visible(line) <= width {
        return vec![line.to_string()];
    }
    let indent = " ".repeat((line.len() - line.trim_start_matches(' ').len() + 4).min(width / 2));
    let mut lines = vec![String::new()];
    for (number, word) in words(line).enumerate() {
        let Some(last) = lines.last_mut() else { break };
        let is_blank = last.trim_start().is_empty();
        if !is_blank && visible(last) + 1 + visible(word) > width {
            last.truncate(last.trim_end().len());
            lines.push(format!("{indent}{word}"));
        } else {
            if number > 0 && !(is_blank && last.len() >= indent.len()) {
                last.push(' ');
            }
            last.push_str(word);
        }
    }
    lines
}

/// A text with ANSI styles in lines of at most `width` [`columns`], [`broken`] where they are longer. Lines with a command
/// to copy stay whole.
pub fn narrowed(text: &str, width: usize) -> String {
    let mut narrow = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let (line, end) = line.strip_suffix('\n').map_or((line, ""), |line| (line, "\n"));
        if line.len() <= width || visible(line) <= width || line.contains("taskscope ") {
            narrow.push_str(line);
        } else {
            narrow.push_str(&broken(line, width).join("\n"));
        }
        narrow.push_str(end);
    }
    narrow
}

/// [`columns`] of a text with ANSI styles, which have none.
pub(crate) fn visible(text: &str) -> usize {
    let mut parts = text.split('\u{1b}');
    let first = parts.next().map_or(0, columns);
    first + parts.map(|part| part.split_once('m').map_or(0, |(_, rest)| columns(rest))).sum::<usize>()
}

/// The words of a text. A number and its unit are one word.
fn words(text: &str) -> impl Iterator<Item = &str> {
    const UNITS: [&str; 5] = ["%", "ns", "µs", "ms", "s"];
    let mut rest = Some(text);
    std::iter::from_fn(move || {
        let text = rest?;
        let is_break = |at: &usize| {
            let next = text[at + 1..].split(' ').next().unwrap_or_default();
            let is_unit = UNITS.contains(&next.trim_end_matches(['.', ',', ';', ':', ')']));
            !(is_unit && text[..*at].ends_with(|c: char| c.is_ascii_digit()))
        };
        let at = text.match_indices(' ').map(|(at, _)| at).find(is_break);
        rest = at.map(|at| &text[at + 1..]);
        Some(at.map_or(text, |at| &text[..at]))
    })
}

/// [`harmless`] `text` in lines of at most `width` [`columns`], broken between words; a longer word has its own line.
pub fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in words(&harmless(text)) {
        match lines.last_mut() {
            Some(line) if columns(line) + 1 + columns(word) <= width => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_string()),
        }
    }
    lines
}

/// A path as one word that a POSIX shell takes as it is, in characters that a terminal shows.
pub fn shell_word(path: &Path) -> String {
    let bytes = path.as_os_str().as_encoded_bytes();
    // A leading minus would be an option.
    let here: &[u8] = if bytes.starts_with(b"-") { b"./" } else { b"" };
    let bytes = [here, bytes].concat();
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"_@%+=:,./-".contains(byte);
    match std::str::from_utf8(&bytes) {
        Ok(text) if !text.is_empty() && bytes.iter().all(plain) => text.to_string(),
        Ok(text) if !text.contains(acts) => format!("'{}'", text.replace('\'', r"'\''")),
        // Other characters are escaped in octal.
        _ => {
            let mut word = String::from("\"$(printf '");
            for byte in bytes {
                match byte {
                    b'%' => word.push_str("%%"),
                    _ if plain(&byte) || byte == b' ' => word.push(byte as char),
                    _ => word.push_str(&format!("\\{byte:03o}")),
                }
            }
            word.push_str("')\"");
            word
        }
    }
}

/// Whether a table names the process of each row: only if its rows are of several.
pub(crate) struct Pids {
    are_several: bool,
}

impl Pids {
    pub fn of(mut pids: impl Iterator<Item = Option<i64>>) -> Pids {
        let first = pids.next().flatten();
        Pids { are_several: pids.any(|pid| pid != first) }
    }

    pub fn beside(&self, name: &str, pid: Option<i64>) -> String {
        match pid {
            Some(pid) if self.are_several => format!("{name}, process {pid}"),
            _ => name.to_owned(),
        }
    }
}

/// Stops of a process by signals, in words.
pub(crate) fn stops(stops: u64, ns: u64) -> String {
    format!(
        "stopped by signals {} for {} (SIGSTOP: cpulimit, Ctrl-Z, a debugger)",
        counted(stops, "time"),
        time(ns)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_signed_and_zero_has_not_fallen() {
        assert_eq!([signed(1.25, 1), signed(-0.5, 3), signed(-0.0004, 3)], ["+1.2", "−0.500", "+0.000"]);
        assert_eq!(growth(-0.1861), "−18.6 %");
    }

    #[test]
    fn numbers_stay_beside_their_units() {
        assert_eq!(wrap("lost is 12.5 % of it", 12), ["lost is", "12.5 % of it"]);
        assert_eq!(wrap("all (67 %).", 8), ["all", "(67 %)."]);
        assert_eq!(wrap("a  b", 3), ["a ", "b"]);
        assert_eq!(wrap("runs s and ms", 6), ["runs s", "and ms"]);
        assert_eq!(wrap("", 6), [""]);
    }

    #[test]
    fn a_shell_reads_a_quoted_path_unchanged() {
        use std::os::unix::ffi::OsStrExt;
        for (path, word) in
            [("a/b-1.trace", "a/b-1.trace"), ("", "''"), ("a b", "'a b'"), ("-x", "./-x"), ("é", "'é'")]
        {
            assert_eq!(shell_word(Path::new(path)), word);
        }
        for path in [
            &b"it's \"$HOME\" `x`\\; *"[..],
            b"\x1b[31mred\x07\n.trace",
            b"\xff\xfe 100%s'\\",
            b"~ #!",
            "\u{202e}a\u{9b}".as_bytes(),
        ] {
            let word = shell_word(Path::new(std::ffi::OsStr::from_bytes(path)));
            assert!(!word.chars().any(char::is_control), "{word}");
            let printed =
                std::process::Command::new("sh").arg("-c").arg(format!("printf %s {word}")).output().unwrap();
            assert_eq!(printed.stdout, path, "{word}");
        }
    }

    #[test]
    fn times_have_three_figures() {
        let shown: Vec<String> =
            [7, 456_000, 999_499, 999_500, 12_345_678, 1_234_000_000, 412_000_000_000].map(time).to_vec();
        assert_eq!(shown, ["7 ns", "456 µs", "999 µs", "1.00 ms", "12.3 ms", "1.23 s", "412 s"]);
    }

    #[test]
    fn counts_are_grouped() {
        assert_eq!([0, 999, 1000, 12_345_678].map(count), ["0", "999", "1 000", "12 345 678"]);
        assert_eq!([99_999, 999_499, 21_400_000].map(short_count), ["99 999", "999 k", "21.4 M"]);
    }

    #[test]
    fn long_names_are_cut_in_the_middle() {
        assert_eq!(fit("abcdefghij", 5), "ab…ij");
        assert_eq!(fit("abc", 5), "abc");
        assert_eq!(fit("a\n\x1b[31mb\u{202e}c\u{61c}", 40), "a��[31mb�c�");
        assert_eq!(wrap("one\ttwo three", 8), ["one�two", "three"]);
    }

    #[test]
    fn text_is_measured_in_columns() {
        for (text, width) in [("abc", 3), ("日本語", 6), ("e\u{301}", 1), ("🙂", 2), ("👩‍👩‍👧", 2), ("…µ", 2)]
        {
            assert_eq!(columns(text), width, "{text}");
            assert_eq!(columns(&format!("{:<9}|", Cell(text))), 10, "{text}");
            assert_eq!(format!("{:>9}", Cell(text)), format!("{}{text}", " ".repeat(9 - width)));
            assert_eq!(format!("{:1}", Cell(text)), text);
        }
        assert_eq!(fit("日本語の名前です", 9), "日本…です");
        assert_eq!(fit("日本語の名前です", 10), "日本…です");
        assert_eq!(fit("日本語の名前です", 16), "日本語の名前です");
        assert_eq!(fit("ae\u{301}iou e\u{301}x", 6), "ae\u{301}i…e\u{301}x", "marks stay with their letters");
        assert_eq!(fit("a👩‍👩‍👧bcd👩‍👩‍👧", 6), "a👩‍👩‍👧…👩‍👩‍👧");
        assert_eq!((fit_end("ab▸日本語", 5), fit_end("ab", 5)), ("…本語".to_owned(), "ab".to_owned()));
        assert_eq!(wrap("日本 語 ab", 7), ["日本 語", "ab"]);
        assert_eq!(broken("  日本 語 ab", 9), ["  日本 語", "    ab"]);
    }

    #[test]
    fn columns_have_one_unit() {
        let unit = Unit::for_total(20_000_000);
        assert_eq!(unit.worker_label(), "worker-ms");
        assert_eq!([0, 10, 1_400_000, 20_000_000].map(|ns| unit.show(ns)), ["0", "<0.001", "1.400", "20.00"]);
    }

    #[test]
    fn text_is_wrapped_at_spaces() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("verylongword x", 4), ["verylongword", "x"]);
    }

    #[test]
    fn bars_have_eighths() {
        assert_eq!(bar(0.5, 4), "██");
        assert_eq!(bar(0.53125, 4), "██▏");
        assert_eq!(bar(7.0, 2), "██");
    }

    #[test]
    fn lines_are_broken_at_spaces_and_styles_have_no_width() {
        assert_eq!(broken("  one two", 9), ["  one two"]);
        assert_eq!(broken("  one two three four", 12), ["  one two", "      three", "      four"]);
        let styled = "  \u{1b}[1mone\u{1b}[0m   two";
        assert_eq!(broken(styled, 11), [styled]);
        assert_eq!(broken(styled, 8), ["  \u{1b}[1mone\u{1b}[0m", "    two"]);
        assert_eq!(broken("abcdefghij kl", 4), ["abcdefghij", "  kl"]);
        assert_eq!(broken("", 4), [""]);
    }
}
