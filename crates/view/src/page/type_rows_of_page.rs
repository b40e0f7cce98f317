//! Rows by task type of a page.

use super::Page;
use super::types::TypeRows;
use taskscope_execution::TypeIndex;
use taskscope_execution::lod::Window;

impl Page {
    /// Time by task type, computed on first use.
    pub fn type_rows(&self) -> &TypeRows {
        self.derived.type_rows.get_or_init(|| self.new_type_rows())
    }

    pub(super) fn new_type_rows(&self) -> TypeRows {
        let names_of = |types: Vec<TypeIndex>| {
            self.names.ask(move |names| types.iter().map(|ty| names.type_name(*ty)).collect())
        };
        TypeRows::of(&self.execution, names_of)
    }

    /// Names of the rows by task type.
    pub fn type_labels(&self) -> Vec<String> {
        let rows = self.type_rows();
        let mut labels = rows.labels.clone();
        if rows.others {
            labels.push("all other types".to_string());
        }
        labels
    }

    /// Average number of threads that run each type in every bucket: `[bucket][type]`, little-endian 32-bit
    /// floats.
    pub fn packed_types(&self, window: Window) -> Vec<u8> {
        let width = (window.end() - window.start()) as f64 / f64::from(window.count.max(1));
        let shares = self.type_rows().shares(&self.execution, window);
        shares.iter().flat_map(|ns| ((*ns as f64 / width) as f32).to_le_bytes()).collect()
    }
}
