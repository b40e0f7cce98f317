//! Places of tables as URLs: directories of this machine, and those that the executors of a cluster read.

use crate::failure::Failure;
use std::path::Path;

/// URLs that the executables of Ballista read: objects of S3, and files of their nodes.
const SCHEMES: [&str; 2] = ["s3://", "file:///"];

/// The URL of a directory of this machine. In a path, the engine takes brackets, stars and question marks for a pattern.
pub fn url_of(directory: &Path) -> String {
    let mut url = "file://".to_owned();
    for byte in directory.as_os_str().as_encoded_bytes() {
        match byte {
            b'/' | b'-' | b'_' | b'.' | b'~' => url.push(char::from(*byte)),
            byte if byte.is_ascii_alphanumeric() => url.push(char::from(*byte)),
            byte => url.push_str(&format!("%{byte:02X}")),
        }
    }
    url + "/"
}

/// A URL of the user, with one slash at its end.
///
/// # Errors
/// If executors cannot read it, or it has a query or a fragment, which are not a part of a place.
pub fn store(url: &str) -> Result<String, Failure> {
    let wrong = |why: &str| {
        Failure::new(format!("'{url}' is not a place that executors read"))
            .why(why)
            .remedy("--store s3://BUCKET/RUN.tables, or file:///DIRECTORY/RUN.tables")
    };
    let path = SCHEMES.iter().find_map(|scheme| url.strip_prefix(scheme));
    let path = path.ok_or_else(|| wrong("they read s3:// and file:///"))?;
    if path.is_empty() || path.starts_with('/') {
        return Err(wrong("it has no bucket or directory"));
    }
    if path.contains(['?', '#']) || path.contains(char::is_whitespace) {
        return Err(wrong("question marks, # and blanks are written as %3F, %23, %20"));
    }
    Ok(format!("{}/", url.trim_end_matches('/')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_directories_are_encoded() {
        assert_eq!(url_of(Path::new("/a b/[c]*.tables")), "file:///a%20b/%5Bc%5D%2A.tables/");
    }

    #[test]
    fn places_of_executors_are_objects_or_files() {
        assert_eq!(store("s3://bucket/a/RUN.tables").unwrap(), "s3://bucket/a/RUN.tables/");
        assert_eq!(store("s3://bucket//").unwrap(), "s3://bucket/");
        assert_eq!(store("file:///data/RUN.tables/").unwrap(), "file:///data/RUN.tables/");
        for wrong in
            ["", "s3://", "s3:///x", "file://host/x", "/data", "http://h/x", "s3://b/x?y", "s3://b/x y"]
        {
            assert!(store(wrong).is_err(), "{wrong}");
        }
    }
}
