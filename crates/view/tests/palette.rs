//! Every colour can be told from its page: a contrast of at least 3:1 (WCAG 2.2, 1.4.11), text 4.5:1.

use taskscope_execution::State;

const PALETTE: &str = include_str!("../web/palette.js");

/// `name: '#rrggbb'` pairs of one table.
fn colours(table: &str) -> Vec<(String, String)> {
    let start = PALETTE.find(&format!("export const {table} = {{")).expect(table);
    let text = &PALETTE[start..start + PALETTE[start..].find("};").unwrap()];
    let pairs = text.split('{').nth(1).unwrap().split(',').filter_map(|pair| pair.split_once(':'));
    pairs.map(|(name, hex)| (name.trim().to_string(), hex.trim().trim_matches('\'').to_string())).collect()
}

/// Relative luminance as WCAG defines it.
fn luminance(hex: &str) -> f64 {
    let part = |at: usize| {
        let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    };
    0.2126 * part(1) + 0.7152 * part(3) + 0.0722 * part(5)
}

fn contrast(one: &str, two: &str) -> f64 {
    let (one, two) = (luminance(one), luminance(two));
    (one.max(two) + 0.05) / (one.min(two) + 0.05)
}

#[test]
fn every_state_has_a_colour_that_its_page_shows() {
    for (table, marks) in [("LIGHT_STATES", "LIGHT_MARKS"), ("DARK_STATES", "DARK_MARKS")] {
        let states = colours(table);
        let marks = colours(marks);
        let page = &marks.iter().find(|(name, _)| name == "page").unwrap().1;
        for state in State::ALL {
            let (name, hex) = states
                .iter()
                .find(|(name, _)| name == state.name())
                .unwrap_or_else(|| panic!("{}", state.name()));
            // A thread that is not there looks like nothing, on purpose.
            let absent = matches!(state, State::NotStarted | State::Ended);
            let found = contrast(hex, page);
            assert!(absent || found >= 3.0, "{table} {name} {hex}: {found:.2}");
        }
        for (name, least) in
            [("text", 4.5), ("long", 3.0), ("finding", 3.0), ("lost", 4.5), ("match", 3.0), ("off", 3.0)]
        {
            let hex = &marks.iter().find(|(mark, _)| mark == name).unwrap().1;
            let found = contrast(hex, page);
            assert!(found >= least, "{table} {name} {hex}: {found:.2}");
        }
    }
}

#[test]
fn words_on_bars_of_call_paths_can_be_read() {
    let style = include_str!("../web/page.css");
    let shades: Vec<&str> = style.split(".icicle .shade").skip(1).collect();
    assert_eq!(shades.len(), 4);
    for shade in shades {
        let hex = &shade[shade.find('#').unwrap()..][..7];
        let found = contrast(hex, "#ffffff");
        assert!(found >= 4.5, "{hex}: {found:.2}");
    }
}
