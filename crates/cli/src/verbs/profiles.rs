//! Profiles, and call paths of traces and profiles, for the subcommands that read either.

use crate::messages::Failure;
use crate::opening::a_profile;
use std::path::{Path, PathBuf};
use taskscope_analysis::call_paths::{CallPathOptions, TaskContext, profile_of};
use taskscope_profile::Profile;
use taskscope_profile::named::CallTree;
use taskscope_session::{KeptModules, merge_profiles, profile_files};

/// Rejects the execution context for profiles: they have the creation of tasks only.
pub fn check_context(profile: &Path, context: TaskContext) -> anyhow::Result<()> {
    match context {
        TaskContext::Creation => Ok(()),
        TaskContext::Execution => Err(a_profile(profile).into()),
    }
}

/// The profiles at a path, merged, and files that were kept beside them; `None` if there are none. Damaged files are
/// reported on stderr.
///
/// # Errors
/// If there are files and none can be read.
pub fn open_profile(path: &Path) -> anyhow::Result<Option<(Profile, KeptModules)>> {
    let files = profile_files(path);
    if files.is_empty() {
        return Ok(None);
    }
    let merged = merge_profiles(&files);
    if merged.files == 0 {
        let why = merged.problems.first().map(ToString::to_string).unwrap_or_default();
        return Err(Failure::new(format!("cannot read the profile {}", path.display())).why(why).into());
    }
    for problem in &merged.problems {
        eprintln!("warning: {}; it is left out", taskscope_view::format::harmless(&problem.to_string()));
    }
    let kept = KeptModules::beside_profiles(files.iter().map(PathBuf::as_path));
    Ok(Some((merged.profile, kept)))
}

/// The named paths of a trace or a profile, for subcommands that take either.
///
/// # Errors
/// If there is nothing to read.
pub fn open_tree(path: &Path, context: TaskContext) -> anyhow::Result<CallTree> {
    let (profile, kept) = match open_profile(path)? {
        Some(found) => {
            check_context(path, context)?;
            found
        }
        None => {
            let session = super::open(path)?;
            let options = CallPathOptions { task_context: context };
            (profile_of(&session.execution, options).0, KeptModules::in_trace(&session.root))
        }
    };
    Ok(named(&profile, kept))
}

/// The paths of a profile with names; files without names are reported on stderr.
pub fn named(profile: &Profile, kept: KeptModules) -> CallTree {
    let (tree, missing) = taskscope_session::name_call_paths(profile, kept);
    for missing in missing.iter().take(3) {
        eprintln!("warning: names are missing: {}", taskscope_view::format::harmless(&missing.to_string()));
    }
    tree
}
