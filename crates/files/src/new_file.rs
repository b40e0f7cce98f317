//! Files written under a new name.

use crate::read::not_regular;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// Names that are tried for a new file.
const ATTEMPTS: u32 = 1000;
/// Longest name that gets an ending; file systems take 255 bytes.
const MAX_NAME_BYTES: usize = 230;

/// A file that is being written beside its target, which it replaces when it is complete. Dropped before, it is removed.
#[derive(Debug)]
pub struct NewFile {
    file: File,
    /// Empty if there is nothing to rename or remove.
    temporary: PathBuf,
    target: PathBuf,
}

impl NewFile {
    /// Begins a file for `target`, readable by whom the umask permits. The name meanwhile is the target's with
    /// `.<process>.part` behind it, or with a number more if that exists.
    ///
    /// # Errors
    /// Those of the system; [`io::ErrorKind::InvalidInput`] if the target is a symbolic link or another file
    /// that is not regular.
    pub fn create(target: &Path) -> io::Result<NewFile> {
        NewFile::with_mode(target, 0o666)
    }

    /// Begins a file for `target`, with these permissions at most; otherwise as [`NewFile::create`].
    ///
    /// # Errors
    /// Those of [`NewFile::create`].
    pub fn with_mode(target: &Path, mode: u32) -> io::Result<NewFile> {
        require_replaceable(target)?;
        NewFile::beside(target, mode)
    }

    /// Begins a file for `target` in a directory that the user named for outputs. A pipe there is written
    /// directly; waits for its reader.
    ///
    /// # Errors
    /// Those of [`NewFile::create`].
    pub fn create_or_pipe(target: &Path) -> io::Result<NewFile> {
        let is_pipe = target.symlink_metadata().is_ok_and(|metadata| metadata.file_type().is_fifo());
        if !is_pipe {
            return NewFile::create(target);
        }
        let file = OpenOptions::new().write(true).custom_flags(libc::O_NOFOLLOW).open(target)?;
        Ok(NewFile { file, temporary: PathBuf::new(), target: target.to_owned() })
    }

    /// Whether it is a pipe, which cannot be written again and keeps its name.
    pub fn is_pipe(&self) -> bool {
        self.temporary.as_os_str().is_empty()
    }

    /// Begins a file that is to replace a symbolic link of this program ([`NewFile::replace_link`]).
    ///
    /// # Errors
    /// Those of the system.
    pub fn in_place_of_link(target: &Path) -> io::Result<NewFile> {
        NewFile::beside(target, 0o666)
    }

    fn beside(target: &Path, mode: u32) -> io::Result<NewFile> {
        let (file, temporary) = create_beside(target, mode)?;
        Ok(NewFile { file, temporary, target: target.to_owned() })
    }

    /// The file, to be written.
    pub fn file(&self) -> &File {
        &self.file
    }

    /// Its name until it is complete.
    pub fn temporary(&self) -> &Path {
        &self.temporary
    }

    /// Gives it the target's name.
    ///
    /// # Errors
    /// Those of [`NewFile::create`]; the new file is removed then, and the target is unchanged.
    pub fn commit(mut self) -> io::Result<()> {
        if self.is_pipe() {
            return Ok(());
        }
        require_replaceable(&self.target)?;
        self.rename()
    }

    /// Gives it the target's name, which may be that of a symbolic link: the link itself is replaced. For links that this
    /// program made.
    ///
    /// # Errors
    /// Those of the system; the new file is removed then.
    pub fn replace_link(mut self) -> io::Result<()> {
        self.rename()
    }

    fn rename(&mut self) -> io::Result<()> {
        fs::rename(&self.temporary, &self.target)?;
        self.temporary = PathBuf::new();
        Ok(())
    }
}

impl Drop for NewFile {
    fn drop(&mut self) {
        if !self.temporary.as_os_str().is_empty() {
            // A file that cannot be removed is harmless.
            let _ = fs::remove_file(&self.temporary);
        }
    }
}

impl Write for NewFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

