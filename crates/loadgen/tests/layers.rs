//! The library's top modules depend on one another in one direction only, in the order of
//! `ARCHITECTURE.md`.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Top down: a module uses only itself and those below it.
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

/// Maximum number of entries in a folder, for readability.
const MAX_ENTRIES: usize = 20;

fn source_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("src")
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let folder_entries = std::fs::read_dir(folder).expect("a readable folder");
    let mut paths: Vec<PathBuf> = folder_entries
        .map(|entry| entry.expect("an entry").path())
        .collect();
    paths.sort();
    paths
}

fn name_of(path: &Path) -> String {
    path.file_stem()
        .expect("a name")
        .to_string_lossy()
        .into_owned()
}

/// Source files of a module, excluding those used only by tests.
fn source_files(folder: &Path) -> Vec<PathBuf> {
    let is_of_tests = |path: &Path| ["tests", "oracle"].contains(&name_of(path).as_str());
    let mut files = Vec::new();

    for path in entries(folder) {
        if is_of_tests(&path) {
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

/// Names after `crate::` in the code, excluding comments and unit tests.
fn used_modules(source: &str) -> BTreeSet<String> {
    let is_code = |line: &&str| !line.trim_start().starts_with("//");
    let lines = source
        .lines()
        .take_while(|line| !line.starts_with("mod tests {"));
    let mut used = BTreeSet::new();

    for line in lines.filter(is_code) {
        for path in line.split("crate::").skip(1) {
            let end = path.find(|letter: char| !letter.is_alphanumeric() && letter != '_');
            used.insert(path[..end.unwrap_or(path.len())].to_owned());
        }
    }
    used
}

fn place(module: &str) -> Option<usize> {
    ORDER.iter().position(|known| *known == module)
}

/// Whether code in `module` may use the name `used` at the crate's root.
fn is_allowed(module: &str, used: &str) -> bool {
    let places = place(module).zip(place(used));
    places.is_some_and(|(user, dependency)| user <= dependency)
}

#[test]
fn modules_use_only_those_below_them() {
    let mut uses = BTreeSet::new();
    let mut violations = Vec::new();

    for module in ORDER {
        for file in source_files(&source_folder().join(module)) {
            let source = std::fs::read_to_string(&file).expect("a source file");
            assert!(
                !source.contains("super::super"),
                "{}: use a path from crate::",
                file.display()
            );

            for used in used_modules(&source) {
                if !is_allowed(module, &used) {
                    violations.push(format!("{}: crate::{used}", file.display()));
                }
                uses.insert((module, used));
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
        "the sources were not read: {uses:?}"
    );
}

#[test]
fn every_top_module_has_a_place_in_the_order() {
    let tops = entries(&source_folder());
    let names: BTreeSet<String> = tops.iter().map(|path| name_of(path)).collect();
    let known: BTreeSet<String> = ["bin", "lib"]
        .into_iter()
        .chain(ORDER)
        .map(str::to_owned)
        .collect();

    assert_eq!(names, known);
    assert!(tops.len() <= MAX_ENTRIES, "{} entries", tops.len());
}

#[test]
fn a_use_of_a_higher_module_is_found() {
    let source = "\
//! See [`crate::engine`].
use crate::base::clock;
pub(crate) fn report(outcome: crate::judge::Verdict) {}
mod tests {
    use crate::engine::run;
}
";
    let used: Vec<String> = used_modules(source).into_iter().collect();

    assert_eq!(used, ["base", "judge"]);
    assert!(is_allowed("record", "base") && is_allowed("record", "record"));
    assert!(!is_allowed("record", "judge"), "a higher module");
    assert!(
        !is_allowed("record", "LoadPlan"),
        "a name that the root exports"
    );
    assert_eq!(
        used_modules("use crate::{engine, base};"),
        BTreeSet::from([String::new()])
    );
    assert!(!is_allowed("record", ""), "a group of modules");
}
