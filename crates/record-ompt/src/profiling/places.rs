//! Addresses as frames of profiles: module and offset.

use taskscope_profile::{Frame, FrameKind, NO_MODULE};

use crate::sampler::code_map::{self, Along, CodeMap, NO_PLACE};

/// Module lookups for consecutive addresses of a path.
pub struct Places(Option<Along<'static>>);

impl Places {
    /// Uses the modules loaded now.
    pub fn now() -> Places {
        Places(code_map::current().map(CodeMap::along))
    }

    /// The frame of an address.
    pub fn frame(&mut self, kind: FrameKind, address: u64) -> Frame {
        match self.0.as_mut().map_or(NO_PLACE, |along| along.place(address)) {
            (u32::MAX, _) => Frame { kind, module: NO_MODULE, offset: address },
            (module, offset) => Frame { kind, module, offset },
        }
    }

    /// Frame of one of a stack's addresses; all but the innermost are return addresses.
    pub fn frame_of(&mut self, kind: FrameKind, addresses: &[u64], index: usize) -> Frame {
        let address = addresses.get(index).copied().unwrap_or(0);
        self.frame(kind, address.wrapping_sub(u64::from(index > 0)))
    }
}
