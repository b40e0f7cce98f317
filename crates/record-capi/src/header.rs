//! The text of `taskscope.h`.

use taskscope_event::Code;
use taskscope_event::framing::{head_word, size_code};
use taskscope_event::models::{instrument, nosv, ovni};
use taskscope_record::layout;

/// The header, with the offsets and codes of this build.
pub fn text() -> String {
    let head = |code: Code, bytes: usize| format!("{:#010x}u", head_word(size_code(bytes), code));
    let values = [
        ("OFFSET_ENTRY_LOCK", layout::ENTRY_LOCK.to_string()),
        ("OFFSET_PENDING", layout::PENDING.to_string()),
        ("OFFSET_FILTER", layout::FILTER.to_string()),
        ("OFFSET_OWNER", layout::OWNER.to_string()),
        ("OFFSET_CLOCK", layout::CLOCK.to_string()),
        ("OFFSET_POSITION", layout::POSITION.to_string()),
        ("OFFSET_END", layout::END.to_string()),
        ("OFFSET_REGION_END", layout::REGION_END.to_string()),
        ("OFFSET_OWN_POSITION", layout::OWN_POSITION.to_string()),
        ("OFFSET_OWN_END", layout::OWN_END.to_string()),
        ("HEAD_STATE_PUSH", head(instrument::STATE_PUSH, 4)),
        ("HEAD_STATE_POP", head(instrument::STATE_POP, 4)),
        ("HEAD_STATES_HIDE", head(instrument::STATES_HIDE, 0)),
        ("HEAD_STATES_SHOW", head(instrument::STATES_SHOW, 0)),
        ("HEAD_BURST_OPEN", head(instrument::BURST_OPEN, 12)),
        ("HEAD_BURST_CLOSE", head(instrument::BURST_CLOSE, 12)),
        ("HEAD_BOTH_OPEN", head(instrument::STATE_AND_BURST_OPEN, 16)),
        ("HEAD_BOTH_CLOSE", head(instrument::STATE_AND_BURST_CLOSE, 16)),
        ("HEAD_KEY_POINT", head(instrument::POINT, 12)),
        ("HEAD_CONTEXT_CREATE", head(instrument::TASK_CREATE, 12)),
        ("HEAD_CONTEXT_ENTER", head(instrument::TASK_ENTER, 8)),
        ("HEAD_CONTEXT_LEAVE", head(instrument::TASK_LEAVE, 8)),
        ("HEAD_CONTEXT_YIELD", head(instrument::TASK_YIELD, 8)),
        ("HEAD_CONTEXT_SWITCH", head(instrument::TASK_SWITCH, 16)),
        ("HEAD_CONTEXT_READY", head(instrument::TASK_READY, 8)),
        ("HEAD_CONTEXT_END", head(instrument::TASK_END, 8)),
        ("HEAD_POINT", head(ovni::BURST, 0)),
        ("HEAD_SPAN_BEGIN", head(ovni::MARK_PUSH, 12)),
        ("HEAD_SPAN_END", head(ovni::MARK_POP, 12)),
        ("HEAD_VALUE", head(ovni::MARK_SET, 12)),
        ("HEAD_TASK_CREATE", head(nosv::TASK_CREATE, 8)),
        ("HEAD_TASK_BEGIN", head(nosv::TASK_EXECUTE, 8)),
        ("HEAD_TASK_END", head(nosv::TASK_END, 8)),
    ];
    let mut text = include_str!("taskscope.h.in").to_owned();
    for (name, value) in values {
        text = text.replace(&format!("@{name}@"), &value);
    }
    text
}

#[cfg(test)]
mod tests {
    /// `UPDATE_HEADER=1 cargo test -p taskscope-record-capi` writes the file anew.
    #[test]
    fn the_header_is_in_step() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/include/taskscope.h");
        if std::env::var_os("UPDATE_HEADER").is_some() {
            std::fs::write(path, super::text()).unwrap();
        }
        let file = std::fs::read_to_string(path).unwrap();
        assert!(file == super::text(), "run UPDATE_HEADER=1 cargo test -p taskscope-record-capi");
        assert!(!file.contains('@'));
    }

    #[test]
    fn the_library_is_not_older_than_the_headers_requirement() {
        use taskscope_record::layout::*;
        // The header reads them as neighbours.
        assert_eq!(PENDING, ENTRY_LOCK + 8);
        assert_eq!(CLOCK_BYTES, 40);
    }

    /// `struct taskscope_site_` of the header.
    #[repr(C)]
    struct SiteInC {
        number: u32,
        listed: u32,
        next: *mut SiteInC,
    }

    #[test]
    fn a_site_of_c_is_one_of_rust() {
        use taskscope_record::instrument::named::Site;
        assert_eq!((size_of::<SiteInC>(), align_of::<SiteInC>()), (size_of::<Site>(), align_of::<Site>()));
    }
}
