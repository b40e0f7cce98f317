//! Limits of the control groups that a process is in, on CPUs and on tasks: version 2, or a controller of version 1.

use crate::watched_process;
use std::fs;
use std::path::{Component, Path, PathBuf};

/// Deeper hierarchies are cut at their leaves' side.
const MAX_LEVELS: usize = 64;

/// The limit that holds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quota {
    /// Thousandths of a CPU; 0 if no group has a limit.
    pub millicpus: u64,
    /// The group with the lowest limit, as `/proc/PID/cgroup` names it; empty if no group has a limit.
    pub cgroup: String,
}

/// Losses to the groups' limits since their creation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Throttled {
    /// Enforcement periods in which a limit was reached.
    pub periods: u64,
    /// Time without CPUs, nanoseconds, summed over the CPUs on which the groups had runnable threads.
    pub ns: u64,
}

/// The groups of a process, from its own to the outermost that is visible.
#[derive(Clone, Debug, Default)]
pub struct Cgroups {
    levels: Vec<Level>,
}

#[derive(Clone, Debug)]
struct Level {
    directory: PathBuf,
    name: String,
}

impl Cgroups {
    /// The groups of the watched process, mostly the calling one, that limit CPUs; none if the kernel or a container hides them.
    pub fn calling_process() -> Cgroups {
        Cgroups::from_controller("cpu")
    }

    fn from_controller(controller: &str) -> Cgroups {
        let process = watched_process::directory();
        let text = |file| fs::read_to_string(format!("{process}/{file}")).unwrap_or_default();
        // Directories are those that the reader sees.
        let mounts = fs::read_to_string("/proc/self/mountinfo").unwrap_or_default();
        Cgroups::find(controller, &text("cgroup"), &mounts)
    }

    fn find(controller: &str, groups: &str, mounts: &str) -> Cgroups {
        // The controller is in one of the versions; that of version 1 has a line of its own.
        let fields = |line: &str| {
            let mut parts = line.splitn(3, ':').skip(1);
            Some((parts.next()?.to_owned(), parts.next()?.to_owned()))
        };
        let lines: Vec<(String, String)> = groups.lines().filter_map(fields).collect();
        let v1 = lines.iter().find(|(controllers, _)| controllers.split(',').any(|name| name == controller));
        let v2 = || lines.iter().find(|(controllers, _)| controllers.is_empty());
        let Some((_, group)) = v1.or_else(v2) else { return Cgroups::default() };
        let Some((root, point)) = mounts.lines().find_map(|line| mount(line, v1.map(|_| controller))) else {
            return Cgroups::default();
        };
        // In a container the group may be named from the host's root, or from above the visible one.
        let group = Path::new(group);
        let below = group.strip_prefix(&root).or_else(|_| group.strip_prefix("/")).unwrap_or(Path::new(""));
        let below = if below.components().all(|part| matches!(part, Component::Normal(_))) {
            below
        } else {
            Path::new("")
        };
        let levels = below.ancestors().take(MAX_LEVELS);
        let level = |below: &Path| Level {
            directory: point.join(below),
            name: Path::new("/").join(below).display().to_string(),
        };
        Cgroups { levels: levels.map(level).collect() }
    }

    /// The lowest limit; `None` if no group is visible.
    pub fn quota(&self) -> Option<Quota> {
        self.levels.first()?;
        let limits = self.levels.iter().filter_map(|level| Some((limit(&level.directory)?, &level.name)));
        let lowest = limits.min_by_key(|(millicpus, _)| *millicpus);
        Some(lowest.map_or(Quota { millicpus: 0, cgroup: String::new() }, |(millicpus, name)| Quota {
            millicpus,
            cgroup: name.clone(),
        }))
    }

    fn room_for_tasks(&self) -> Option<u64> {
        let number = |directory: &Path, name: &str| -> Option<u64> {
            fs::read_to_string(directory.join(name)).ok()?.trim().parse().ok()
        };
        let room = |level: &Level| {
            let limit = number(&level.directory, "pids.max")?;
            Some(limit.saturating_sub(number(&level.directory, "pids.current")?))
        };
        self.levels.iter().filter_map(room).min()
    }

    /// Losses to the limits so far, summed over the groups; `None` if nothing is counted.
    pub fn throttled(&self) -> Option<Throttled> {
        let counts = self.levels.iter().filter_map(|level| counts(&level.directory));
        counts.reduce(|sum, counts| Throttled {
            periods: sum.periods.saturating_add(counts.periods),
            ns: sum.ns.saturating_add(counts.ns),
        })
    }
}

/// Number of further processes and threads that the control groups allow the calling process; `None` without a limit.
pub fn room_for_tasks() -> Option<u64> {
    Cgroups::from_controller("pids").room_for_tasks()
}

