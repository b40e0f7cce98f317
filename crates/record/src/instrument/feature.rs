//! The feature `instrument`.

/// Whether the feature is on. All entries to this module compare this constant, so that without the feature nothing
/// behind them is linked.
pub(crate) const IS_COMPILED_IN: bool = cfg!(feature = "instrument");
