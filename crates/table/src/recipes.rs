//! Queries that answer common questions, one file each in `docs/sql`.

/// A query.
#[derive(Clone, Copy, Debug)]
pub struct Recipe {
    /// Its name.
    pub name: &'static str,
    /// Its text: the question as a comment, then the query.
    pub sql: &'static str,
}

impl Recipe {
    /// The question that it answers.
    pub fn question(&self) -> &'static str {
        self.sql.lines().next().and_then(|line| line.strip_prefix("-- ")).unwrap_or_default()
    }
}

/// The query of this name.
pub fn recipe(name: &str) -> Option<&'static Recipe> {
    RECIPES.iter().find(|recipe| recipe.name == name)
}

macro_rules! recipes {
    ($($name:literal),* $(,)?) => {
        /// All queries, by name.
        pub const RECIPES: &[Recipe] = &[$(
            Recipe { name: $name, sql: include_str!(concat!("../../../docs/sql/", $name, ".sql")) },
        )*];
    };
}

recipes![
    "blame",
    "collectives",
    "created-elsewhere",
    "dependence-lag",
    "dependence-pairs",
    "device-queues",
    "idle-by-location",
    "imbalance",
    "lock-holders",
    "longest-waits",
    "messages",
    "off-cpu",
    "parallelism",
    "queueing",
    "samples",
    "serial-time",
    "small-tasks",
    "task-types",
    "time-by-cause",
    "trust",
];
