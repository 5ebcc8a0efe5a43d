//! How full the kernel's connection tracking table is. Once it is full, the kernel drops new
//! connections and the server looks slow.

use std::fs;
use std::path::Path;

use schemars::JsonSchema;
use serde::Serialize;

const FOLDER: &str = "/proc/sys/net/netfilter";

/// The kernel's connection tracking (conntrack) table. When the table is full, the kernel drops new
/// connections, so the server seems slow (alarm `network-resources`).
#[derive(Clone, Copy, Debug, PartialEq, Eq, JsonSchema, Serialize)]
pub struct TrackedConnections {
    /// Entries of the conntrack table before the first connection of the load.
    pub before: u64,
    /// Entries of the conntrack table after the last connection. The kernel keeps an entry after
    /// its connection has ended, usually for 2 minutes.
    pub after: u64,
    /// Maximum number of entries of the conntrack table.
    pub max: u64,
}

impl TrackedConnections {
    /// Combines two readings of the table.
    pub(crate) fn between(before: TrackingTable, after: TrackingTable) -> Self {
        Self {
            before: before.entries,
            after: after.entries,
            max: after.max,
        }
    }
}

/// One reading of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct TrackingTable {
    entries: u64,
    max: u64,
}

impl TrackingTable {
    /// Reads the table; `None` if the kernel tracks no connections, or does not report it.
    pub fn read() -> Option<Self> {
        Self::read_in(Path::new(FOLDER))
    }

    fn read_in(folder: &Path) -> Option<Self> {
        let number = |name: &str| {
            fs::read_to_string(folder.join(name))
                .ok()?
                .trim()
                .parse()
                .ok()
        };
        Some(Self {
            entries: number("nf_conntrack_count")?,
            max: number("nf_conntrack_max")?,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn table_sizes_are_read_and_missing_ones_are_not_zero() {
        let folder = std::env::temp_dir().join(format!("loadgen-tracking-{}", std::process::id()));
        fs::create_dir_all(&folder).expect("create a folder");

        assert_eq!(
            TrackingTable::read_in(&folder),
            None,
            "the module is not loaded"
        );

        fs::write(folder.join("nf_conntrack_count"), "17\n").expect("write");
        assert_eq!(TrackingTable::read_in(&folder), None, "its size is hidden");

        fs::write(folder.join("nf_conntrack_max"), "262144\n").expect("write");
        let table = TrackingTable::read_in(&folder).expect("both are there");
        fs::remove_dir_all(&folder).expect("remove the folder");
        let later = TrackingTable {
            entries: 4_000,
            ..table
        };
        let seen = TrackedConnections::between(table, later);

        assert_eq!(
            seen,
            TrackedConnections {
                before: 17,
                after: 4_000,
                max: 262_144
            }
        );
    }
}
