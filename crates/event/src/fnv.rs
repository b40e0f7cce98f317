//! FNV-1a of 64 bits: checksums and identities in files that recorders write and readers check.

/// The hash of no bytes.
pub const FNV_START: u64 = 0xcbf2_9ce4_8422_2325;

/// The hash of bytes that follow those of `hash`.
pub fn fnv1a(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(hash, |hash, byte| (hash ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_the_published_ones() {
        assert_eq!(fnv1a(FNV_START, b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(FNV_START, b"a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a(FNV_START, b"foobar"), 0x8594_4171_f739_67e8);
        assert_eq!(fnv1a(fnv1a(FNV_START, b"foo"), b"bar"), fnv1a(FNV_START, b"foobar"));
    }
}
