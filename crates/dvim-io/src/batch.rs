//! Several analyses in one directory: imputed data sets that are pooled, or every arm against one control. Each of them
//! is a run like any other, in a folder of its own.

use crate::atomic::{Directory, Listed, hex};
use crate::manifest::not_ours;
use crate::regular::{is_plain_name, read, read_text};
use crate::run::{EffectsFormat, MOST_SUMMARY, OpenError, fit_again, listed, most_in_memory, write_files};
use crate::tasks::{Analysed, Asked, Input, admit};
use dvim::internal::cohort::{Roles, labels, patients};
use dvim::internal::contrasts::compare_arms;
use dvim::internal::error::{Error, Problem, ProblemKind};
use dvim::internal::imputation::{self, PooledRun, pool_imputations, same_ids, same_patients};
use dvim::internal::options::Options;
use dvim::internal::phrase::Phrase;
use dvim::internal::setting::Setting;
use dvim::internal::watch::Watch;
use dvim::phrase;
use dvim_report::batch::{BATCH_SCHEMA, BatchRecord, MemberRecord, write_pooled_effects};
use sha2::{Digest, Sha256};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// The word that means every arm.
const ALL: &str = "all";
/// Most data sets of one run: more is a column that was mistaken for another.
const MOST: usize = 200;

/// Whether several data sets are asked for.
pub fn is_batch(n_tables: usize, imputation: Option<&str>, roles: &Roles) -> bool {
    n_tables > 1 || imputation.is_some() || roles.treated.as_deref() == Some(ALL)
}

/// One data set.
struct Set {
    name: String,
    folder: String,
    /// Which table it is part of.
    table: usize,
    roles: Roles,
}

/// Several data sets that were analysed.
pub struct Several {
    /// What was found, without the files that it has not been written to.
    pub record: BatchRecord,
    /// The runs, in the order of the record.
    pub runs: Vec<Arc<Analysed>>,
    /// What was done that was not asked for.
    pub notes: Vec<String>,
    /// The pooled effects of each patient, of imputed data sets.
    pooled: Option<PooledRun>,
}

