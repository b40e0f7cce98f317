//! Contents of a file that an import leaves out, counted by reason.

/// Contents that were left out for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Loss {
    /// Name of the contents, in the plural.
    pub content: &'static str,
    /// Number of them.
    pub count: u64,
    /// The reason.
    pub why: &'static str,
    /// Place of the first one in the file; empty if it has none.
    pub first: String,
}

/// Everything that was left out, in the order of the first ones.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Losses(Vec<Loss>);

impl Losses {
    /// Counts a content. `place` is asked for the first one of its reason alone.
    pub fn add(&mut self, content: &'static str, why: &'static str, place: impl FnOnce() -> String) {
        self.add_placed(content, why, 1, place);
    }

    /// Counts contents without a place.
    pub fn add_many(&mut self, content: &'static str, why: &'static str, count: u64) {
        if count > 0 {
            self.add_placed(content, why, count, String::new);
        }
    }

    fn add_placed(
        &mut self,
        content: &'static str,
        why: &'static str,
        count: u64,
        place: impl FnOnce() -> String,
    ) {
        match self.0.iter_mut().find(|loss| loss.content == content && loss.why == why) {
            Some(loss) => loss.count += count,
            None => self.0.push(Loss { content, count, why, first: place() }),
        }
    }

    /// All losses.
    pub fn iter(&self) -> impl Iterator<Item = &Loss> {
        self.0.iter()
    }

    /// Number of contents left out for a reason.
    pub fn count(&self, content: &str) -> u64 {
        self.0.iter().filter(|loss| loss.content == content).map(|loss| loss.count).sum()
    }
}