/// Fails if a file of this name must not be replaced.
fn require_replaceable(target: &Path) -> io::Result<()> {
    match target.symlink_metadata() {
        Ok(metadata) if metadata.is_symlink() => Err(is_link()),
        Ok(metadata) if !metadata.is_file() => Err(not_regular()),
        Ok(_) => Ok(()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn is_link() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "it is a symbolic link, through which nothing is written")
}

fn create_beside(target: &Path, mode: u32) -> io::Result<(File, PathBuf)> {
    // `create_new` neither follows links nor opens existing files.
    beside(target, |path| File::options().read(true).write(true).create_new(true).mode(mode).open(path))
}

/// Creates something beside `target` under the first free name; also returns its path.
///
/// # Errors
/// Those of `create`; [`io::ErrorKind::AlreadyExists`] if all names are taken.
pub(crate) fn beside<T>(target: &Path, create: impl Fn(&Path) -> io::Result<T>) -> io::Result<(T, PathBuf)> {
    let name = target.file_name().ok_or(io::ErrorKind::InvalidInput)?;
    let name = if name.len() > MAX_NAME_BYTES { "taskscope".as_ref() } else { name };
    let process = std::process::id();
    for attempt in 0..ATTEMPTS {
        let mut name = name.to_owned();
        match attempt {
            0 => name.push(format!(".{process}.part")),
            _ => name.push(format!(".{process}.{attempt}.part")),
        }
        let path = target.with_file_name(name);
        match create(&path) {
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            created => return created.map(|created| (created, path)),
        }
    }
    Err(io::ErrorKind::AlreadyExists.into())
}

/// Writes a whole file through a buffer, or none.
///
/// # Errors
/// Those of [`NewFile`] and of `write`; the target is unchanged then.
pub fn write_file(
    target: &Path,
    write: impl FnOnce(&mut BufWriter<NewFile>) -> io::Result<()>,
) -> io::Result<()> {
    let mut out = BufWriter::new(NewFile::create(target)?);
    write(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.commit()
}

/// Writes an output that the user named: as [`write_file`], but pipes and devices are written directly, and
/// so are the standard streams (`/dev/stdout`, `/dev/fd/3`). `begun` receives the temporary name.
///
/// # Errors
/// Those of the system and of `write`.
pub fn write_named(
    target: &Path,
    begun: impl FnOnce(&Path),
    write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
) -> io::Result<()> {
    let is_stream = || {
        let parent = target.parent().and_then(|parent| parent.canonicalize().ok());
        parent.is_some_and(|parent| parent == Path::new("/dev") || parent.starts_with("/proc"))
    };
    let is_other = target.metadata().is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir());
    if is_other || is_stream() {
        // The stream may be a file with content, as after `>> FILE`.
        let mut out = BufWriter::new(OpenOptions::new().append(true).open(target)?);
        write(&mut out)?;
        return out.flush();
    }
    let file = NewFile::create(target)?;
    begun(file.temporary());
    let mut out = BufWriter::new(file);
    write(&mut out)?;
    out.into_inner().map_err(io::IntoInnerError::into_error)?.commit()
}

/// Opens a file to be extended, or creates it. For files in directories that this program made.
///
/// # Errors
/// Those of the system; [`io::ErrorKind::InvalidInput`] for links, files with several names, and other files
/// that are not regular.
pub fn append_regular(path: &Path) -> io::Result<File> {
    open_single(OpenOptions::new().append(true).create(true), path)
}

/// Opens a file that exists to be written over, in place. For small parts of files of this program.
///
/// # Errors
/// Those of [`append_regular`]; [`io::ErrorKind::NotFound`] if there is none.
pub fn overwrite_regular(path: &Path) -> io::Result<File> {
    open_single(OpenOptions::new().read(true).write(true), path)
}

fn open_single(options: &mut OpenOptions, path: &Path) -> io::Result<File> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = match options.custom_flags(flags).open(path) {
        Err(error) if error.raw_os_error() == Some(libc::ELOOP) => return Err(is_link()),
        opened => opened?,
    };
    let metadata = file.metadata()?;
    if !metadata.is_file() || metadata.nlink() > 1 {
        return Err(not_regular());
    }
    Ok(file)
}

/// A file for reading and writing in the directory of `target`, which has no name and is gone when it is closed.
///
/// # Errors
/// Those of the system.
pub fn file_without_name(target: &Path) -> io::Result<File> {
    let (file, path) = create_beside(target, 0o600)?;
    fs::remove_file(path)?;
    Ok(file)
}

/// Removes a regular file, with any other names; other files stay.
pub fn remove_regular(path: &Path) {
    if path.symlink_metadata().is_ok_and(|metadata| metadata.is_file()) {
        // A remaining file is reported when it is written.
        let _ = fs::remove_file(path);
    }
}

