//! Names of code that was generated at run time ([`crate::jit_dump`] has another form), from maps in perf's form: lines of start and size in hexadecimal and a name.

use std::sync::Arc;

/// Functions of one process's map, in the order of their addresses.
#[derive(Debug, Default)]
pub(crate) struct CodeNames {
    /// Start, end and name. None overlap.
    functions: Vec<(u64, u64, Arc<str>)>,
}

impl CodeNames {
    /// Reads a map. Lines of another form are skipped. Of overlapping functions the last one written counts, as
    /// compilers reuse memory.
    pub(crate) fn parse(text: &str) -> CodeNames {
        let functions = text.lines().filter_map(function_of);
        CodeNames::of(functions.map(|(start, end, name)| (start, end, name.into())))
    }

    /// Functions with start, end and name, in the order of time.
    pub(crate) fn of(functions: impl IntoIterator<Item = (u64, u64, Arc<str>)>) -> CodeNames {
        let mut kept: std::collections::BTreeMap<u64, (u64, Arc<str>)> = std::collections::BTreeMap::new();
        for (start, end, name) in functions {
            while let Some((before, (before_end, _))) = kept.range(..end).next_back()
                && *before_end > start
            {
                let before = *before;
                kept.remove(&before);
            }
            kept.insert(start, (end, name));
        }
        CodeNames { functions: kept.into_iter().map(|(start, (end, name))| (start, end, name)).collect() }
    }

    /// The function that holds an address.
    pub(crate) fn find(&self, address: u64) -> Option<&str> {
        let after = self.functions.partition_point(|(start, ..)| *start <= address);
        let (_, end, name) = self.functions.get(after.checked_sub(1)?)?;
        (address < *end).then_some(name)
    }
}

fn function_of(line: &str) -> Option<(u64, u64, &str)> {
    let mut fields = line.splitn(3, ' ');
    let number = |field: Option<&str>| {
        let field = field?;
        u64::from_str_radix(field.strip_prefix("0x").unwrap_or(field), 16).ok()
    };
    let (start, size) = (number(fields.next())?, number(fields.next())?);
    let name = fields.next()?.trim();
    let end = start.checked_add(size.max(1))?;
    (!name.is_empty()).then_some((start, end, name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn later_functions_replace_earlier_ones_in_the_same_memory() {
        let map = CodeNames::parse(
            "1000 20 old a\n0x1010 8 new\nx 1 y\n2000 10 \nffffffffffffffff 9 z\n3000 0 stub",
        );
        let names = [0x1000, 0x1010, 0x1017, 0x1018, 0x2000, 0x3000].map(|address| map.find(address));
        assert_eq!(names, [None, Some("new"), Some("new"), None, None, Some("stub")]);
        assert_eq!(CodeNames::parse("1000 20 a(int, long)").find(0x101f), Some("a(int, long)"));
    }
}
