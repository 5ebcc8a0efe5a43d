//! Top-level modules of the library depend on each other in one direction only, in the order of
//! `ARCHITECTURE.md`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// From top to bottom: a module may use only itself and the modules below it.
const ORDER: [&str; 12] = [
    "engine",
    "report",
    "judge",
    "arrivals",
    "facts",
    "http",
    "record",
    "net",
    "pacing",
    "plan",
    "statistics",
    "base",
];

/// Maximum number of entries in the source directory, for readability.
const MAX_ENTRIES: usize = 20;

fn source_directory() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn entries(directory: &Path) -> Vec<PathBuf> {
    let directory_entries = std::fs::read_dir(directory).expect("a readable directory");
    let mut paths: Vec<PathBuf> = directory_entries
        .map(|entry| entry.expect("a directory entry").path())
        .collect();
    paths.sort();
    paths
}

fn module_name(path: &Path) -> String {
    path.file_stem()
        .expect("a file name")
        .to_string_lossy()
        .into_owned()
}

/// Source files of a module, excluding those used only by tests.
fn source_files(directory: &Path) -> Vec<PathBuf> {
    let is_test_only = |path: &Path| ["tests", "oracle"].contains(&module_name(path).as_str());
    let mut files = Vec::new();

    for path in entries(directory) {
        if is_test_only(&path) {
            continue;
        }
        if path.is_dir() {
            files.extend(source_files(&path));
        } else {
            files.push(path);
        }
    }
    files
}

/// Names that follow `crate::` in the code, excluding comments and unit tests.
fn dependencies_of(source: &str) -> BTreeSet<String> {
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    let lines = source
        .lines()
        .take_while(|line| !line.starts_with("mod tests {"));
    let mut dependencies = BTreeSet::new();

    for line in lines.filter(is_code) {
        for path in line.split("crate::").skip(1) {
            let end = path.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
            dependencies.insert(path[..end.unwrap_or(path.len())].to_owned());
        }
    }
    dependencies
}

fn position_in_order(module: &str) -> Option<usize> {
    ORDER.iter().position(|name| *name == module)
}

/// Whether code in `module` may use the name `dependency` at the crate's root.
fn is_allowed(module: &str, dependency: &str) -> bool {
    let positions = position_in_order(module).zip(position_in_order(dependency));
    positions.is_some_and(|(user, used)| user <= used)
}

#[test]
fn modules_depend_only_on_lower_modules() {
    let mut uses = BTreeSet::new();
    let mut violations = Vec::new();

    for module in ORDER {
        for file in source_files(&source_directory().join(module)) {
            let source = std::fs::read_to_string(&file).expect("a source file");
            assert!(
                !source.contains("super::super"),
                "{}: use a path from crate::",
                file.display()
            );

            for dependency in dependencies_of(&source) {
                if !is_allowed(module, &dependency) {
                    violations.push(format!("{}: crate::{dependency}", file.display()));
                }
                uses.insert((module, dependency));
            }
        }
    }

    assert!(
        violations.is_empty(),
        "{module_order}\n{}",
        violations.join("\n"),
        module_order = ORDER.join(" > ")
    );
    assert!(
        uses.contains(&("engine", "report".to_owned())),
        "known dependency not found: {uses:?}"
    );
}

#[test]
fn every_top_level_module_is_in_the_order() {
    let top_level_paths = entries(&source_directory());
    let names: BTreeSet<String> = top_level_paths
        .iter()
        .map(|path| module_name(path))
        .collect();
    let known: BTreeSet<String> = ["bin", "lib"]
        .into_iter()
        .chain(ORDER)
        .map(str::to_owned)
        .collect();

    assert_eq!(names, known);
    assert!(
        top_level_paths.len() <= MAX_ENTRIES,
        "{} entries",
        top_level_paths.len()
    );
}

#[test]
fn a_dependency_on_a_higher_module_is_detected() {
    let source = "\
//! See [`crate::engine`].
use crate::base::clock;
pub(crate) fn report(outcome: crate::judge::Verdict) {}
mod tests {
    use crate::engine::run;
}
";
    let dependencies: Vec<String> = dependencies_of(source).into_iter().collect();

    assert_eq!(dependencies, ["base", "judge"]);
    assert!(is_allowed("record", "base") && is_allowed("record", "record"));
    assert!(!is_allowed("record", "judge"), "a higher module");
    assert!(
        !is_allowed("record", "LoadPlan"),
        "a name that the root exports"
    );
    assert_eq!(
        dependencies_of("use crate::{engine, base};"),
        BTreeSet::from([String::new()])
    );
    assert!(!is_allowed("record", ""), "a group of modules");
}