impl Several {
    /// Analyses several tables, the parts of a table that a column numbers, or every arm of it. `names` are those of
    /// the tables.
    #[allow(clippy::too_many_arguments, reason = "the tables, what to make of them, and what to ask of each")]
    pub fn new(
        tables: Vec<Input>,
        names: &[String],
        imputation: Option<&str>,
        roles: &Roles,
        options: &Options,
        asked: &Asked,
        watch: &dyn Watch,
    ) -> Result<Several, Error> {
        let of_arms = roles.treated.as_deref() == Some(ALL);
        if !asked.audit {
            return Err(refuse(
                phrase![Setting::NoAudit, " with several data sets"],
                "averages are pooled and compared by their standard errors, which come with the audit",
                phrase!["leave out ", Setting::NoAudit],
            ));
        }
        if of_arms && (tables.len() > 1 || imputation.is_some()) {
            return Err(refuse(
                phrase![Setting::Treated.to(ALL), " with several imputed data sets"],
                "imputed data sets are pooled for one pair of arms",
                phrase!["name the arm with ", Setting::Treated, ", and repeat for each"],
            ));
        }
        let mut notes = Vec::new();
        let sets = match imputation {
            _ if of_arms => arm_sets(&tables[0], roles)?,
            Some(_) if tables.len() > 1 => {
                return Err(refuse(
                    phrase![Setting::Imputation, " with several tables"],
                    "imputed data sets are in several files, or in one file with a column that numbers them",
                    "give one of the two",
                ));
            }
            Some(column) => numbered_sets(&tables[0], column, roles, &mut notes)?,
            None => names
                .iter()
                .enumerate()
                .map(|(k, name)| Set { name: name.clone(), folder: folder(k), table: k, roles: roles.clone() })
                .collect(),
        };
        let admitted: Result<Vec<_>, Error> =
            sets.iter().map(|s| admit(&tables[s.table], &s.roles).map_err(|e| e.in_set(&s.name))).collect();
        let admitted = admitted.map_err(|e| {
            // Data sets of other patients are no imputations, whatever else is wrong with each.
            let other = if of_arms { Ok(()) } else { compare_patients(&tables, &sets) };
            other.err().unwrap_or(e)
        })?;
        if !of_arms {
            let cohorts: Vec<_> = sets.iter().zip(&admitted).map(|(s, a)| (s.name.as_str(), &a.0.cohort)).collect();
            same_patients(&cohorts)?;
        }
        let files: Vec<_> = sets.iter().map(|s| tables[s.table].record.clone()).collect();
        drop(tables);
        let mut runs = Vec::new();
        for ((set, (admitted, record)), file) in sets.iter().zip(admitted).zip(files) {
            let found = Analysed::of(admitted, file, record, options, asked, watch);
            runs.push(Arc::new(found.map_err(|e| e.in_set(&set.name))?));
        }
        let members = sets.iter().map(|s| MemberRecord { name: s.name.clone(), folder: s.folder.clone() }).collect();
        let confidence = options.confidence;
        if of_arms {
            let audits: Vec<_> = sets.iter().zip(&runs).map(|(s, d)| (s.name.clone(), &d.audit)).collect();
            let record = BatchRecord::of_arms(members, &compare_arms(&audits, confidence), confidence);
            return Ok(Several { record, runs, notes, pooled: None });
        }
        let analysed: Vec<imputation::Analysed<'_>> = sets
            .iter()
            .zip(&runs)
            .map(|(s, d)| imputation::Analysed {
                name: &s.name,
                cohort: &d.cohort,
                analysis: &d.found,
                audit: &d.audit,
            })
            .collect();
        let pooled = pool_imputations(&analysed)?;
        let record = BatchRecord::of_imputations(members, &pooled, confidence);
        Ok(Several { record, runs, notes, pooled: Some(pooled) })
    }

    /// Writes the pooled effects of each patient, as CSV; nothing for arms.
    pub fn write_effects(&self, out: &mut impl Write) -> io::Result<()> {
        match &self.pooled {
            Some(pooled) => write_pooled_effects(out, &self.runs[0].cohort, pooled),
            None => Ok(()),
        }
    }

    /// Writes all of it; the directory appears when all is written. With `force` one of its kind, and nothing else, is
    /// replaced.
    pub fn write(&self, target: &Path, force: bool, format: EffectsFormat, inputs: &[&Path]) -> io::Result<()> {
        let directory = begin_batch(target, force, inputs)?;
        let mut record = self.record.clone();
        let mut files = Vec::new();
        if self.pooled.is_some() {
            files.push(("effects.csv".to_string(), directory.write("effects.csv", |out| self.write_effects(out))?));
            files
                .push(("averages.csv".to_string(), directory.write("averages.csv", |out| record.write_averages(out))?));
        } else {
            files.push(("arms.csv".to_string(), directory.write("arms.csv", |out| record.write_contrasts(out))?));
        }
        for (member, run) in record.runs.iter().zip(&self.runs) {
            let folder = directory.folder(&member.folder)?;
            let summary = write_files(&folder, &run.cohort, &run.found, &run.audit, run.origin(format))?;
            files.extend(summary.files.into_iter().map(|(name, d)| (format!("{}/{name}", member.folder), d)));
        }
        record.files.extend(files);
        directory.write("summary.json", |out| {
            serde_json::to_writer_pretty(&mut *out, &record)?;
            out.write_all(b"\n")
        })?;
        directory.publish()
    }

    /// What is worth knowing of the input: each thing once, with the data set that it was first found in.
    pub fn warnings(&self) -> Vec<(&str, &Problem)> {
        let mut out: Vec<(&str, &Problem)> = Vec::new();
        for (member, run) in self.record.runs.iter().zip(&self.runs) {
            for w in &run.warnings {
                if !out.iter().any(|(_, said)| *said == w) {
                    out.push((&member.name, w));
                }
            }
        }
        out
    }
}

