//! Every colour stands out from its page: a contrast of at least 3:1 (WCAG 2.2, 1.4.11), text 4.5:1.

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
    for (table, marks_name) in [("light", "LIGHT_MARKS"), ("dark", "DARK_MARKS")] {
        let marks = colours(marks_name);
        let page = &marks.iter().find(|(name, _)| name == "page").unwrap().1;
        for state in State::ALL {
            // An absent thread leaves the page blank.
            let is_absent = matches!(state, State::NotStarted | State::Ended);
            assert_eq!(state.colours().is_none(), is_absent, "{}", state.name());
            let Some(colours) = state.colours() else { continue };
            let (name, hex) = (state.name(), colours[usize::from(marks_name == "DARK_MARKS")]);
            let found = contrast(hex, page);
            assert!(found >= 3.0, "{table} {name} {hex}: {found:.2}");
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
fn the_frame_of_blank_parts_is_visible_on_pages_and_bars() {
    let style = include_str!("../web/page.css");
    assert!(style.contains(".blank { border: 1px solid var(--soft); }"));
    let pages = style.lines().filter(|line| line.contains("--soft: #"));
    let mut seen = 0;
    for line in pages {
        let colour = |name: &str| &line[line.find(&format!("{name}: #")).unwrap() + name.len() + 2..][..7];
        for ground in ["--page", "--shade"] {
            let found = contrast(colour("--soft"), colour(ground));
            assert!(found >= 3.0, "{ground} {line}: {found:.2}");
        }
        seen += 1;
    }
    // Light, dark by the system, dark by choice, paper.
    assert_eq!(seen, 4);
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

/// The page's mix: `share` of the way from one colour to another.
fn mixed(from: &str, to: &str, share: f64) -> String {
    let part = |hex: &str, at: usize| f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap());
    let mix = |at| (part(from, at) + (part(to, at) - part(from, at)) * share).round() as u8;
    format!("#{:02x}{:02x}{:02x}", mix(1), mix(3), mix(5))
}

/// A number of the palette.
fn number(name: &str) -> f64 {
    let at = PALETTE.find(&format!("const {name} = ")).expect(name) + name.len() + 9;
    PALETTE[at..].split(';').next().unwrap().parse().unwrap()
}

#[test]
fn every_value_colour_differs_from_its_page_and_the_others() {
    let at = PALETTE.find("VALUE_COLOURS = [").unwrap();
    let list = PALETTE[at..].split(['[', ']']).nth(1).unwrap();
    let values: Vec<&str> =
        list.split(',').map(|hex| hex.trim().trim_matches('\'')).filter(|hex| !hex.is_empty()).collect();
    assert_eq!(values.len(), 16);
    for (marks, lighter) in [("LIGHT_MARKS", 0.0), ("DARK_MARKS", number("LIGHTER"))] {
        let marks = colours(marks);
        let mark = |wanted: &str| marks.iter().find(|(name, _)| name == wanted).unwrap().1.clone();
        let first: Vec<String> = values.iter().map(|hex| mixed(hex, "#ffffff", lighter)).collect();
        let second = first.iter().map(|hex| mixed(hex, &mark("text"), number("SECOND_ROUND")));
        let all: Vec<String> = first.iter().cloned().chain(second).collect();
        for hex in &all {
            let found = contrast(hex, &mark("page"));
            assert!(found >= 3.0, "{hex} on {}: {found:.2}", mark("page"));
        }
        let distinct: std::collections::BTreeSet<&String> = all.iter().collect();
        assert_eq!(distinct.len(), 32);
    }
}
