//! Kinds of operations, by the words of vendors.

use taskscope_event::models::device::kind;

/// What moves data.
const MOVES: [&str; 8] =
    ["copy", "memcpy", "read", "readbuffer", "write", "writebuffer", "copybuffer", "transfer"];

/// The kind of an operation, as far as it follows from a vendor's word for its kind and from its name.
///
/// Whole words count: a kernel `threads_of_spreadsheet` does not read, and an asynchronous one does not synchronise.
pub(crate) fn kind_of(vendors: &str, name: &str) -> u32 {
    let text = format!("{vendors} {name}");
    let all = words(&text);
    let has = |wanted: &[&str]| all.iter().any(|word| wanted.contains(&word.as_str()));
    let begins = |begin: &str| all.iter().any(|word| word.starts_with(begin));
    let is_kernel = |text: &str| words(text).iter().any(|word| word.starts_with("kernel"));
    // Directions are no parts of other words, and no words of their own: `MemcpyHtoD`.
    let text = text.to_ascii_lowercase();
    let goes = |directions: &[&str]| directions.iter().any(|direction| text.contains(direction));
    if is_kernel(vendors) || vendors.to_ascii_lowercase().contains("ndrange") {
        kind::KERNEL
    } else if has(&MOVES) || begins("memcpy") || begins("memcopy") || begins("memorycopy") {
        if has(&["write", "writebuffer"]) || goes(&["m2d", "h2d", "htod", "to_device"]) {
            kind::COPY_IN
        } else if has(&["read", "readbuffer"]) || goes(&["d2m", "d2h", "dtoh", "from_device"]) {
            kind::COPY_OUT
        } else {
            kind::COPY
        }
    } else if begins("memset") || begins("memfill") || begins("fill") {
        kind::FILL
    } else if begins("sync") || has(&["barrier", "marker"]) {
        kind::SYNCHRONISATION
    } else if has(&["overhead"]) {
        kind::OVERHEAD
    } else if has(&["runtime", "api", "call"]) {
        kind::OTHER_CALL
    } else if is_kernel(name) {
        kind::KERNEL
    } else {
        kind::OTHER
    }
}

/// The words of a name, in lower case: parts between other characters than letters and digits, and those of `camelCase`
/// and `ABCCamelCase`.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut before = ' ';
    let mut rest = text.chars().peekable();
    while let Some(c) = rest.next() {
        let begins = c.is_ascii_uppercase()
            && (before.is_ascii_lowercase() || rest.peek().is_some_and(char::is_ascii_lowercase));
        if begins || !c.is_alphanumeric() {
            words.push(String::new());
        }
        if let Some(word) = words.last_mut().filter(|_| c.is_alphanumeric()) {
            word.push(c.to_ascii_lowercase());
        }
        before = c;
    }
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_are_found_in_every_way_of_writing() {
        for (text, expected) in [
            ("clEnqueueSVMMemcpy", "cl enqueue svm memcpy"),
            ("CL_COMMAND_READ_BUFFER", "cl command read buffer"),
            ("[CUDA memcpy HtoD]", "cuda memcpy hto d"),
            ("void k<float>(int*)", "void k float int"),
            ("", ""),
        ] {
            assert_eq!(words(text).join(" "), expected);
        }
    }

    #[test]
    fn kinds_follow_from_whole_words() {
        for (vendors, name, expected) in [
            ("GPU_KERNEL", "memcpy_like", kind::KERNEL),
            ("CL_COMMAND_NDRANGE_KERNEL", "read", kind::KERNEL),
            ("", "clEnqueueReadBuffer", kind::COPY_OUT),
            ("", "clEnqueueWriteBufferRect", kind::COPY_IN),
            ("", "[CUDA memcpy HtoD]", kind::COPY_IN),
            ("memcpy", "MemcpyDtoH (Device -> Pinned)", kind::COPY_OUT),
            ("gpu_memcpy", "D2M", kind::COPY_OUT),
            ("", "zeCommandListAppendMemoryCopy(M2D)", kind::COPY_IN),
            ("", "Memcpy2D", kind::COPY),
            ("", "GPU_MEM_COPY_P2P", kind::COPY),
            ("", "cudaMemset", kind::FILL),
            ("", "SVMMemFill", kind::FILL),
            ("", "cudaDeviceSynchronize", kind::SYNCHRONISATION),
            ("overhead", "flush", kind::OVERHEAD),
            ("cuda_runtime", "cudaLaunch", kind::OTHER_CALL),
            ("", "my_kernel", kind::KERNEL),
            // Letters of other words.
            ("", "spread_of_threads", kind::OTHER),
            ("", "already_rewritten", kind::OTHER),
            ("", "async_reduce", kind::OTHER),
            ("", "capillary_recall", kind::OTHER),
            ("", "thread_kernel", kind::KERNEL),
            ("", "read_threads", kind::COPY_OUT),
        ] {
            assert_eq!(kind_of(vendors, name), expected, "{vendors} {name}");
        }
    }
}
