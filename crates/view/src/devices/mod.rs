//! Device queues: their use of time, misplaced records, and the accuracy of their clocks.

mod anomaly_text;
mod document;
mod facts;
mod text;

pub use document::*;
pub use facts::{facts, in_time};
pub use text::order_source;