/// Begins the directory of several runs. With `force` one of that kind that holds nothing but the files of its
/// summary, unchanged, is replaced; none of them may be one of the `inputs`.
pub fn begin_batch(target: &Path, force: bool, inputs: &[&Path]) -> io::Result<Directory> {
    Directory::begin(target, inputs, |existing| {
        if !force {
            return Ok(None);
        }
        listed_batch(existing).map(Some).ok_or_else(|| not_ours(target, "a directory of several runs of dvim"))
    })
}

/// The files of a directory of several runs, where it is one.
pub(crate) fn listed_batch(directory: &Path) -> Option<Listed> {
    let record = batch_record(&read_text(&directory.join("summary.json"), MOST_SUMMARY).ok()?)?;
    let mut all: Listed = listed(record.files);
    all.extend(record.runs.iter().map(|m| (format!("{}/summary.json", m.folder), None)));
    Some(all)
}

/// The record of several runs and their pooled effects, as CSV; `None` where a directory holds no such record. Its runs
/// are opened one by one.
pub fn open_batch(path: &Path) -> Result<Option<(BatchRecord, Vec<u8>)>, OpenError> {
    let fail = |reason: Phrase| OpenError { path: path.to_path_buf(), reason };
    let Ok(text) = read_text(&path.join("summary.json"), MOST_SUMMARY) else { return Ok(None) };
    let Some(record) = batch_record(&text) else { return Ok(None) };
    // A folder is a plain name: a record cannot point outside of its directory.
    if let Some(m) = record.runs.iter().find(|m| !is_plain_name(&m.folder)) {
        return Err(fail(format!("summary.json names the folder `{}`, which is no folder of it", m.folder).into()));
    }
    if record.is_of_arms() {
        return Ok(Some((record, Vec::new())));
    }
    let is_inside = |name: &str| match name.split_once('/') {
        Some((folder, file)) => is_plain_name(folder) && is_plain_name(file),
        None => is_plain_name(name),
    };
    if let Some(name) = record.files.keys().find(|name| !is_inside(name)) {
        return Err(fail(format!("summary.json lists `{name}`, which is no file of it").into()));
    }
    let effects = read(&path.join("effects.csv"), most_in_memory());
    let effects = effects.map_err(|e| fail(format!("effects.csv cannot be read: {e}").into()))?;
    if record.files.get("effects.csv") != Some(&hex(&Sha256::digest(&effects))) {
        return Err(fail(fit_again("effects.csv was changed after it was written".into())));
    }
    Ok(Some((record, effects)))
}

fn batch_record(text: &str) -> Option<BatchRecord> {
    serde_json::from_str::<BatchRecord>(text).ok().filter(|s| s.schema == BATCH_SCHEMA)
}

/// Refuses data sets whose rows are not of the same patients.
fn compare_patients(tables: &[Input], sets: &[Set]) -> Result<(), Error> {
    let ids = |s: &Set| patients(&tables[s.table].table, &s.roles);
    let Some((first, others)) = sets.split_first() else { return Ok(()) };
    let Some(those) = ids(first) else { return Ok(()) };
    for other in others {
        if let Some(these) = ids(other) {
            same_ids((&first.name, &those), (&other.name, &these))?;
        }
    }
    Ok(())
}

fn folder(k: usize) -> String {
    format!("imputation-{}", k + 1)
}

