//! Files of labels: what the arms, the time, the event and the covariates are called, in TOML.

use dvim::internal::cohort::Labels;
use dvim_report::labels::LabelsRecord;
use std::path::Path;

/// A file of labels is small; a larger one is another file.
const LARGEST: u64 = 1 << 20;

/// Reads a file of labels; `Err` says what is wrong with it, in the words of a refusal.
pub fn read_labels(path: &Path) -> Result<Labels, String> {
    let refuse = |what: String, remedy: &str| {
        Err(format!(
            "error: the labels `{}`: {what}\n  rule:   labels are a file in TOML with time_unit, horizon, treated, control, event, cure_word, population and [covariates]\n  remedy: {remedy}",
            path.display()
        ))
    };
    match std::fs::metadata(path) {
        Err(e) => return refuse(e.to_string(), "check the name of the file"),
        Ok(m) if !m.is_file() || m.len() > LARGEST => {
            return refuse("it is no small file".into(), "name a file in TOML, of less than a megabyte");
        }
        Ok(_) => {}
    }
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(e) => return refuse(e.to_string(), "write it as UTF-8"),
    };
    match toml::from_str::<LabelsRecord>(&text) {
        Ok(record) => Ok(record.labels()),
        Err(e) => {
            refuse(e.to_string().trim_end().replace('\n', "\n    "), "see the page on labels in the documentation")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_are_read_from_toml() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("labels.toml");
        let text = "time_unit = \"days\"\ntreated = \"chemotherapy\"\n[covariates]\nage = \"Age [years]\"\n\
                    [covariates.stage]\nlabel = \"Stage\"\nlevels = [\"I\", [\"2\", \"II\"]]\n";
        std::fs::write(&file, text).expect("written");
        let labels = read_labels(&file).expect("labels");
        assert_eq!(labels.treated.as_deref(), Some("chemotherapy"));
        assert_eq!(labels.of("age").and_then(|c| c.unit.as_deref()), Some("years"));
        assert_eq!(labels.of("stage").map(|c| c.levels.len()), Some(2));
        std::fs::write(&file, "treatd = 1").expect("written");
        let wrong = read_labels(&file).expect_err("no such label");
        assert!(wrong.contains("treatd") && wrong.contains("remedy"), "{wrong}");
        assert!(read_labels(&folder.path().join("nowhere.toml")).is_err());
    }
}
