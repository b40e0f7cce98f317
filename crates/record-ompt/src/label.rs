//! Type names that are unique and meaningful without symbols: `task@heat+0x1a2b`.

use std::io::Write as _;

use crate::abi::work;
use crate::sampler::modules::MappedModule;

/// Prefix of the label of a worksharing construct of this OMPT kind.
pub fn work_name(kind: u32) -> &'static str {
    match kind {
        work::SECTIONS => "sections",
        work::SINGLE_EXECUTOR => "single",
        work::WORKSHARE => "workshare",
        work::DISTRIBUTE => "distribute",
        work::TASKLOOP => "taskloop",
        work::SCOPE => "scope",
        _ => "for",
    }
}

/// ovni's emulator takes labels of at most 511 bytes.
const LABEL_BYTES: usize = 512;

/// A label on the stack, always with a NUL at its end.
pub struct Label {
    bytes: [u8; LABEL_BYTES],
    used: usize,
}

impl Label {
    /// Builds the label of a construct, from the address of its code and the module.
    pub fn of(construct: &str, address: Option<u64>, module: Option<&MappedModule>) -> Label {
        let mut label = Label { bytes: [0; LABEL_BYTES], used: 0 };
        // Writing fails only when the label is full, and then truncates it.
        let _ = write!(label, "{construct}@");
        let _ = match (address, module) {
            (Some(address), Some(module)) => {
                for byte in module.file_name() {
                    let _ = label.write(&[if byte.is_ascii_graphic() { *byte } else { b'?' }]);
                }
                write!(label, "+{:#x}", address.wrapping_sub(module.bias))
            }
            (Some(address), None) => write!(label, "{address:#x}"),
            (None, _) => write!(label, "unknown"),
        };
        label
    }

    /// The label with its NUL.
    pub fn as_bytes_with_nul(&self) -> &[u8] {
        self.bytes.get(..=self.used).unwrap_or(&[0])
    }
}

impl std::io::Write for Label {
    fn write(&mut self, text: &[u8]) -> std::io::Result<usize> {
        let room = self.bytes.get_mut(self.used..LABEL_BYTES - 1).unwrap_or_default();
        let taken = text.len().min(room.len());
        room.iter_mut().zip(text).for_each(|(place, byte)| *place = *byte);
        self.used += taken;
        Ok(taken)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::modules;

    #[test]
    fn labels_name_module_and_offset() {
        let module = modules::find(work_name as fn(u32) -> &'static str as usize as u64).unwrap();
        let name = String::from_utf8_lossy(module.file_name()).into_owned();
        let text = |construct, address, module| {
            String::from_utf8(Label::of(construct, address, module).as_bytes_with_nul().to_vec()).unwrap()
        };
        assert_eq!(text("task", Some(module.bias + 0x40), Some(&module)), format!("task@{name}+0x40\0"));
        assert_eq!(text(work_name(work::SECTIONS), Some(0x1234_5678), None), "sections@0x12345678\0");
        assert_eq!(text(work_name(work::LOOP_STATIC), None, None), "for@unknown\0");
    }

    #[test]
    fn long_labels_are_cut() {
        let label = Label::of(&"0123456789".repeat(100), None, None);
        assert_eq!(label.as_bytes_with_nul().len(), LABEL_BYTES);
        assert_eq!(label.as_bytes_with_nul().last(), Some(&0));
    }
}