/// The rows of each imputation.
fn numbered_sets(input: &Input, column: &str, roles: &Roles, notes: &mut Vec<String>) -> Result<Vec<Set>, Error> {
    let table = &input.table;
    let Some(mut values) = labels(table, column, MOST + 1) else {
        let names: Vec<&str> = table.columns().iter().map(|c| c.name.as_str()).collect();
        return Err(refuse(
            format!("column `{column}`: there is no such column (asked for as imputation)"),
            phrase![Setting::Imputation, " names the column that numbers the imputed data sets"],
            format!("the table has: {}", names.join(", ")),
        ));
    };
    if values.len() > MOST {
        return Err(refuse(
            format!("column `{column}`: it has more than {MOST} different values"),
            phrase![Setting::Imputation, " names the column that numbers the imputed data sets"],
            "name another column",
        ));
    }
    if roles.id_column(table.columns().iter().map(|c| c.name.as_str())).is_none() {
        return Err(refuse(
            phrase![Setting::Imputation, " without an id column"],
            "a patient is found in every imputed data set by id",
            phrase!["name the id column with ", Setting::Id],
        ));
    }
    // In the long format of R's mice the data set 0 is the table as it was, with its gaps.
    if values.len() > 1 && values.iter().any(|v| v == "0") {
        values.retain(|v| v != "0");
        notes.push(format!("rows with {column} = 0, the table before imputation, are left out"));
    }
    let set = |(k, value): (usize, String)| {
        let mut roles = roles.clone();
        roles.filters.push((column.to_string(), value.clone()));
        roles.drop.push(column.to_string());
        Set { name: format!("{column} {value}"), folder: folder(k), table: 0, roles }
    };
    Ok(values.into_iter().enumerate().map(set).collect())
}

/// Every arm but the control.
fn arm_sets(read: &Input, roles: &Roles) -> Result<Vec<Set>, Error> {
    let Some(control) = &roles.control else {
        return Err(refuse(
            phrase![Setting::Treated.to(ALL), " without ", Setting::Control],
            "every other arm is compared with one control",
            phrase!["name it with ", Setting::Control],
        ));
    };
    let arms = labels(&read.table, &roles.treatment, MOST + 1).unwrap_or_default();
    if arms.iter().any(|a| a == ALL) {
        return Err(refuse(
            format!("column `{}`: an arm is called `all`", roles.treatment),
            phrase![Setting::Treated.to(ALL), " means every arm but the control"],
            "give that arm another name",
        ));
    }
    let others: Vec<&String> = arms.iter().filter(|a| *a != control).collect();
    let shown: Vec<String> = arms.iter().take(6).map(|a| format!("`{a}`")).collect();
    let more = if arms.len() > 6 { ", …" } else { "" };
    let found = match () {
        () if arms.len() > MOST => Some(format!("it has more than {MOST} different values")),
        () if others.len() == arms.len() => Some(format!("none of its values is the control `{control}`")),
        () if others.is_empty() => Some(format!("there is no arm beside the control `{control}`")),
        () => None,
    };
    if let Some(found) = found {
        return Err(refuse(
            format!("column `{}`: {found}", roles.treatment),
            "every other arm is compared with one control",
            format!("name the column of arms, and its control as in the table; it holds {}{more}", shown.join(", ")),
        ));
    }
    let mut sets: Vec<Set> = Vec::new();
    for arm in others {
        let clean: String =
            arm.chars().map(|c| if c.is_ascii_alphanumeric() || "-_.+".contains(c) { c } else { '_' }).collect();
        let clean = clean.trim_matches('.').to_lowercase();
        let taken = sets.iter().filter(|s| s.folder == clean || s.folder.starts_with(&format!("{clean}-"))).count();
        let folder = if clean.is_empty() || taken > 0 { format!("{clean}-{}", sets.len() + 1) } else { clean };
        let roles = Roles { treated: Some(arm.clone()), ..roles.clone() };
        sets.push(Set { name: arm.clone(), folder, table: 0, roles });
    }
    Ok(sets)
}

fn refuse(found: impl Into<Phrase>, rule: impl Into<Phrase>, remedy: impl Into<Phrase>) -> Error {
    Error::Refused(vec![Problem::error(ProblemKind::BadImputation, found, rule, remedy)])
}
