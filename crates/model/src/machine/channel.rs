//! A channel of a thread: one value, or a stack of values that shows its top.

/// Error of a write to a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ChannelError {
    /// Popped from an empty stack.
    Empty,
    /// Popped a value that is not on top; this one is.
    Mismatch(i64),
    /// Wrote the value that the channel already has.
    Same,
    /// Pushed on 512 values.
    Full,
}

/// More values than this on a stack are an error of the runtime.
const MAX_STACKED: usize = 512;

/// See the module.
#[derive(Clone, Debug, Default)]
pub(crate) struct ChannelState {
    single: Option<i64>,
    stack: Vec<i64>,
}

impl ChannelState {
    pub(crate) fn new(initial: Option<i64>) -> Self {
        ChannelState { single: initial, stack: Vec::new() }
    }

    /// The value that is shown.
    #[inline]
    pub(crate) fn value(&self) -> Option<i64> {
        self.stack.last().copied().or(self.single)
    }

    /// Number of stacked values.
    pub(crate) fn depth(&self) -> usize {
        self.stack.len()
    }

    /// Sets the single value. It takes effect even when an error is returned.
    #[inline]
    pub(crate) fn set(&mut self, value: Option<i64>, may_repeat: bool) -> Result<(), ChannelError> {
        let same = self.single == value && !may_repeat;
        self.single = value;
        if same { Err(ChannelError::Same) } else { Ok(()) }
    }

    /// Pushes a value, also when an error is returned.
    #[inline]
    pub(crate) fn push(&mut self, value: i64, may_repeat: bool) -> Result<(), ChannelError> {
        let same = !may_repeat && self.stack.last() == Some(&value);
        let full = self.stack.len() == MAX_STACKED;
        self.stack.push(value);
        match (full, same) {
            (true, _) => Err(ChannelError::Full),
            (_, true) => Err(ChannelError::Same),
            _ => Ok(()),
        }
    }

    /// Pops `value`. If another is on top, everything above the innermost `value` is removed with it; if
    /// there is none, nothing changes.
    #[inline]
    pub(crate) fn pop(&mut self, value: i64) -> Result<(), ChannelError> {
        match self.stack.last() {
            Some(top) if *top == value => {
                self.stack.pop();
                Ok(())
            }
            None => Err(ChannelError::Empty),
            Some(&top) => {
                // A damaged trace may pop wrongly again and again; looking no deeper than a regular
                // stack keeps that linear.
                let reach = self.stack.len().saturating_sub(MAX_STACKED);
                if let Some(position) = self.stack[reach..].iter().rposition(|other| *other == value) {
                    self.stack.truncate(reach + position);
                }
                Err(ChannelError::Mismatch(top))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unmatched_pop_drops_values_above_the_match() {
        let mut channel = ChannelState::default();
        for value in [1, 2, 3] {
            channel.push(value, false).unwrap();
        }
        assert_eq!(channel.pop(9), Err(ChannelError::Mismatch(3)));
        assert_eq!(channel.value(), Some(3));
        assert_eq!(channel.pop(2), Err(ChannelError::Mismatch(3)));
        assert_eq!(channel.value(), Some(1));
        assert_eq!(channel.pop(1), Ok(()));
        assert_eq!(channel.pop(1), Err(ChannelError::Empty));
    }

    #[test]
    fn repeated_values_are_errors_where_they_may_not_be() {
        let mut channel = ChannelState::new(Some(100));
        assert_eq!(channel.set(Some(100), false), Err(ChannelError::Same));
        assert_eq!(channel.set(Some(100), true), Ok(()));
        assert_eq!(channel.push(7, false), Ok(()));
        assert_eq!(channel.push(7, false), Err(ChannelError::Same));
    }
}
