//! `dvim rerun`: the same again, and whether it is.

use super::{read_cohort_table, use_threads};
use crate::args::RerunArgs;
use crate::progress::Progress;
use crate::{Failure, print, say};
use dvim::internal::audit::average::By;
use dvim_io::agreement;
use dvim_io::regular::{hash, is_plain_name, read_text};
use dvim_io::run::{EffectsFormat, begin_run, read_summary, write_effect_table, write_files};
use dvim_io::tasks::{Analysed, Asked};
use dvim_report::record::{Summary, VERSION};
use dvim_report::tables::{effect_table, write_weights};
use std::path::{Path, PathBuf};

pub fn run(args: &RerunArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    let progress = Progress::new();
    let summary = read_summary(&args.summary)?;
    let place = if args.summary.is_dir() {
        args.summary.clone()
    } else {
        args.summary.parent().unwrap_or(Path::new(".")).to_path_buf()
    };
    let table = match &args.table {
        Some(table) => table.clone(),
        None => find(&place, &summary)?,
    };
    let bad = |what: String| Failure::Input(format!("error: `{}` cannot be repeated: {what}", args.summary.display()));
    let roles = summary.roles.roles(summary.horizon);
    let options = summary.options.options().map_err(bad)?;
    let input = read_cohort_table(&table, &roles, args.threads.threads, &progress)?;
    if input.record.sha256 != summary.input.sha256 {
        return Err(Failure::Input(format!(
            "error: `{}` is not the table of this run: its SHA-256 is {}…, the run was made from {}… (`{}`)\n  rule:   a run is repeated on the same bytes\n  remedy: name the original table, or use `dvim fit` for the new one",
            table.display(),
            &input.record.sha256[..12],
            summary.input.sha256.get(..12).unwrap_or(&summary.input.sha256),
            summary.input.file
        )));
    }
    let by: Vec<By> = summary.audit.iter().flat_map(|a| &a.by).map(|b| By::parse(b)).collect();
    let asked = Asked { by, audit: summary.audit.as_ref().is_none_or(|a| a.asked) };
    let done = Analysed::new(input, &roles, &options, &asked, &progress)?;
    // Without --output the new run is compared and forgotten.
    let target =
        args.output.clone().unwrap_or_else(|| std::env::temp_dir().join(format!("dvim-rerun-{}", std::process::id())));
    let directory = begin_run(&target, false, &[], None)?;
    let origin = done.origin(EffectsFormat::of(&summary));
    let again = write_files(&directory, &done.cohort, &done.found, &done.audit, origin)?;
    if args.output.is_some() {
        directory.publish()?;
    }
    let differing: Vec<&str> = summary
        .files
        .iter()
        .filter(|(name, digest)| again.files.get(*name) != Some(*digest))
        .map(|(name, _)| name.as_str())
        .collect();
    if summary.version != VERSION {
        say(&format!("the run was written by dvim {}, this is dvim {VERSION}", summary.version));
    }
    let seconds = progress.seconds();
    let same_averages = summary.average_effects == again.average_effects;
    if differing.is_empty() && same_averages && summary.audit == again.audit {
        let names: Vec<&str> = summary.files.keys().map(String::as_str).collect();
        print(&format!("identical: {} are the same to the last bit\n", names.join(", ")))?;
        say(&format!("repeated in {seconds:.2} s"));
        return Ok(());
    }
    if let Some(apart) = agreement(&place, &summary, &again, &done) {
        print(&format!(
            "the same to nine digits, not to the last bit: values differ by at most {apart:.1e} of the largest of their column\n"
        ))?;
        say(&format!(
            "sums can round in another way under another compiler or on another processor; repeated in {seconds:.2} s"
        ));
        return Ok(());
    }
    let what = if differing.is_empty() && same_averages {
        "the audit of summary.json differs: it was edited".to_string()
    } else if differing.is_empty() {
        "the average effects of summary.json differ: it was edited".to_string()
    } else {
        format!("{} differ", differing.join(", "))
    };
    print(&format!("not identical: {what}\n"))?;
    Err(Failure::Other("the run could not be reproduced; with -o DIR the new one is kept for comparison".into()))
}

/// How far a run and its repetition are apart, where both say the same to the precision that is promised. The files of
/// the old one must be those that its summary lists.
fn agreement(place: &Path, old: &Summary, new: &Summary, done: &Analysed) -> Option<f64> {
    const MOST_BYTES: u64 = 8 << 30;
    let (effects, weights) = (EffectsFormat::Csv.file(), "weights.csv");
    let mut most = 0.0_f64;
    for name in [effects, weights] {
        let digest = old.files.get(name)?;
        if hash(&place.join(name), MOST_BYTES).ok().as_ref() != Some(digest) {
            return None;
        }
        let mut again = Vec::new();
        if name == effects {
            write_effect_table(&mut again, &effect_table(&done.cohort, &done.found), EffectsFormat::Csv).ok()?;
        } else {
            write_weights(&mut again, &done.cohort, &done.found).ok()?;
        }
        let before = read_text(&place.join(name), MOST_BYTES).ok()?;
        most = most.max(agreement::of_tables(&before, &String::from_utf8(again).ok()?)?);
    }
    let said = |s: &Summary| serde_json::to_value((&s.average_effects, &s.audit)).ok();
    Some(most.max(agreement::of_values(&said(old)?, &said(new)?, old.horizon.max(1.0))?))
}

/// The table of a run, by its recorded name.
fn find(place: &Path, summary: &Summary) -> Result<PathBuf, Failure> {
    let name = &summary.input.file;
    let beside = place.parent().map(|p| p.join(name));
    if !is_plain_name(name) {
        return Err(Failure::Input(format!(
            "error: summary.json names the table `{}`, which is no plain name of a file\n  rule:   a summary from a stranger must not choose which files are read\n  remedy: name the table yourself, as in dvim rerun {} path/to/table.csv",
            name.escape_debug(),
            place.join("summary.json").display()
        )));
    }
    let places: Vec<PathBuf> =
        [Some(PathBuf::from(name)), Some(place.join(name)), beside].into_iter().flatten().collect();
    // Of several files of that name, the one with the right bytes.
    let is_it = |p: &&PathBuf| {
        p.canonicalize().and_then(|p| hash(&p, u64::MAX)).is_ok_and(|digest| digest == summary.input.sha256)
    };
    let found = places.iter().find(is_it).or_else(|| places.iter().find(|p| p.is_file()));
    found.cloned().ok_or_else(|| {
        Failure::Input(format!(
            "error: the table `{name}` of this run is not in the working directory, in the run or beside it\n  rule:   a run holds its cohort, not the table it came from\n  remedy: name the table, as in dvim rerun {} path/to/{name}",
            place.join("summary.json").display()
        ))
    })
}
