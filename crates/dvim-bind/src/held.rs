//! A run that a program holds: fitted here, or opened.

use crate::columns::{self, Columns, Out};
use dvim::internal::analysis::Analysis;
use dvim::internal::audit::average::By;
use dvim::internal::audit::everybody::Tally;
use dvim::internal::audit::{Audit, sensitivity};
use dvim::internal::cohort::Cohort;
use dvim::internal::effect::Corrected;
use dvim::internal::error::Error;
use dvim::internal::phrase::Face;
use dvim::internal::survival::SurvivalCurve;
use dvim::internal::table::Table;
use dvim::internal::watch::Watch;
use dvim_io::atomic::{Access, Folder, NewFile};
use dvim_io::kit::{Kit, write_kit};
use dvim_io::regular::open_regular;
use dvim_io::run::{EffectsFormat, OpenError, files_of};
use dvim_io::tasks::{self, Analysed, CurvesAsked, Predicted};
use dvim_report::audit::{AuditRecord, words, write_uses};
use dvim_report::card::card;
use dvim_report::figures::{Kind, Look, draw};
use dvim_report::names::Names;
use dvim_report::record::{AverageRecord, MatchRecord, ProblemRecord, Summary};
use dvim_report::report::{Page, run_page};
use dvim_report::tables;
use dvim_report::terminal::Terminal;
use dvim_report::text;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A run.
pub enum Held {
    /// Fitted by this program.
    Fitted {
        /// What was found.
        done: Arc<Analysed>,
        /// What is told of it.
        summary: Box<Summary>,
    },
    /// Opened from a directory.
    Opened {
        /// What the directory holds.
        run: Box<dvim_io::run::Run>,
        /// What was found.
        found: Box<Analysis>,
        /// The directory.
        path: PathBuf,
    },
}

/// New patients and what was found of them.
pub struct Forecast {
    /// The columns of their effects.
    pub effects: Columns,
    /// Who is in their groups, where that was asked for.
    pub members: Option<Columns>,
    /// How many have no estimate because a group reaches too far.
    pub n_far: usize,
    /// How many have none because too few candidates satisfy the constraints of the run.
    pub n_unserved: usize,
    /// How many have a value that the cohort has not seen, and the covariates in which they have one.
    pub off_support: (usize, Vec<String>),
}

impl Held {
    /// Holds what was fitted.
    pub fn fitted(done: Arc<Analysed>) -> Held {
        let summary = Box::new(done.summary());
        Held::Fitted { done, summary }
    }

    /// Reads the files of a run.
    pub fn read(path: &Path) -> Result<Box<dvim_io::run::Run>, OpenError> {
        dvim_io::run::open_run(path).map(Box::new)
    }

    /// Holds a run whose files were read.
    pub fn opened(run: Box<dvim_io::run::Run>, path: PathBuf, watch: &dyn Watch) -> Result<Held, Error> {
        let found = Analysis::reopened(run.fit.clone(), &run.corrected, run.stored.clone(), &run.cohort, watch)?;
        Ok(Held::Opened { run, found: Box::new(found), path })
    }

    /// What other machines need to estimate more patients, in bytes, and the sums over the run's own patients.
    pub fn kit(&self, by: &[By]) -> Result<(Vec<u8>, Vec<u8>), Error> {
        let (kit, tally) = write_kit(self.cohort(), self.found(), by)?;
        Ok((kit, tally.to_bytes()))
    }

    /// The run with averages and curves over everybody: those who are in these sums. Fails with what does not fit
    /// together.
    pub fn over_everybody(&self, kit: &[u8], tally: &[u8]) -> Result<Held, String> {
        let Held::Fitted { done, .. } = self else { return Err("the run was not fitted here".into()) };
        let over = Kit::open(kit)?.everybody().over(&Tally::from_bytes(tally)?);
        let mut done = Analysed::clone(done);
        done.tell_of_everybody(over);
        Ok(Held::fitted(Arc::new(done)))
    }

    /// The cohort.
    pub fn cohort(&self) -> &Cohort {
        match self {
            Held::Fitted { done, .. } => &done.cohort,
            Held::Opened { run, .. } => &run.cohort,
        }
    }

    /// What was found.
    pub fn found(&self) -> &Analysis {
        match self {
            Held::Fitted { done, .. } => &done.found,
            Held::Opened { found, .. } => found,
        }
    }

    /// What is told of it.
    pub fn summary(&self) -> &Summary {
        match self {
            Held::Fitted { summary, .. } => summary,
            Held::Opened { run, .. } => &run.summary,
        }
    }

    /// The corrected estimate of a patient, where there is one.
    pub fn corrected(&self, unit: usize) -> Option<&Corrected> {
        let found = self.found();
        let i = found.units.binary_search(&(unit as u32)).ok()?;
        found.effects[i].corrected.as_ref()
    }

    /// The columns of `effects.csv`.
    pub fn effects(&self) -> Columns {
        columns::of_effects(&tables::effect_table(self.cohort(), self.found()))
    }

