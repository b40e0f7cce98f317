//! Paraver configurations: one file per type of a view, so that each opens with a click.
//!
//! They are made from the same description as the `.pcf`, so a trace's own marks and counters have
//! theirs too. Hardware counters come as differences, which hold for the time before an event.

use super::write_whole;
use std::io::{self, Write};
use std::path::Path;
use taskscope_execution::view::{ViewDescription, ViewFamily, ViewType};
use taskscope_files::create_directory_below;

/// File systems take names of 255 bytes, while they are written with an ending more.
const MAX_FILE_NAME: usize = 100;

/// Types of hardware counters.
const COUNTERS: std::ops::Range<u32> = 200..300;

/// Writes the configurations of a view below `directory`, in a folder for each family, and removes those that an
/// earlier run left there for types that the view no longer has.
///
/// # Errors
/// Those of the file system.
pub fn write_configurations(
    directory: &Path,
    view: ViewFamily,
    description: &ViewDescription,
) -> io::Result<()> {
    let folder = create_directory_below(directory, Path::new("cfg").join(view.file_name()))?;
    for entry in std::fs::read_dir(&folder)?.flatten() {
        if is_ours(&entry.file_name().to_string_lossy()) {
            std::fs::remove_file(entry.path())?;
        }
    }
    for view_type in &description.types {
        let path = folder.join(format!("{}.cfg", file_name(view_type)));
        write_whole(&path, |out| write_configuration(out, view, view_type, description.rows.len()))?;
    }
    Ok(())
}

/// Whether a file has a name such as those made here: all that users make themselves stays.
fn is_ours(name: &str) -> bool {
    let number = name.split('-').next().unwrap_or_default();
    name.ends_with(".cfg") && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
}

/// The type's number, which no other type has, and the first words of its title: `13-nos-v-subsystem`.
fn file_name(view_type: &ViewType) -> String {
    let title = view_type.title.split(" of the ").next().unwrap_or_default();
    let mut name = view_type.number.to_string();
    let words = title.split(|character: char| !character.is_ascii_alphanumeric());
    for word in words.filter(|word| !word.is_empty()).take(8) {
        name.push('-');
        name.push_str(&word.to_ascii_lowercase());
    }
    // All ASCII.
    name.truncate(MAX_FILE_NAME);
    name
}

fn write_configuration(
    out: &mut impl Write,
    view: ViewFamily,
    view_type: &ViewType,
    rows: usize,
) -> io::Result<()> {
    let title: String = view_type.title.trim().replace(['\n', '\r'], " ");
    let title = match view {
        ViewFamily::Cpu if !title.starts_with("CPU: ") => format!("CPU: {title}"),
        ViewFamily::Thread if !title.starts_with("Thread: ") => format!("Thread: {title}"),
        _ => title,
    };
    let is_counter = COUNTERS.contains(&view_type.number);
    let semantic = if is_counter { "Next Evt Val" } else { "Last Evt Val" };
    let highest = view_type.values.iter().map(|(value, _)| *value).max().unwrap_or(rows as i64).max(1);
    let (colours, height) =
        (if is_counter { "window_null_gradient" } else { "window_code_color" }, 120 + rows.min(480));
    writeln!(out, "#ParaverCFG\nConfigFile.Version: 3.4\nConfigFile.NumWindows: 1\n\n")?;
    writeln!(out, "{}\n< NEW DISPLAYING WINDOW {title} >\n{}", "#".repeat(80), "#".repeat(80))?;
    writeln!(out, "window_name {title}\nwindow_type single\nwindow_id 1")?;
    writeln!(out, "window_position_x 0\nwindow_position_y 0\nwindow_width 800\nwindow_height {height}")?;
    writeln!(out, "window_comm_lines_enabled false\nwindow_flags_enabled false\nwindow_noncolor_mode true")?;
    writeln!(out, "window_color_mode {colours}\nwindow_units Microseconds")?;
    writeln!(out, "window_maximum_y {highest}.0\nwindow_minimum_y 0.0\nwindow_compute_y_max true")?;
    writeln!(out, "window_level thread\nwindow_scale_relative 1.000000000000")?;
    writeln!(out, "window_begin_time_relative 0.000000000000\nwindow_end_time_relative 1.000000000000")?;
    writeln!(out, "window_object appl {{ 1, {{ All }} }}\nwindow_open true")?;
    writeln!(out, "window_drawmode draw_maximum\nwindow_drawmode_rows draw_maximum")?;
    writeln!(out, "window_pixel_size 1\nwindow_labels_to_draw 1")?;
    writeln!(
        out,
        "window_selected_functions {{ 14, {{ {{cpu, Active Thd}}, {{appl, Adding}}, {{task, Adding}}, \
         {{thread, {semantic}}}, {{node, Adding}}, {{system, Adding}}, {{workload, Adding}}, \
         {{from_obj, All}}, {{to_obj, All}}, {{tag_msg, All}}, {{size_msg, All}}, {{bw_msg, All}}, \
         {{evt_type, =}}, {{evt_value, All}} }} }}"
    )?;
    writeln!(
        out,
        "window_compose_functions {{ 9, {{ {{compose_cpu, As Is}}, {{compose_appl, As Is}}, \
         {{compose_task, As Is}}, {{compose_thread, As Is}}, {{compose_node, As Is}}, \
         {{compose_system, As Is}}, {{compose_workload, As Is}}, {{topcompose1, As Is}}, \
         {{topcompose2, As Is}} }} }}"
    )?;
    writeln!(out, "window_filter_module evt_type 1 {}", view_type.number)?;
    writeln!(out, "window_filter_module evt_type_label 1 \"{}\"", view_type.title.trim().replace('"', "'"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_type_has_a_file_named_after_it() {
        let directory = tempfile::tempdir().unwrap();
        let types = vec![ViewType {
            number: 13,
            title: "nOS-V subsystem of the ACTIVE thread".to_owned(),
            values: vec![(6, "Scheduler: Hungry".to_owned())],
        }];
        let description = ViewDescription { rows: vec!["TH 1.1".to_owned()], types };
        write_configurations(directory.path(), ViewFamily::Thread, &description).unwrap();
        let text =
            std::fs::read_to_string(directory.path().join("cfg/thread/13-nos-v-subsystem.cfg")).unwrap();
        assert!(text.contains("window_filter_module evt_type 1 13\n"));
        assert!(text.contains("{thread, Last Evt Val}"));
    }

    #[test]
    fn long_titles_have_short_files_of_their_own() {
        let directory = tempfile::tempdir().unwrap();
        let long = |number| ViewType { number, title: "x".repeat(300), values: Vec::new() };
        let description =
            ViewDescription { rows: vec!["TH 1.1".to_owned()], types: vec![long(100), long(101)] };
        write_configurations(directory.path(), ViewFamily::Thread, &description).unwrap();
        assert_eq!(std::fs::read_dir(directory.path().join("cfg/thread")).unwrap().count(), 2);
    }
}
