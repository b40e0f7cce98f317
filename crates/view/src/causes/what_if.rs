//! Parser of a `--what-if` question.

use taskscope_analysis::replay::CostChange;
use taskscope_execution::graph::TaskGraph;

/// `runtime=0.5`, `network=0`, `workers=8` (of each node), `TYPE=0.5`; several with commas between them.
#[derive(Clone, Debug, PartialEq)]
pub struct WhatIf {
    /// The text as typed.
    pub text: String,
    runtime: f64,
    network: f64,
    workers: Option<u32>,
    types: Vec<(String, f64)>,
}

impl WhatIf {
    /// Reads a question.
    ///
    /// # Errors
    /// A sentence about the part that cannot be read.
    pub fn parse(text: &str) -> Result<WhatIf, String> {
        let mut what =
            WhatIf { text: text.to_owned(), runtime: 1.0, network: 1.0, workers: None, types: Vec::new() };
        for part in text.split(',') {
            let (name, value) = part
                .rsplit_once('=')
                .ok_or_else(|| format!("`{part}` has no `=`; give for instance runtime=0"))?;
            let number = value.parse::<f64>().ok().filter(|n| *n >= 0.0 && n.is_finite());
            let number = number.ok_or_else(|| format!("`{value}` is not a factor of at least 0"))?;
            match name.trim() {
                "runtime" => what.runtime = number,
                "network" => what.network = number,
                "workers" if (1.0..=1e6).contains(&number) => what.workers = Some(number as u32),
                "workers" => return Err(format!("`{value}` is not a number of workers")),
                name => what.types.push((name.to_owned(), number)),
            }
        }
        Ok(what)
    }

    /// The names in it that no task type of the graph has, in whole or in part.
    pub fn unknown_types<'a>(&'a self, graph: &'a TaskGraph) -> impl Iterator<Item = &'a str> {
        let named = |name: &str| graph.types.iter().any(|ty| ty.name.contains(name));
        self.types.iter().map(|(name, _)| name.as_str()).filter(move |name| !named(name))
    }

    /// The change that it asks about. A task type is named by its whole name or a part of it.
    pub(super) fn change(&self, graph: &TaskGraph) -> CostChange {
        let mut change = CostChange {
            runtime: self.runtime,
            network: self.network,
            workers_per_node: self.workers,
            types: Vec::new(),
        };
        for (name, factor) in &self.types {
            let exact = graph.types.iter().any(|ty| ty.name == *name);
            let named = graph
                .types
                .iter()
                .enumerate()
                .filter(|(_, ty)| if exact { ty.name == *name } else { ty.name.contains(name.as_str()) });
            change.types.extend(named.map(|(row, _)| (row as u32, *factor)));
        }
        change
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_are_read() {
        let what = WhatIf::parse("runtime=0,gemm=0.5").unwrap();
        assert_eq!((what.runtime, what.network, what.types), (0.0, 1.0, vec![("gemm".to_owned(), 0.5)]));
        assert!(WhatIf::parse("gemm").is_err());
        assert!(WhatIf::parse("gemm=-1").is_err());
        assert!(WhatIf::parse("workers=0").is_err());
    }
}