    /// The columns of `weights.csv`.
    pub fn weights(&self) -> Columns {
        columns::of_rows(&tables::WEIGHT_COLUMNS, tables::weight_rows(self.cohort(), self.found()))
    }

    /// What is worth knowing of the input. A run that was opened says it in the words of its file.
    pub fn warnings(&self, face: &dyn Face) -> Vec<ProblemRecord> {
        match self {
            Held::Fitted { done, .. } => done.warnings.iter().map(|w| ProblemRecord::of(w, face)).collect(),
            Held::Opened { run, .. } => run.summary.warnings.clone(),
        }
    }

    /// The verdict on both effects and every reason with its remedy, in the words of a face; whether there is a doubt.
    pub fn verdict(&self, face: &dyn Face) -> Option<([String; 2], Vec<String>, bool)> {
        let verdict = self.summary().verdict.as_ref()?;
        let (said, reasons) = verdict.lines(face);
        Some((said, reasons, verdict.is_doubtful()))
    }

    /// Files of an opened run that were changed since it was written.
    pub fn changed(&self) -> &[String] {
        match self {
            Held::Fitted { .. } => &[],
            Held::Opened { run, .. } => &run.changed,
        }
    }

    /// What `dvim fit` says at its end, with remedies in the words of a face.
    pub fn text(&self, face: &dyn Face) -> String {
        text::summary(self.summary(), self.found(), self.cohort(), Terminal::default(), face)
    }

    /// A fragment of HTML with what was found, with remedies in the words of a face.
    pub fn card(&self, face: &dyn Face) -> String {
        card(self.cohort(), self.found(), self.summary(), face)
    }

    /// Writes the page of the run.
    pub fn write_page(&self, page: &Page, path: &Path, force: bool) -> io::Result<()> {
        let own = match self {
            Held::Fitted { .. } => Vec::new(),
            Held::Opened { path, .. } => files_of(path),
        };
        let own: Vec<&Path> = own.iter().map(PathBuf::as_path).collect();
        let file = NewFile::plan(path, force, Access::Owner, &own)?;
        let html = run_page(page, self.cohort(), self.found(), self.summary());
        file.write(|out| out.write_all(html.as_bytes()))
    }

    /// A figure as SVG. Fails with what the run lacks.
    pub fn figure(&self, kind: &Kind, look: &Look) -> Result<String, String> {
        // Corrected values are looked up by the position of their patient.
        let of = |unit: usize| self.corrected(unit).map(|own| vec![*own; unit + 1]);
        let corrected = match kind {
            Kind::Patient(id) => self.cohort().position(id).and_then(of).unwrap_or_default(),
            _ => Vec::new(),
        };
        draw(kind, self.cohort(), &self.found().fit, &corrected, Some(self.found()), self.summary(), look)
    }

    /// The audit, the averages, and both in words. `seeds` repeats the analysis with so many other seeds.
    pub fn audit(
        &self,
        by: &[By],
        seeds: usize,
        watch: &dyn Watch,
    ) -> Result<(AuditRecord, Vec<AverageRecord>, String), Error> {
        let (cohort, found) = (self.cohort(), self.found());
        let mut audit = Audit::of(cohort, found, by)?;
        if seeds > 0 {
            audit.seeds = sensitivity::seeds(cohort, found, seeds, watch)?;
        }
        let record = AuditRecord::of(cohort, &audit);
        let averages: Vec<AverageRecord> = audit.averages.iter().map(AverageRecord::from).collect();
        let flags: Vec<(String, usize)> = found.flag_counts().into_iter().map(|(f, n)| (f.meaning(), n)).collect();
        let words = words(&averages, &record, &flags, found.units.len());
        Ok((record, averages, words))
    }

    /// How often each patient is used; `None` where uses are not counted.
    pub fn uses(&self) -> Result<Option<Columns>, Error> {
        let audit = Audit::of(self.cohort(), self.found(), &[])?;
        let kinds = columns::results(&["id", "treatment"], &[]);
        let columns = |b| columns::of_csv(&kinds, |out| write_uses(out, self.cohort(), b));
        Ok(audit.balance.as_ref().map(columns))
    }

    /// The groups of one patient, and what is said of them.
    pub fn match_groups(&self, id: &str, all: bool) -> Result<(MatchRecord, String), Error> {
        let (cohort, fit) = (self.cohort(), &self.found().fit);
        let (unit, groups) = tasks::groups_of(cohort, fit, id)?;
        let corrected = self.corrected(unit);
        let record = MatchRecord::of(cohort, fit, unit, &groups, corrected);
        let names = Names::of(self.summary(), None);
        Ok((record, text::match_groups(cohort, fit, &names, unit, &groups, corrected, all)))
    }

