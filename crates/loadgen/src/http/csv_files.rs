//! Tables of values for requests: CSV files, each read once.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::base::files::{MAX_BYTES, read_file};

/// The files of a load, by the paths in its requests.
#[derive(Debug, Default)]
pub(crate) struct CsvFiles(BTreeMap<String, Arc<CsvFile>>);

/// A table.
#[derive(Debug)]
struct CsvFile {
    names: Vec<String>,
    /// All cells below the header, one after the other.
    cells: Vec<u8>,
    /// Where each cell ends.
    ends: Vec<u32>,
}

/// A column of a table.
#[derive(Clone, Debug)]
pub(crate) struct Column {
    file: Arc<CsvFile>,
    index: usize,
}

impl CsvFiles {
    /// A column of the file at this path.
    ///
    /// # Errors
    /// A message that names the file and explains what is wrong with it.
    pub fn column(&mut self, path: &str, name: &str) -> Result<Column, String> {
        let file = match self.0.get(path) {
            Some(file) => Arc::clone(file),
            None => {
                let file = Arc::new(CsvFile::read(path)?);
                self.0.insert(path.to_owned(), Arc::clone(&file));
                file
            }
        };
        let index = file.names.iter().position(|known| known == name);
        let index = index.ok_or_else(|| {
            format!(
                "{path} has no column {name:?}; it has {}",
                file.names.join(", ")
            )
        })?;
        Ok(Column { file, index })
    }
}

impl Column {
    /// Its number of rows: at least one.
    pub fn rows(&self) -> u64 {
        (self.file.ends.len() / self.file.names.len()) as u64
    }

    /// The cells of all rows.
    pub fn cells(&self) -> impl Iterator<Item = &[u8]> {
        (0..self.rows()).map(|row| self.cell(row))
    }

    /// The cell in this row.
    pub fn cell(&self, row: u64) -> &[u8] {
        let CsvFile { names, cells, ends } = &*self.file;
        let place = row as usize * names.len() + self.index;
        let from = place.checked_sub(1).map_or(0, |before| ends[before]);
        &cells[from as usize..ends[place] as usize]
    }
}

impl CsvFile {
    fn read(path: &str) -> Result<Self, String> {
        let bytes = bytes_of(Path::new(path))?;
        let text = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(&bytes);
        let mut reader = csv::Reader::from_reader(text);
        let message_of = |error: csv::Error| format!("{path} is not a CSV file: {error}");
        let headers = reader.byte_headers().map_err(message_of)?;
        let names = headers
            .iter()
            .map(|name| String::from_utf8_lossy(name).trim().to_owned())
            .collect();

        let mut file = Self {
            names,
            cells: Vec::with_capacity(text.len()),
            ends: Vec::new(),
        };
        let mut record = csv::ByteRecord::new();
        while reader.read_byte_record(&mut record).map_err(message_of)? {
            for cell in &record {
                file.cells.extend_from_slice(cell);
                file.ends.push(file.cells.len() as u32);
            }
        }

        if file.ends.is_empty() {
            return Err(format!("{path} has no rows below its header line"));
        }
        Ok(file)
    }
}

fn bytes_of(path: &Path) -> Result<Vec<u8>, String> {
    // A pipe could be read only once, and the plan may be checked before the load.
    if path.metadata().is_ok_and(|metadata| !metadata.is_file()) {
        return Err(format!("{} is not a file", path.display()));
    }
    read_file(path, MAX_BYTES).map_err(|message| format!("{message}; use a part of it"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs a test on a temporary file with this content.
    fn with_file<T>(name: &str, content: &[u8], test: impl FnOnce(&str) -> T) -> T {
        let path = std::env::temp_dir().join(format!("loadgen-{}-{name}", std::process::id()));
        std::fs::write(&path, content).expect("a file");
        let result = test(path.to_str().expect("text"));
        std::fs::remove_file(&path).expect("the file");
        result
    }

    #[test]
    fn columns_are_found_by_name_and_read_row_by_row() {
        let content = "\u{feff}id, mail\r\n1,a@h\r\n2,\"b, \"\"c\"\"\nd\"\r\n3,\r\n";
        with_file("table.csv", content.as_bytes(), |path| {
            let mut files = CsvFiles::default();
            let rows = |column: Column| {
                (0..column.rows())
                    .map(|row| String::from_utf8_lossy(column.cell(row)).into_owned())
                    .collect::<Vec<_>>()
            };
            let id = files.column(path, "id").expect("a column");
            let mail = files.column(path, "mail").expect("a column");
            assert!(Arc::ptr_eq(&id.file, &mail.file), "read once");
            assert_eq!(rows(id), ["1", "2", "3"]);
            assert_eq!(rows(mail), ["a@h", "b, \"c\"\nd", ""]);
        });
    }

    #[test]
    fn invalid_files_are_refused_by_name() {
        for (name, content, expected) in [
            (
                "no.csv",
                "id,mail\n1,a\n",
                "has no column \"x\"; it has id, mail",
            ),
            ("empty.csv", "", "no rows below"),
            ("head.csv", "x\n", "no rows below"),
            ("ragged.csv", "x,y\n1,2\n3\n", "not a CSV file"),
        ] {
            let message = with_file(name, content.as_bytes(), |path| {
                let message = CsvFiles::default().column(path, "x").expect_err(name);
                assert!(message.contains(path), "{message}");
                message
            });
            assert!(message.contains(expected), "{message}");
        }
        let message = CsvFiles::default().column("/dev/null", "x");
        assert!(
            message
                .expect_err("a device")
                .contains("/dev/null is not a file")
        );
        let message = CsvFiles::default().column("/nowhere.csv", "x");
        assert!(
            message
                .expect_err("missing")
                .contains("cannot read /nowhere.csv")
        );
    }

    #[test]
    fn the_size_of_a_file_is_limited() {
        let large = vec![b'1'; MAX_BYTES + 1];
        let message = with_file("large.csv", &large, |path| {
            CsvFiles::default()
                .column(path, "1")
                .expect_err("too large")
        });
        assert!(message.contains("64 MiB"), "{message}");
    }
}
