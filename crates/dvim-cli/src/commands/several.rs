//! `dvim fit` of several data sets at once: imputed data sets that are pooled, or every arm against one control.

use super::read_cohort_table;
use crate::args::FitArgs;
use crate::progress::Progress;
use crate::{Failure, print, say};
use dvim::cohort::{Roles, labels};
use dvim::several::{self, compare_arms, pool_imputations};
use dvim_io::run::{begin_several, write_files};
use dvim_io::tasks::{Analysed, Asked, Input, file_name};
use dvim_report::several::{MemberRecord, SeveralRecord, write_pooled_effects};
use std::io::Write;

/// The word that means every arm.
pub const ALL: &str = "all";
/// Most data sets of one run: more is a column that was mistaken for another.
const MOST: usize = 200;

/// Whether several data sets are asked for.
pub fn is_asked(args: &FitArgs) -> bool {
    args.tables.len() > 1 || args.imputation.is_some() || args.roles.treated.as_deref() == Some(ALL)
}

/// One data set.
struct Set {
    name: String,
    folder: String,
    /// Which table it is part of.
    table: usize,
    roles: Roles,
}

pub fn run(args: &FitArgs, progress: &Progress) -> Result<(), Failure> {
    // A directory that may not be written is said at once, not after the work.
    drop(begin_several(&args.output, args.force)?);
    if args.report.is_some() {
        return Err(refuse(
            "--report with several data sets",
            "a page is of one run",
            "write it from one of the runs, with `dvim report`",
        ));
    }
    if args.no_audit {
        return Err(refuse(
            "--no-audit with several data sets",
            "averages are pooled and compared by their standard errors, which come with the audit",
            "leave out --no-audit",
        ));
    }
    let asked = Asked { by: args.by.by(), audit: true };
    let roles = args.roles.roles();
    let arms = roles.treated.as_deref() == Some(ALL);
    if arms && (args.tables.len() > 1 || args.imputation.is_some()) {
        return Err(refuse(
            "--treated all with several imputed data sets",
            "imputed data sets are pooled for one pair of arms",
            "name the arm with --treated, and repeat for each",
        ));
    }
    let read = |file| read_cohort_table(file, &roles, args.threads.threads, progress);
    let tables: Vec<Input> = args.tables.iter().map(|file| read(file.as_path())).collect::<Result<_, _>>()?;
    let sets = if arms { arm_sets(&tables[0], &roles)? } else { imputed_sets(args, &tables, &roles)? };
    let mut done = Vec::new();
    for set in &sets {
        let found = Analysed::of_part(&tables[set.table], &set.roles, &args.method.options(), &asked, progress);
        let found = found.map_err(|e| match Failure::from(e) {
            Failure::Input(words) => Failure::Input(format!("in `{}`:\n{words}", set.name)),
            other => other,
        })?;
        done.push(found);
    }
    drop(tables);
    let members: Vec<MemberRecord> =
        sets.iter().map(|s| MemberRecord { name: s.name.clone(), folder: s.folder.clone() }).collect();
    let confidence = args.method.confidence;
    let directory = begin_several(&args.output, args.force)?;
    let mut record = if arms {
        let audits: Vec<_> = sets.iter().zip(&done).map(|(s, d)| (s.name.clone(), &d.audit)).collect();
        let mut record = SeveralRecord::of_arms(members, &compare_arms(&audits, confidence), confidence);
        let digest = directory.write("arms.csv", |out| record.write_contrasts(out))?;
        record.files.insert("arms.csv".into(), digest);
        record
    } else {
        let analysed: Vec<several::Analysed<'_>> = sets
            .iter()
            .zip(&done)
            .map(|(s, d)| several::Analysed { name: &s.name, cohort: &d.cohort, analysis: &d.found, audit: &d.audit })
            .collect();
        let pooled = pool_imputations(&analysed)?;
        let mut record = SeveralRecord::of_imputations(members, &pooled, confidence);
        let digest = directory.write("effects.csv", |out| write_pooled_effects(out, &done[0].cohort, &pooled))?;
        record.files.insert("effects.csv".into(), digest);
        let digest = directory.write("averages.csv", |out| record.write_averages(out))?;
        record.files.insert("averages.csv".into(), digest);
        record
    };
    for (set, d) in sets.iter().zip(&done) {
        let folder = directory.folder(&set.folder)?;
        let format = args.format.format();
        let summary = write_files(&folder, &d.cohort, &d.found, &d.audit, d.origin(format))?;
        record.files.extend(summary.files.into_iter().map(|(name, digest)| (format!("{}/{name}", set.folder), digest)));
    }
    directory.write("summary.json", |out| {
        serde_json::to_writer_pretty(&mut *out, &record)?;
        out.write_all(b"\n")
    })?;
    directory.publish()?;
    let mut said = Vec::new();
    for (set, d) in sets.iter().zip(&done) {
        for words in d.warnings.iter().map(ToString::to_string).filter(|w| !said.contains(w)).collect::<Vec<_>>() {
            say(&format!("in `{}`: {words}", set.name));
            said.push(words);
        }
    }
    print(&record.text())?;
    let folders: Vec<&str> = sets.iter().map(|s| s.folder.as_str()).collect();
    say(&format!(
        "written to {} in {:.2} s; each run is in a directory of its own: {}",
        args.output.display(),
        progress.seconds(),
        folders.join(", ")
    ));
    Ok(())
}