/// Root and mount point of a line of `mountinfo` that is about control groups: those of a controller of version 1, or version 2.
fn mount(line: &str, controller: Option<&str>) -> Option<(PathBuf, PathBuf)> {
    let (own, file_system) = line.split_once(" - ")?;
    let mut file_system = file_system.split(' ');
    let (kind, options) = (file_system.next()?, file_system.nth(1)?);
    let fits = match controller {
        Some(controller) => kind == "cgroup" && options.split(',').any(|option| option == controller),
        None => kind == "cgroup2",
    };
    let mut own = own.split(' ').skip(3);
    let (root, point) = (own.next()?, own.next()?);
    fits.then(|| (unescape(root).into(), unescape(point).into()))
}

/// Blanks and the like are octal there.
fn unescape(text: &str) -> String {
    text.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")
}

/// Thousandths of a CPU that a group may use; `None` without a limit.
fn limit(directory: &Path) -> Option<u64> {
    let text = |name: &str| fs::read_to_string(directory.join(name)).ok();
    let (quota, period) = match text("cpu.max") {
        Some(max) => {
            let mut words = max.split_ascii_whitespace();
            (words.next()?.parse::<u64>().ok()?, words.next()?.parse::<u64>().ok()?)
        }
        None => {
            (text("cpu.cfs_quota_us")?.trim().parse().ok()?, text("cpu.cfs_period_us")?.trim().parse().ok()?)
        }
    };
    // A limit below a thousandth is one.
    Some((quota.saturating_mul(1000)).checked_div(period)?.max(1))
}

fn counts(directory: &Path) -> Option<Throttled> {
    let text = fs::read_to_string(directory.join("cpu.stat")).ok()?;
    let value = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '))?;
        line.trim().parse::<u64>().ok()
    };
    let ns = value("throttled_usec").map(|us| us.saturating_mul(1000)).or_else(|| value("throttled_time"));
    Some(Throttled { periods: value("nr_throttled")?, ns: ns? })
}

#[cfg(test)]
mod tests {
    use super::*;

    const V2: &str = "30 23 0:26 / CG rw,nosuid shared:4 - cgroup2 cgroup2 rw,nsdelegate\n";
    const V1: &str = "31 23 0:28 / /sys/fs/cgroup rw - tmpfs tmpfs rw\n\
                      32 31 0:30 / /elsewhere rw - cgroup cgroup rw,cpuset\n\
                      33 31 0:29 /docker/ab CG rw - cgroup cgroup rw,cpu,cpuacct\n";

    /// Quota and throttling that are found in a hierarchy of these files, which is mounted as `CG`.
    fn read(lines: &str, mounts: &str, files: &[(&str, &str)]) -> (Option<Quota>, Option<Throttled>) {
        let here = tempfile::tempdir().unwrap();
        let root = here.path();
        for (path, text) in files {
            let path = root.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let groups = Cgroups::find("cpu", lines, &mounts.replace("CG", root.to_str().unwrap()));
        (groups.quota(), groups.throttled())
    }

    #[test]
    fn the_lowest_limit_of_the_hierarchy_holds() {
        let (quota, throttled) = read(
            "0::/a/b\n",
            V2,
            &[
                ("a/b/cpu.max", "max 100000\n"),
                ("a/cpu.max", "150000 100000\n"),
                ("a/b/cpu.stat", "usage_usec 9\nnr_periods 4\nnr_throttled 1\nthrottled_usec 20\n"),
                ("a/cpu.stat", "usage_usec 9\nnr_periods 4\nnr_throttled 3\nthrottled_usec 50\n"),
                ("cpu.stat", "usage_usec 9\n"),
            ],
        );
        assert_eq!(quota, Some(Quota { millicpus: 1500, cgroup: "/a".into() }));
        assert_eq!(throttled, Some(Throttled { periods: 4, ns: 70_000 }));
    }

    #[test]
    fn a_container_of_version_one_has_its_limit_at_the_mount_point() {
        let lines = "5:cpuset:/docker/ab\n4:cpu,cpuacct:/docker/ab\n0::/\n";
        let (quota, throttled) = read(
            lines,
            V1,
            &[
                ("cpu.cfs_quota_us", "50000\n"),
                ("cpu.cfs_period_us", "100000\n"),
                ("cpu.stat", "nr_periods 9\nnr_throttled 2\nthrottled_time 31\n"),
            ],
        );
        assert_eq!(quota, Some(Quota { millicpus: 500, cgroup: "/".into() }));
        assert_eq!(throttled, Some(Throttled { periods: 2, ns: 31 }));
    }

    #[test]
    fn without_limits_or_groups_nothing_is_claimed() {
        let (quota, throttled) =
            read("0::/../x\n", V2, &[("cpu.max", "max 100000\n"), ("cpu.stat", "usage_usec 1\n")]);
        assert_eq!(quota, Some(Quota { millicpus: 0, cgroup: String::new() }));
        assert_eq!(throttled, None);
        for (lines, mounts) in [("", ""), ("0::/", ""), ("4:cpu:/a", V2), ("::::", V1), ("x", "y - z")] {
            assert_eq!(Cgroups::find("cpu", lines, mounts).quota(), None, "{lines}");
        }
    }
}
