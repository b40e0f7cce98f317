//! Names that are on: the level, and enabled or disabled prefixes.
//!
//! - `TASKSCOPE_LEVEL`: `none`, `user`, `developer`, `default`, `advanced` or `all`. A key is on if its own
//!   level is at most this one. Default is `default`: users' and developers' keys.
//! - `TASKSCOPE_ENABLE`, `TASKSCOPE_DISABLE`: prefixes of names, separated by commas. Of all that fit, the
//!   longest decides; of two as long, the one that disables. States are matched as `state.NAME`,
//!   message domains as `ptp.NAME`, kinds of tasks as `task.NAME`, so `TASKSCOPE_DISABLE=state` switches
//!   all states off.

use taskscope_event::models::instrument::level;

/// The environment variable of the level.
pub const LEVEL_VARIABLE: &str = "TASKSCOPE_LEVEL";
/// The environment variable of prefixes to enable.
pub const ENABLE_VARIABLE: &str = "TASKSCOPE_ENABLE";
/// The environment variable of prefixes to disable.
pub const DISABLE_VARIABLE: &str = "TASKSCOPE_DISABLE";

pub(super) struct Settings {
    level: u32,
    /// Prefixes, and whether they enable.
    prefixes: Vec<(String, bool)>,
    /// Invalid words of the environment.
    pub unknown: Vec<String>,
}

impl Settings {
    pub fn from_environment() -> Settings {
        let text = |name| std::env::var_os(name).map(|value| value.to_string_lossy().into_owned());
        Settings::parse(
            &text(LEVEL_VARIABLE).unwrap_or_default(),
            &text(ENABLE_VARIABLE).unwrap_or_default(),
            &text(DISABLE_VARIABLE).unwrap_or_default(),
        )
    }

    pub fn parse(level: &str, enable: &str, disable: &str) -> Settings {
        let mut settings = Settings { level: level::DEFAULT, prefixes: Vec::new(), unknown: Vec::new() };
        if !level.trim().is_empty() {
            match level::WORDS.iter().position(|word| !word.is_empty() && *word == level.trim()) {
                Some(number) => settings.level = number as u32,
                None => settings.unknown.push(format!(
                    "{LEVEL_VARIABLE}={level} is no level; it is one of: none, user, developer, default, \
                     advanced, all; taken as default"
                )),
            }
        }
        for (list, enables) in [(enable, true), (disable, false)] {
            for prefix in list.split(',').map(str::trim).filter(|prefix| !prefix.is_empty()) {
                settings.set(prefix, enables);
            }
        }
        settings
    }

    /// The last word about a prefix counts; within the environment that is the one that disables.
    pub fn set(&mut self, prefix: &str, enables: bool) {
        self.prefixes.retain(|(known, _)| known != prefix);
        self.prefixes.push((prefix.to_owned(), enables));
    }

    pub fn is_on(&self, name: &str, level: u32) -> bool {
        let fitting = self.prefixes.iter().filter(|(prefix, _)| name.starts_with(prefix.as_str()));
        match fitting.max_by_key(|(prefix, enables)| (prefix.len(), !enables)) {
            Some((_, enables)) => *enables,
            None => level <= self.level,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_and_prefixes_decide() {
        let plain = Settings::parse("", "", "");
        assert!(plain.is_on("a", level::DEVELOPER) && !plain.is_on("a", level::ADVANCED));
        assert!(plain.is_on("a", level::ENABLED) && !plain.is_on("a", level::DISABLED));
        let none = Settings::parse("none", "cache", "");
        assert!(!none.is_on("api", level::USER) && none.is_on("cache-hit", level::DISABLED));
        assert!(none.is_on("api", level::ENABLED));
        let both = Settings::parse("all", "cache-m,state", "cache,state");
        assert!(both.is_on("cache-malloc", level::USER) && !both.is_on("cache-hit", level::USER));
        assert!(!both.is_on("state.IDLE", level::ENABLED), "of two as long, the one that disables");
        let wrong = Settings::parse("loud", "", "");
        assert!(wrong.unknown.len() == 1 && wrong.is_on("a", level::USER));
    }
}
