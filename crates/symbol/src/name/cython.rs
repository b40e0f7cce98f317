//! Names of functions in modules made by Cython.

/// `sklearn.utils.murmurhash.hash_all` for `__pyx_pw_7sklearn_5utils_10murmurhash_3hash_all`: the qualified name of a
/// function in a module made by Cython. Suffixes for copies of the function stay.
///
/// The module's name is a list of parts, each after its length and before `_`. In functions for Python (`pw`: wrapper,
/// `pf`: body) and generators, a number that distinguishes functions of one name precedes the function's own name.
pub(super) fn cython_name(name: &str) -> Option<String> {
    /// Prefixes of names, and whether a number precedes the function's own name.
    const KINDS: [(&str, bool); 4] = [("pw_", true), ("pf_", true), ("gb_", true), ("f_", false)];
    let mut rest = name.strip_prefix("__pyx_")?;
    // A function of a fused type has a copy for each combination of types.
    while let Some(numbered) = rest.strip_prefix("fuse_") {
        rest = numbered.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_').strip_prefix("pyx_")?;
    }
    let (mut rest, is_numbered) =
        KINDS.iter().find_map(|(mark, is_numbered)| Some((rest.strip_prefix(mark)?, *is_numbered)))?;
    let mut parts = Vec::new();
    let mut own = None;
    while let Some((part, inner)) = part_of_cython(rest) {
        parts.push(part);
        rest = inner;
        // A number may be the length of the following text by chance.
        let unnumbered = rest.trim_start_matches(|c: char| c.is_ascii_digit());
        if !is_numbered {
            own = Some((parts.len(), rest));
        } else if unnumbered.len() < rest.len() {
            own = Some((parts.len(), unnumbered));
        }
    }
    let (modules, mut function) = own?;
    // Functions of fused types repeat the mark before their own name.
    if let Some(numbered) = function.strip_prefix("__pyx_fuse_") {
        function = numbered.trim_start_matches(|c: char| c.is_ascii_digit() || c == '_');
    }
    parts.truncate(modules);
    parts.push(Some(function).filter(|function| !function.is_empty())?);
    Some(parts.join("."))
}

/// `sklearn` and the rest, for `7sklearn_5utils_…`.
fn part_of_cython(text: &str) -> Option<(&str, &str)> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (length, text) = text.split_at(digits);
    let (part, rest) = text.split_at_checked(length.parse().ok()?)?;
    let rest = rest.strip_prefix('_').filter(|rest| !rest.is_empty() && !part.is_empty())?;
    Some((part, rest))
}
