//! Every colour stands out from its page: a contrast of at least 3:1 (WCAG 2.2, 1.4.11), text 4.5:1. Neighbours differ
//! for any common colour vision.

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
        let least = [
            ("text", 4.5),
            ("long", 3.0),
            ("finding", 3.0),
            ("lost", 4.5),
            ("match", 3.0),
            ("off", 3.0),
            ("shorter", 3.0),
            ("same", 3.0),
        ];
        for (name, least) in least {
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
    let changes: Vec<&str> = style.split(".difference, .legend) .").skip(1).collect();
    assert_eq!((shades.len(), changes.len()), (4, 5));
    for shade in shades.into_iter().chain(changes) {
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

/// The colours of values on the light page.
fn value_colours() -> Vec<&'static str> {
    let at = PALETTE.find("VALUE_COLOURS = [").unwrap();
    let list = PALETTE[at..].split(['[', ']']).nth(1).unwrap();
    list.split(',').map(|hex| hex.trim().trim_matches('\'')).filter(|hex| !hex.is_empty()).collect()
}

#[test]
fn every_value_colour_differs_from_its_page_and_the_others() {
    let values = value_colours();
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

/// Linear light of a colour, each part 0 to 1.
fn linear(hex: &str) -> [f64; 3] {
    [1, 3, 5].map(|at| {
        let value = f64::from(u8::from_str_radix(&hex[at..at + 2], 16).unwrap()) / 255.0;
        if value <= 0.04045 { value / 12.92 } else { ((value + 0.055) / 1.055).powf(2.4) }
    })
}

fn times(matrix: [[f64; 3]; 3], light: [f64; 3]) -> [f64; 3] {
    matrix.map(|row| row.iter().zip(light).map(|(factor, part)| factor * part).sum())
}

/// CIE L*a*b* (1976) of linear sRGB light under D65.
fn lab(light: [f64; 3]) -> [f64; 3] {
    let xyz = times(
        [
            [0.4124564, 0.3575761, 0.1804375],
            [0.2126729, 0.7151522, 0.0721750],
            [0.0193339, 0.1191920, 0.9503041],
        ],
        light,
    );
    let cube = |t: f64| if t > 0.008856 { t.cbrt() } else { 7.787 * t + 16.0 / 116.0 };
    let [x, y, z] = [cube(xyz[0] / 0.95047), cube(xyz[1]), cube(xyz[2] / 1.08883)];
    [116.0 * y - 16.0, 500.0 * (x - y), 200.0 * (y - z)]
}

/// A colour as people with usual colour vision, without the green and without the red cones see it: the matrices of
/// Machado, Oliveira and Fernandes (2009) for full severity.
fn seen(hex: &str) -> [[f64; 3]; 3] {
    const NO_GREEN: [[f64; 3]; 3] =
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]];
    const NO_RED: [[f64; 3]; 3] =
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]];
    let light = linear(hex);
    let as_seen = |matrix| lab(times(matrix, light).map(|part: f64| part.clamp(0.0, 1.0)));
    [lab(light), as_seen(NO_GREEN), as_seen(NO_RED)]
}

fn distance(one: [f64; 3], two: [f64; 3]) -> f64 {
    one.iter().zip(two).map(|(one, two)| (one - two).powi(2)).sum::<f64>().sqrt()
}

/// The least difference of two colours for the three kinds of vision.
fn difference(one: &str, two: &str) -> f64 {
    let pairs = seen(one).into_iter().zip(seen(two));
    pairs.map(|(one, two)| distance(one, two)).fold(f64::INFINITY, f64::min)
}

/// Differences from which on neighbouring areas are told apart.
const APART: f64 = 12.0;

/// States that are often beside each other: the most common ones of each group.
const COMMON: [State; 11] = [
    State::Task,
    State::Serial,
    State::Scheduling,
    State::Barrier,
    State::Taskwait,
    State::CriticalWait,
    State::TargetWait,
    State::Communication,
    State::Idle,
    State::OutOfCpu,
    State::Blocked,
];

#[test]
fn colours_of_common_states_differ_for_any_common_colour_vision() {
    for page in 0..2 {
        let colour = |state: &State| state.colours().unwrap()[page];
        for (at, one) in COMMON.iter().enumerate() {
            for two in &COMMON[..at] {
                let found = difference(colour(one), colour(two));
                assert!(found >= APART, "{page}: {} and {}: {found:.1}", one.name(), two.name());
            }
        }
    }
}

#[test]
fn colours_of_values_differ_from_their_neighbours_and_mean_no_state() {
    for page in 0..2 {
        let lighter = if page == 0 { 0.0 } else { number("LIGHTER") };
        let values: Vec<String> = value_colours().iter().map(|hex| mixed(hex, "#ffffff", lighter)).collect();
        for (at, one) in values.iter().enumerate() {
            // The first eight are all beside each other, later ones beside the next ones.
            for two in values[..at]
                .iter()
                .enumerate()
                .filter(|(other, _)| at < 8 || at - other < 4)
                .map(|(_, two)| two)
            {
                let found = difference(one, two);
                assert!(found >= APART, "{page}: {one} and {two}: {found:.1}");
            }
            for state in COMMON {
                let found = distance(seen(one)[0], seen(state.colours().unwrap()[page])[0]);
                assert!(found >= APART, "{page}: {one} is that of {}: {found:.1}", state.name());
            }
        }
    }
}