    /// The Kaplan–Meier curve of each arm: steps with intervals.
    pub fn arm_curves(&self, confidence: f64) -> Columns {
        let cohort = self.cohort();
        let mut curves = Vec::new();
        let mut arms = Vec::new();
        for z in text::READING_ORDER {
            let curve = SurvivalCurve::of_outcomes(cohort.outcomes(&cohort.units_of(z)));
            arms.extend(curve.steps().iter().map(|_| Some(z.name().to_string())));
            curves.push(curve);
        }
        let mut columns = vec![("arm".to_string(), Out::Text(arms))];
        columns.extend(steps(&curves, confidence));
        columns
    }

    /// The table of `dvim curves`, standardised or of patients, and who has none.
    pub fn curve_table(&self, asked: &CurvesAsked) -> Result<(Columns, Option<String>), Error> {
        let kept = self.summary().audit.as_ref().map_or(&[][..], |a| &a.curves[..]);
        let (cohort, found) = (self.cohort(), self.found());
        let audit = |by: &[By]| Audit::of(cohort, found, by);
        let mut table = Vec::new();
        let left_out = asked.write(&mut table, cohort, &found.fit, |i| self.corrected(i), kept, audit)?;
        let kinds = columns::results(&["population", "id", "arm"], &[]);
        let columns = columns::of_csv(kinds, |out| {
            out.extend_from_slice(&table);
            Ok(())
        });
        Ok((columns, left_out))
    }

    /// How new patients must be read: the id column to look for, and the columns that are text.
    pub fn reading_new(&self, id: Option<&str>) -> (Option<String>, Vec<String>) {
        let options = tasks::read_options_new(self.cohort(), &self.summary().roles, id);
        (options.default_id, options.text)
    }

    /// Estimates new patients.
    pub fn predict(
        &self,
        table: &Table,
        id: Option<&str>,
        max_distance: Option<f64>,
        groups: bool,
        watch: &dyn Watch,
    ) -> Result<Forecast, Error> {
        let (cohort, fit) = (self.cohort(), &self.found().fit);
        let found = Predicted::new(cohort, fit, table, id, max_distance, watch)?;
        let members = groups.then(|| {
            let kinds = columns::results(&["id", "matched_for", "arm", "member"], &["rank", "event"]);
            columns::of_csv(kinds, |out| found.write_members(out, cohort, fit))
        });
        let effects = columns::of_effects(&found.table(cohort, fit));
        let (n_far, n_unserved, off_support) = (found.n_far(), found.n_unserved(), found.off_support());
        Ok(Forecast { effects, members, n_far, n_unserved, off_support })
    }

    /// Writes the run into a directory, or copies the files of one that was opened.
    pub fn save(&self, path: &Path, force: bool, format: EffectsFormat) -> io::Result<()> {
        match self {
            Held::Fitted { done, .. } => {
                let origin = done.origin(format);
                dvim_io::run::write_run(path, force, &done.cohort, &done.found, &done.audit, origin).map(|_| ())
            }
            Held::Opened { run, path: from, .. } => {
                let directory = dvim_io::run::begin_run(path, force, &[], None)?;
                copy_files(from, &directory, run.summary.files.keys().map(String::as_str))?;
                directory.publish()
            }
        }
    }
}

/// Copies these files, and the summary beside them.
pub(crate) fn copy_files<'a>(from: &Path, to: &Folder, names: impl Iterator<Item = &'a str>) -> io::Result<()> {
    for name in names.chain(["summary.json"]) {
        let (mut file, _) = open_regular(&from.join(name), u64::MAX)?;
        to.write(name, |out| io::copy(&mut file, out).map(|_| ()))?;
    }
    Ok(())
}

/// The steps of curves, with intervals.
pub fn steps(curves: &[SurvivalCurve], confidence: f64) -> Columns {
    let steps = || curves.iter().flat_map(|c| c.steps().iter().map(move |s| (c, s)));
    let count = |f: &dyn Fn(&dvim::internal::survival::Step) -> usize| {
        let values: Vec<i64> = steps().map(|(_, s)| f(s) as i64).collect();
        let gaps = vec![false; values.len()];
        Out::Count(values, gaps)
    };
    // The interval at a step is that of a horizon just after it.
    let intervals: Vec<_> =
        steps().map(|(c, s)| dvim::internal::interval::share(&c.summary(s.time.next_up()), confidence)).collect();
    vec![
        ("time".into(), Out::Number(steps().map(|(_, s)| s.time).collect())),
        ("n_at_risk".into(), count(&|s| s.n_at_risk)),
        ("n_events".into(), count(&|s| s.n_events)),
        ("n_censored".into(), count(&|s| s.n_censored)),
        ("survival".into(), Out::Number(steps().map(|(_, s)| s.survival).collect())),
        ("se".into(), Out::Number(intervals.iter().map(|i| i.se.unwrap_or(f64::NAN)).collect())),
        ("low".into(), Out::Number(intervals.iter().map(|i| i.low).collect())),
        ("high".into(), Out::Number(intervals.iter().map(|i| i.high).collect())),
    ]
}