/// Creates the directory `below` of `root` with all directories between, none of which may be a symbolic link. The root
/// itself, which the user named, may be one. Returns the directory's path.
///
/// # Errors
/// Those of the system; [`io::ErrorKind::InvalidInput`] if a link or a file is in the way.
pub fn create_directory_below(root: &Path, below: impl AsRef<Path>) -> io::Result<PathBuf> {
    fs::create_dir_all(root)?;
    let mut directory = root.to_owned();
    for part in below.as_ref().components() {
        directory.push(part);
        match fs::create_dir(&directory) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => return Err(error),
            Err(_) if !directory.symlink_metadata()?.is_dir() => {
                let text = format!("{}: it is not a directory of its own", directory.display());
                return Err(io::Error::new(io::ErrorKind::InvalidInput, text));
            }
            _ => {}
        }
    }
    Ok(directory)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::{PermissionsExt, symlink};

    fn names(directory: &Path) -> Vec<String> {
        let names = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn links_are_refused_and_hard_links_keep_their_content() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("victim"), "precious").unwrap();
        symlink("victim", at("soft")).unwrap();
        symlink("nowhere", at("broken")).unwrap();
        fs::hard_link(at("victim"), at("hard")).unwrap();
        for name in ["soft", "broken"] {
            let error = write_file(&at(name), |out| out.write_all(b"new")).unwrap_err();
            assert!(error.to_string().contains("symbolic link"), "{name}: {error}");
            assert!(write_named(&at(name), |_| {}, |out| out.write_all(b"new")).is_err());
            assert!(append_regular(&at(name)).is_err());
            assert!(overwrite_regular(&at(name)).is_err());
        }
        assert!(append_regular(&at("hard")).is_err() && overwrite_regular(&at("hard")).is_err());
        assert_eq!(overwrite_regular(&at("none")).unwrap_err().kind(), io::ErrorKind::NotFound);
        write_file(&at("hard"), |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(at("victim")).unwrap(), b"precious");
        assert_eq!(fs::read(at("hard")).unwrap(), b"new");
        assert_eq!(names(directory.path()), ["broken", "hard", "soft", "victim"]);
    }

    #[test]
    fn names_that_exist_are_not_written() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let part = format!("out.{}.part", std::process::id());
        fs::write(at("victim"), "precious").unwrap();
        symlink("victim", at(&part)).unwrap();
        write_file(&at("out"), |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(at("victim")).unwrap(), b"precious");
        assert_eq!(fs::read(at("out")).unwrap(), b"new");
        let _nameless = file_without_name(&at("out")).unwrap();
        assert_eq!(names(directory.path()), ["out", &part, "victim"]);
    }

    #[test]
    fn unfinished_files_are_removed_and_the_target_stays() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("x".repeat(250));
        fs::write(&target, "old").unwrap();
        assert!(write_file(&target, |_| Err(io::ErrorKind::StorageFull.into())).is_err());
        assert_eq!((fs::read(&target).unwrap(), names(directory.path()).len()), (b"old".to_vec(), 1));
        let private = NewFile::with_mode(&directory.path().join("private"), 0o600).unwrap();
        assert_eq!(private.file().metadata().unwrap().permissions().mode() & 0o777, 0o600);
        private.commit().unwrap();
        assert!(directory.path().join("private").exists());
    }

    #[test]
    fn pipes_are_written_only_where_the_user_names_them() {
        let directory = tempfile::tempdir().unwrap();
        let pipe = directory.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        assert!(NewFile::create(&pipe).is_err());
        let reader = std::thread::spawn({
            let pipe = pipe.clone();
            move || fs::read(pipe).unwrap()
        });
        write_named(&pipe, |_| {}, |out| out.write_all(b"words")).unwrap();
        assert_eq!(reader.join().unwrap(), b"words");
    }

    #[test]
    fn a_stream_that_is_a_file_keeps_its_content() {
        use std::os::fd::AsRawFd;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("log");
        fs::write(&path, "old ").unwrap();
        let stream = File::options().append(true).open(&path).unwrap();
        let name = format!("/dev/fd/{}", stream.as_raw_fd());
        write_named(Path::new(&name), |_| {}, |out| out.write_all(b"new")).unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"old new");
    }

    #[test]
    fn directories_behind_links_are_not_entered() {
        let directory = tempfile::tempdir().unwrap();
        let (root, victim) = (directory.path().join("root"), directory.path().join("victim"));
        fs::create_dir(&victim).unwrap();
        assert!(create_directory_below(&root, "a/b").unwrap().is_dir());
        symlink(&victim, root.join("cfg")).unwrap();
        assert!(create_directory_below(&root, "cfg/thread").is_err());
        assert!(names(&victim).is_empty());
        let link = directory.path().join("link");
        symlink(&root, &link).unwrap();
        assert!(create_directory_below(&link, "c").unwrap().is_dir(), "the root may be a link");
    }
}