/// The rows of each imputation, or each file.
fn imputed_sets(args: &FitArgs, tables: &[Input], roles: &Roles) -> Result<Vec<Set>, Failure> {
    let folder = |k: usize| format!("imputation-{}", k + 1);
    let Some(column) = &args.imputation else {
        let set = |(k, file): (usize, &std::path::PathBuf)| Set {
            name: file_name(file),
            folder: folder(k),
            table: k,
            roles: roles.clone(),
        };
        return Ok(args.tables.iter().enumerate().map(set).collect());
    };
    if args.tables.len() > 1 {
        return Err(refuse(
            "--imputation with several tables",
            "imputed data sets are in several files, or in one file with a column that numbers them",
            "give one of the two",
        ));
    }
    let table = &tables[0].table;
    let Some(mut values) = labels(table, column, MOST + 1) else {
        let names: Vec<&str> = table.columns().iter().map(|c| c.name.as_str()).collect();
        return Err(refuse(
            &format!("column `{column}`: there is no such column (asked for as imputation)"),
            "--imputation names the column that numbers the imputed data sets",
            &format!("the table has: {}", names.join(", ")),
        ));
    };
    if values.len() > MOST {
        return Err(refuse(
            &format!("column `{column}`: it has more than {MOST} different values"),
            "--imputation names the column that numbers the imputed data sets",
            "name another column",
        ));
    }
    if roles.id_column(table.columns().iter().map(|c| c.name.as_str())).is_none() {
        return Err(refuse(
            "--imputation without an id column",
            "a patient is found in every imputed data set by id",
            "name the id column with --id",
        ));
    }
    // In the long format of R's mice the data set 0 is the table as it was, with its gaps.
    if values.len() > 1 && values.iter().any(|v| v == "0") {
        values.retain(|v| v != "0");
        say(&format!("rows with {column} = 0, the table before imputation, are left out"));
    }
    let set = |(k, value): (usize, String)| {
        let mut roles = roles.clone();
        roles.filters.push((column.clone(), value.clone()));
        roles.drop.push(column.clone());
        Set { name: format!("{column} {value}"), folder: folder(k), table: 0, roles }
    };
    Ok(values.into_iter().enumerate().map(set).collect())
}

/// Every arm but the control.
fn arm_sets(read: &Input, roles: &Roles) -> Result<Vec<Set>, Failure> {
    let Some(control) = &roles.control else {
        return Err(refuse(
            "--treated all without --control",
            "every other arm is compared with one control",
            "name it with --control",
        ));
    };
    let arms = labels(&read.table, &roles.treatment, MOST + 1).unwrap_or_default();
    if arms.iter().any(|a| a == ALL) {
        return Err(refuse(
            &format!("column `{}`: an arm is called `all`", roles.treatment),
            "--treated all means every arm but the control",
            "give that arm another name",
        ));
    }
    let others: Vec<&String> = arms.iter().filter(|a| *a != control).collect();
    if others.len() == arms.len() || others.is_empty() || arms.len() > MOST {
        let shown: Vec<String> = arms.iter().take(6).map(|a| format!("`{a}`")).collect();
        return Err(refuse(
            &format!(
                "column `{}`: it holds {}; there is no arm beside the control `{control}`, or no such control, or too many",
                roles.treatment,
                shown.join(", ")
            ),
            "every other arm is compared with one control",
            "name the control as in the table",
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

fn refuse(found: &str, rule: &str, remedy: &str) -> Failure {
    Failure::Input(format!("error: {found}\n  rule:   {rule}\n  remedy: {remedy}"))
}
