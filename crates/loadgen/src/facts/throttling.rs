//! CPU throttling of the generator's own cgroup, which makes it send late.

use std::fs;
use std::path::{Path, PathBuf};

/// Number of throttled CPU periods of the process's cgroup so far (cgroup v1 or v2); `None` without
/// a CPU controller.
pub(crate) fn throttled_periods() -> Option<u64> {
    let memberships = fs::read_to_string("/proc/self/cgroup").ok()?;
    let mounts = fs::read_to_string("/proc/self/mountinfo").ok()?;
    memberships
        .lines()
        .filter_map(|line| cgroup_directory(line, &mounts))
        .filter_map(|folder| fs::read_to_string(folder.join("cpu.stat")).ok())
        .filter_map(|text| count(&text))
        .reduce(u64::max)
}

fn count(cpu_stat: &str) -> Option<u64> {
    cpu_stat
        .lines()
        .find_map(|line| line.strip_prefix("nr_throttled "))?
        .trim()
        .parse()
        .ok()
}

/// The directory for one line of `/proc/self/cgroup` (`number:controllers:path`), if its hierarchy
/// has a CPU controller.
fn cgroup_directory(membership: &str, mounts: &str) -> Option<PathBuf> {
    let mut fields = membership.splitn(3, ':').skip(1);
    let (controllers, path) = (fields.next()?, fields.next()?);
    let is_unified = controllers.is_empty();
    if !is_unified && !controllers.split(',').any(|controller| controller == "cpu") {
        return None;
    }
    mounts.lines().find_map(|line| {
        // "36 25 0:31 / /sys/fs/cgroup/cpu rw,… shared:9 - cgroup cgroup rw,cpu,cpuacct"
        let (before, after) = line.split_once(" - ")?;
        let (mut before, mut after) = (before.split(' ').skip(3), after.split(' '));
        let (root, mount_point) = (before.next()?, before.next()?);
        let (kind, options) = (after.next()?, after.nth(1)?);
        let has_cpu_controller = match is_unified {
            true => kind == "cgroup2",
            false => kind == "cgroup" && options.split(',').any(|option| option == "cpu"),
        };
        let below = Path::new(path).strip_prefix(root).ok()?;
        has_cpu_controller.then(|| Path::new(mount_point).join(below))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const MOUNTS: &str = "\
30 25 0:27 / /sys/fs/cgroup/unified rw,nosuid - cgroup2 cgroup2 rw\n\
31 25 0:28 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n\
32 25 0:29 / /sys/fs/cgroup/cpu,cpuacct rw shared:7 - cgroup cgroup rw,cpu,cpuacct\n";

    #[test]
    fn the_cgroup_directory_is_found_in_either_hierarchy() {
        for (line, folder) in [
            (
                "4:cpu,cpuacct:/user/a",
                Some("/sys/fs/cgroup/cpu,cpuacct/user/a"),
            ),
            ("0::/user/b", Some("/sys/fs/cgroup/unified/user/b")),
            ("5:memory:/user/a", None),
            ("6:cpuset:/", None),
            ("nonsense", None),
        ] {
            assert_eq!(
                cgroup_directory(line, MOUNTS),
                folder.map(PathBuf::from),
                "{line}"
            );
        }
    }

    #[test]
    fn in_a_container_the_directory_is_relative_to_its_root() {
        let mounts = "9 1 0:29 /docker/x /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n";
        assert_eq!(
            cgroup_directory("4:cpu:/docker/x/y", mounts),
            Some(PathBuf::from("/sys/fs/cgroup/cpu/y"))
        );
        assert_eq!(cgroup_directory("4:cpu:/elsewhere", mounts), None);
    }

    #[test]
    fn the_count_is_found_among_other_fields() {
        assert_eq!(
            count("nr_periods 10\nnr_throttled 3\nthrottled_time 5\n"),
            Some(3)
        );
        assert_eq!(count("usage_usec 7\n"), None);
    }
}
