//! `.pcf` (meanings of types and values) and `.row` (names of rows).

use std::io::{self, Write};
use taskscope_execution::view::ViewDescription;

/// Colours of the values 0 to 22; Paraver picks its own beyond.
const COLOURS: [(u8, u8, u8); 23] = [
    (0, 0, 0),
    (0, 130, 200),
    (217, 217, 217),
    (230, 25, 75),
    (60, 180, 75),
    (255, 225, 25),
    (245, 130, 48),
    (145, 30, 180),
    (70, 240, 240),
    (240, 50, 230),
    (210, 245, 60),
    (250, 190, 212),
    (0, 128, 128),
    (128, 128, 128),
    (220, 190, 255),
    (170, 110, 40),
    (255, 250, 200),
    (128, 0, 0),
    (170, 255, 195),
    (128, 128, 0),
    (255, 215, 180),
    (0, 0, 128),
    (0, 0, 255),
];

/// Options and default function, as ovniemu writes them.
pub(super) const PREAMBLE: &str = "\
DEFAULT_OPTIONS

LEVEL               THREAD
UNITS               NANOSEC
LOOK_BACK           100
SPEED               1
FLAG_ICONS          ENABLED
NUM_OF_STATE_COLORS 1000
YMAX_SCALE          37


DEFAULT_SEMANTIC

THREAD_FUNC         State As Is
";

/// Writes a `.pcf`.
///
/// # Errors
/// Those of `out`.
pub fn write_pcf(out: &mut impl Write, description: &ViewDescription) -> io::Result<()> {
    out.write_all(PREAMBLE.as_bytes())?;
    out.write_all(b"\n\nSTATES_COLOR\n")?;
    for (value, (red, green, blue)) in COLOURS.iter().enumerate() {
        // Strict readers take no blanks between the braces, and no list of values without one.
        writeln!(out, "{value:<3} {{{red},{green},{blue}}}")?;
    }
    for view_type in &description.types {
        writeln!(out, "\n\nEVENT_TYPE\n0 {:<10} {}", view_type.number, one_line(&view_type.title))?;
        if !view_type.values.is_empty() {
            writeln!(out, "VALUES")?;
        }
        for (value, label) in &view_type.values {
            writeln!(out, "{value:<4} {}", one_line(label))?;
        }
    }
    Ok(())
}

/// Writes a `.row`.
///
/// # Errors
/// Those of `out`.
pub fn write_row(out: &mut impl Write, description: &ViewDescription) -> io::Result<()> {
    writeln!(out, "LEVEL NODE SIZE 1\nhostname\n\nLEVEL THREAD SIZE {}", description.rows.len())?;
    description.rows.iter().try_for_each(|row| writeln!(out, "{}", one_line(row)))
}

/// A label without line ends, which would end it early.
fn one_line(label: &str) -> String {
    label.replace(['\n', '\r'], " ")
}
