//! Messages of protocol buffers, written field by field: no structure is built for a packet.

use prost::encoding::{WireType, encode_key, encode_varint};

/// A message under construction.
#[derive(Default)]
pub(super) struct Message(Vec<u8>);

impl Message {
    pub(super) fn bytes(&self) -> &[u8] {
        &self.0
    }

    pub(super) fn clear(&mut self) {
        self.0.clear();
    }

    pub(super) fn varint(&mut self, field: u32, value: u64) {
        encode_key(field, WireType::Varint, &mut self.0);
        encode_varint(value, &mut self.0);
    }

    pub(super) fn fixed64(&mut self, field: u32, value: u64) {
        encode_key(field, WireType::SixtyFourBit, &mut self.0);
        self.0.extend(value.to_le_bytes());
    }

    pub(super) fn text(&mut self, field: u32, text: &str) {
        encode_key(field, WireType::LengthDelimited, &mut self.0);
        encode_varint(text.len() as u64, &mut self.0);
        self.0.extend(text.as_bytes());
    }

    /// A message in the message. Its length is one byte, which is replaced if that is too short.
    pub(super) fn message(&mut self, field: u32, write: impl FnOnce(&mut Message)) {
        encode_key(field, WireType::LengthDelimited, &mut self.0);
        let at = self.0.len();
        self.0.push(0);
        write(self);
        let length = self.0.len() - at - 1;
        if length < 0x80 {
            self.0[at] = length as u8;
        } else {
            let mut prefix = Vec::new();
            encode_varint(length as u64, &mut prefix);
            self.0.splice(at..=at, prefix);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Message;

    #[test]
    fn lengths_take_as_many_bytes_as_needed() {
        for length in [0, 127, 128, 20_000] {
            let mut message = Message::default();
            message.message(1, |inner| inner.text(2, &"x".repeat(length)));
            let mut expected = vec![10];
            let mut inner = prost::bytes::BytesMut::new();
            prost::encoding::string::encode(2, &"x".repeat(length), &mut inner);
            prost::encoding::encode_varint(inner.len() as u64, &mut expected);
            expected.extend(inner);
            assert_eq!(message.bytes(), expected, "{length}");
        }
    }
}
