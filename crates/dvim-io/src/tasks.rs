//! What every face can ask for, from a table to a result: a fit, a prediction, a comparison, the groups of one patient.
//! No flag, no printing: the command line and Python call the same functions, so they give the same bits.

use crate::atomic::{Directory, Hashing, hex};
use crate::kit::Kit;
use crate::manifest;
use crate::memory;
use crate::read::{ReadOptions, ReadTable};
use crate::run::{EffectsFormat, Origin};
use dvim::internal::analysis::{self, Analysis};
use dvim::internal::audit::average::{By, average_effects};
use dvim::internal::audit::everybody::{Over, Tally};
use dvim::internal::audit::{A_SAMPLE_OF_ALL, Audit};
use dvim::internal::cohort::{self, Admitted, Arm, Cohort, Flow, Roles};
use dvim::internal::compare::cox::Ties;
use dvim::internal::compare::method::{Averaged, Field, Learned, Method, MethodEffects, crude};
use dvim::internal::constraint::Unserved;
use dvim::internal::curve::{Curves, Grid};
use dvim::internal::effect::{Corrected, Effect};
use dvim::internal::error::{Error, Problem, ProblemKind, Severity};
use dvim::internal::estimand::ByEstimand;
use dvim::internal::fold::Fit;
use dvim::internal::ground::Ground;
use dvim::internal::inspect::{Search, UnitGroups};
use dvim::internal::interval::two_sided;
use dvim::internal::newcomers::{Newcomers, Prepared};
use dvim::internal::options::{AdjustedOptions, Estimator, Options};
use dvim::internal::phrase::Phrase;
use dvim::internal::setting::Setting;
use dvim::internal::support::{NewUnits, read_new, read_new_within};
use dvim::internal::table::{Ids, Table, Values};
use dvim::internal::watch::Watch;
use dvim::phrase;
use dvim_report::audit::CurvesRecord;
use dvim_report::comparison::{Comparison, NamedAverages};
use dvim_report::record::{InputRecord, RolesRecord, Source, Summary};
use dvim_report::tables::{self, EffectRow, EffectTable, Layout, write_curves, write_patient_curves};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

/// A table, and what is recorded of where it came from.
pub struct Input {
    /// The columns.
    pub table: Table,
    /// The file or the frame.
    pub record: InputRecord,
    /// What is worth knowing of the file.
    pub warnings: Vec<Problem>,
}

impl Input {
    /// A table that was read from a file. Its folder is not recorded: where a user keeps patients' data is nobody's
    /// business.
    pub fn of_file(file: &Path, read: ReadTable) -> Input {
        let n_rows = read.table.n_rows();
        let record = InputRecord { file: file_name(file), sha256: read.sha256, n_bytes: read.n_bytes, n_rows };
        let warnings = read.without_line_end.then(|| no_line_end(n_rows)).into_iter().collect();
        Input { table: read.table, record, warnings }
    }

    /// A table that a program handed over; `name` says what it was. The digest is of the columns as they are here.
    pub fn of_memory(name: &str, table: Table) -> Input {
        let (sha256, n_bytes) = digest(&table);
        let record = InputRecord { file: name.into(), sha256, n_bytes, n_rows: table.n_rows() };
        Input { table, record, warnings: Vec::new() }
    }
}

/// The warning of a file whose last row has all of its fields but no line end.
pub fn no_line_end(n_rows: usize) -> Problem {
    let problem = Problem::error(
        ProblemKind::NoLineEnd,
        "the last line of the file has no line end",
        "a file that was cut off while it was copied ends like this too, and its last value is then not whole",
        "compare the last row with the source; a line end after it ends this warning",
    );
    Problem { severity: Severity::Warning, count: 1, rows: vec![n_rows], ..problem }
}

/// The name of a file without its folder.
pub fn file_name(path: &Path) -> String {
    path.file_name().map_or_else(|| path.display().to_string(), |n| n.to_string_lossy().into_owned())
}

/// SHA-256 of the columns, name by name and value by value, and the bytes that went into it.
fn digest(table: &Table) -> (String, u64) {
    let mut out = Hashing::new(Counting(0));
    let written = (|| -> io::Result<()> {
        for c in table.columns() {
            writeln!(out, "{}", c.name)?;
            match &c.values {
                Values::Number(v) => {
                    let mut block = Vec::with_capacity(8 * 8192);
                    for chunk in v.chunks(8192) {
                        block.clear();
                        chunk.iter().for_each(|x| block.extend_from_slice(&x.to_le_bytes()));
                        out.write_all(&block)?;
                    }
                }
                Values::Text(t) => {
                    (0..t.codes.len()).try_for_each(|i| writeln!(out, "{}", t.get(i).unwrap_or("")))?;
                }
                Values::Id(ids) => (0..ids.len()).try_for_each(|i| writeln!(out, "{}", ids.text(i)))?,
            }
        }
        Ok(())
    })();
    written.expect("nothing is written anywhere");
    let (Counting(n_bytes), digest) = out.finish();
    (hex(&digest), n_bytes)
}

struct Counting(u64);

impl Write for Counting {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// How a table is read for these roles: ids without loss, declared categories as text.
pub fn read_options(roles: &Roles) -> ReadOptions<'static> {
    // A column that is dropped may be an `id` that is none.
    let default_id = (!roles.drop.iter().any(|d| d.eq_ignore_ascii_case("id"))).then(|| "id".into());
    ReadOptions { id: roles.id.clone(), default_id, text: roles.categorical.clone(), ..ReadOptions::default() }
}

/// How a table of new patients is read for a run: ids without loss, its covariates as it had them.
pub fn read_options_new(cohort: &Cohort, asked: &RolesRecord, id: Option<&str>) -> ReadOptions<'static> {
    let usual = asked.id.clone().unwrap_or_else(|| "id".into());
    let is_covariate = cohort.schema().iter().any(|c| c.name.eq_ignore_ascii_case(&usual));
    ReadOptions {
        id: id.map(str::to_string),
        default_id: (!is_covariate).then_some(usual),
        text: asked.asked.categorical.clone(),
        ..ReadOptions::default()
    }
}

/// Settings that only the adjusted estimator uses; of the group size, only `auto`.
const OF_ADJUSTED: [Setting; 6] =
    [Setting::GroupSize, Setting::Splits, Setting::Folds, Setting::Latency, Setting::Learners, Setting::Penalty];
/// Settings that only the paper's estimator uses.
const OF_PAPER: [Setting; 3] = [Setting::TrainFraction, Setting::Metric, Setting::Scale];

/// Refuses settings that were given and that the estimator would not look at. A group size is among them only where it
/// is `auto`.
pub fn refuse_idle(estimator: &Estimator, given: impl IntoIterator<Item = Setting>) -> Result<(), Error> {
    let (chosen, other, rule, of_other): (_, _, _, &[Setting]) = match estimator {
        Estimator::Paper => ("the paper's", "adjusted", "this option belongs to the adjusted estimator", &OF_ADJUSTED),
        Estimator::Adjusted(_) => ("the adjusted", "paper", "this option belongs to the paper's estimator", &OF_PAPER),
    };
    let idle = given.into_iter().filter(|s| of_other.contains(s)).map(|setting| {
        let named = if setting == Setting::GroupSize { setting.to("auto") } else { setting.into() };
        Problem::error(
            ProblemKind::BadOption,
            phrase![named, format!(" with {chosen} estimator")],
            rule,
            phrase!["use ", Setting::Estimator.to(other), ", or leave the option out"],
        )
    });
    match idle.collect::<Vec<_>>() {
        problems if problems.is_empty() => Ok(()),
        problems => Err(Error::Refused(problems)),
    }
}

/// Curves that were asked for.
pub struct CurvesAsked {
    /// Of these patients, by id; `None` for the arms over populations.
    pub patients: Option<Vec<String>>,
    /// At these times; `None` for the knots.
    pub at: Option<Vec<f64>>,
    /// Subgroups.
    pub by: Vec<By>,
}

impl CurvesAsked {
    /// Whether everybody's curves are asked for.
    fn is_everybody(ids: &[String]) -> bool {
        matches!(ids, [only] if only == "all")
    }

    fn check(&self, cohort: &Cohort) -> Result<(), Error> {
        let horizon = cohort.horizon();
        let wrong = self.at.iter().flatten().find(|t| !(0.0..=horizon).contains(*t));
        let (found, rule) = match (wrong, &self.at) {
            (Some(t), _) => (phrase![Setting::At.to(*t)], "curves are estimated from 0 to the horizon"),
            (None, Some(at)) if at.is_empty() => (phrase![Setting::At, " names no time"], "a curve is given at times"),
            _ => return Ok(()),
        };
        let remedy = phrase!["use times from 0 to ", horizon.to_string(), ", or leave ", Setting::At, " out"];
        Err(Error::Refused(vec![Problem::error(ProblemKind::BadOption, found, rule, remedy)]))
    }

    /// Writes them, and says who was left out, if anybody was. `kept` are standardised curves without subgroups, where
    /// they are known; `audit` makes them.
    pub fn write<'a>(
        &self,
        out: &mut Vec<u8>,
        cohort: &Cohort,
        fit: &Fit,
        corrected: impl Fn(usize) -> Option<&'a Corrected>,
        kept: &[CurvesRecord],
        audit: impl FnOnce(&[By]) -> Result<Audit, Error>,
    ) -> Result<Option<String>, Error> {
        self.check(cohort)?;
        let none = || {
            Error::Refused(vec![Problem::error(
                ProblemKind::BadOption,
                "this run has no curves of the arms",
                "curves of the arms are standardised by the adjusted estimator and its audit",
                phrase![
                    "fit with ",
                    Setting::Estimator.to("adjusted"),
                    ", or ask for patients, whose groups have curves under either estimator"
                ],
            )])
        };
        let at = self.at.as_deref();
        let mut left_out = None;
        let written = match &self.patients {
            Some(ids) => {
                let everybody = CurvesAsked::is_everybody(ids);
                let units: Vec<usize> = if everybody {
                    (0..cohort.n_units()).filter(|&i| !fit.is_training[i]).collect()
                } else {
                    ids.iter().map(|id| cohort.unit(id)).collect::<Result<_, _>>()?
                };
                let grid = Grid::of(cohort);
                let (found, without) = curves_of(cohort, fit, &units, &grid, corrected)?;
                if !without.is_empty() {
                    let names: Vec<_> = without.iter().take(8).map(|&i| cohort.ids().text(i)).collect();
                    let more = if without.len() > names.len() { ", …" } else { "" };
                    let n = if without.len() == 1 {
                        "1 patient has".into()
                    } else {
                        format!("{} patients have", without.len())
                    };
                    let words = format!("{n} no curve: {}{more}", names.join(", "));
                    if !everybody || found.is_empty() {
                        return Err(no_curve(words));
                    }
                    left_out = Some(words);
                }
                write_patient_curves(out, cohort, fit, found.into_iter(), at)
            }
            None if self.by.is_empty() && !kept.is_empty() => write_curves(out, kept, at),
            None => {
                let curves: Vec<CurvesRecord> = audit(&self.by)?.curves.iter().map(CurvesRecord::from).collect();
                if curves.is_empty() {
                    return Err(none());
                }
                write_curves(out, &curves, at)
            }
        };
        written.expect("memory can be written to");
        Ok(left_out)
    }
}

fn no_curve(found: String) -> Error {
    Error::Refused(vec![Problem::error(
        ProblemKind::BadOption,
        found,
        "a patient with an estimate, and under the paper's estimator with two events in each time group, has curves",
        "leave them out; effects.csv has a flag that says why",
    )])
}

/// The curves of units, and the units that have none.
type FoundCurves<'g> = (Vec<(usize, Curves<'g>)>, Vec<usize>);

/// The curves of these units, corrected or of their groups alone.
fn curves_of<'g, 'a>(
    cohort: &Cohort,
    fit: &Fit,
    units: &[usize],
    grid: &'g Grid,
    corrected: impl Fn(usize) -> Option<&'a Corrected>,
) -> Result<FoundCurves<'g>, Error> {
    let ground = if fit.is_corrected() { None } else { Some(Ground::of_fit(fit, cohort)?) };
    let search = ground.as_ref().map(|ground| Search::new(fit, ground));
    let quantile = two_sided(fit.options.confidence);
    let of = |i: usize| match &search {
        // Who was not served has no estimate.
        None => corrected(i).filter(|c| c.mean_event_time.treated > 0.0).map(|c| c.curves(grid)),
        Some(search) => {
            let groups = search.groups(cohort.covariates(i), Some(i as u32), None);
            groups.curves(grid, quantile).filter(|_| groups.unserved(fit.options.fewest()).is_none())
        }
    };
    let (mut found, mut without) = (Vec::new(), Vec::new());
    for &i in units {
        match of(i) {
            Some(curves) => found.push((i, curves)),
            None => without.push(i),
        }
    }
    Ok((found, without))
}

/// What is wanted besides the effects.
pub struct Asked {
    /// Average effects by these covariates too.
    pub by: Vec<By>,
    /// The audit.
    pub audit: bool,
}

/// A table that was analysed.
#[derive(Clone)]
pub struct Analysed {
    /// The cohort.
    pub cohort: Arc<Cohort>,
    /// What was found.
    pub found: Arc<Analysis>,
    /// Whether it can be relied on.
    pub audit: Audit,
    /// What is worth knowing of the input.
    pub warnings: Vec<Problem>,
    flow: Flow,
    input: InputRecord,
    roles: RolesRecord,
}

/// The cohort of a table, and what its roles came to.
pub(crate) fn admit(input: &Input, roles: &Roles) -> Result<(Admitted, RolesRecord), Error> {
    let id = roles.id_column(input.table.columns().iter().map(|c| c.name.as_str()));
    let mut admitted = Cohort::admit(&input.table, roles)?;
    admitted.warnings.splice(0..0, input.warnings.iter().cloned());
    let record = RolesRecord::of(roles, id, &admitted.cohort);
    Ok((admitted, record))
}

impl Analysed {
    /// Analyses a table.
    pub fn new(
        input: Input,
        roles: &Roles,
        options: &Options,
        asked: &Asked,
        watch: &dyn Watch,
    ) -> Result<Analysed, Error> {
        let (admitted, record) = admit(&input, roles)?;
        let file = input.record.clone();
        drop(input);
        Analysed::of(admitted, file, record, options, asked, watch)
    }

    pub(crate) fn of(
        Admitted { cohort, mut warnings, flow }: Admitted,
        input: InputRecord,
        roles: RolesRecord,
        options: &Options,
        asked: &Asked,
        watch: &dyn Watch,
    ) -> Result<Analysed, Error> {
        warnings.extend(options.problems(Arm::BOTH.map(|z| cohort.units_of(z).len())));
        memory::refuse_cohort(&cohort, options, asked.audit)?;
        if watch.cancelled() {
            return Err(Error::Cancelled);
        }
        let run = if asked.audit { analysis::run_for_audit } else { analysis::run };
        let mut found = run(&cohort, options, watch)?;
        if watch.cancelled() {
            return Err(Error::Cancelled);
        }
        warnings.extend(found.fit.level_problems(&cohort));
        let audit = if asked.audit { Audit::of } else { Audit::not_asked }(&cohort, &found, &asked.by)?;
        found.groups = None;
        let (cohort, found) = (Arc::new(cohort), Arc::new(found));
        Ok(Analysed { cohort, found, audit, flow, warnings, input, roles })
    }

    /// Puts averages and curves over more patients in the place of those over the cohort.
    pub fn tell_of_everybody(&mut self, over: Over) {
        (self.audit.averages, self.audit.curves) = (over.averages, over.curves);
        self.audit.interactions = over.interactions;
        if over.n_units > self.found.units.len() {
            self.audit.left_out.push(A_SAMPLE_OF_ALL);
        }
    }

    /// Where it came from, for its run.
    pub fn origin(&self, format: EffectsFormat) -> Origin<'_> {
        Origin {
            input: self.input.clone(),
            roles: self.roles.clone(),
            flow: &self.flow,
            warnings: &self.warnings,
            format,
        }
    }

    /// Its summary, without the files that it has not been written to.
    pub fn summary(&self) -> Summary {
        let source =
            Source { input: self.input.clone(), roles: self.roles.clone(), flow: &self.flow, warnings: &self.warnings };
        Summary::of(&self.cohort, &self.found, &self.audit, source, BTreeMap::new())
    }
}

/// The position of a patient and the groups behind the estimate, or why there are none.
pub fn groups_of(cohort: &Cohort, fit: &Fit, id: &str) -> Result<(usize, UnitGroups), Error> {
    let unit = cohort.unit(id)?;
    let groups = fit.match_groups(cohort, unit);
    let k = fit.options.fewest();
    match Arm::BOTH.into_iter().find(|z| groups.cure[*z].size() < k) {
        Some(arm) => Err(Error::Refused(vec![Problem::error(
            ProblemKind::BadConstraint,
            format!(
                "patient `{id}` has no match group: {} patients of the {} arm satisfy the constraints, fewer than {k}",
                groups.cure[arm].size(),
                arm.name()
            ),
            "a constraint is never relaxed",
            phrase!["fit again with a smaller ", Setting::GroupSize, ", wider calipers, or fewer exact covariates"],
        )])),
        None => Ok((unit, groups)),
    }
}

/// The flag of a patient who is farther from the cohort than was asked for.
const TOO_FAR: &str = "beyond_max_distance";

/// Both effects of patients who were not in the cohort.
pub struct Predicted {
    ids: Ids,
    new: NewUnits,
    /// Positions in the cohort of those who are in it, where that makes a difference.
    own: Vec<Option<u32>>,
    found: Vec<Result<Effect, Unserved>>,
    max_distance: Option<f64>,
}

impl Predicted {
    /// Estimates the rows of a table against a run. `id` names the column of ids; without it, the ids that were read.
    pub fn new(
        cohort: &Cohort,
        fit: &Fit,
        table: &Table,
        id: Option<&str>,
        max_distance: Option<f64>,
        watch: &dyn Watch,
    ) -> Result<Predicted, Error> {
        let refuse = |kind, found: Phrase, rule: &'static str, remedy: &'static str| {
            Err(Error::Refused(vec![Problem::error(kind, found, rule, remedy)]))
        };
        if let Some(d) = max_distance.filter(|d| d.is_nan() || *d < 0.0) {
            return refuse(
                ProblemKind::BadOption,
                phrase![Setting::MaxDistance, format!(" is {d}")],
                "a distance is zero or more",
                "see the diameters in effects.csv for distances that are usual here",
            );
        }
        let ids = ids_of(table, id);
        let mut problems = Vec::new();
        refuse_ids(table, id, &ids, &mut problems);
        let new = read_new(cohort, table).map_err(|found| problems.extend(found)).ok().filter(|_| problems.is_empty());
        let Some(new) = new else { return Err(Error::Refused(problems)) };
        let own = fit.recognised(table.n_rows(), || known(cohort, &ids, &new.covariates));
        let found = fit.estimate_under_constraints(cohort, &new.covariates, &own, watch)?;
        Ok(Predicted { ids, new, own, found, max_distance })
    }

    /// Estimates the rows of a table, some of whom are of the sample that a kit was learned from. With `roles` also
    /// the sums over the others, for averages over everybody.
    pub fn of_part(
        kit: &Kit,
        ready: (&Newcomers<'_>, &Prepared<'_>),
        table: &Table,
        id: Option<&str>,
        roles: Option<&Roles>,
        watch: &dyn Watch,
    ) -> Result<(Predicted, Option<Tally>), Error> {
        let ids = ids_of(table, id);
        let mut problems = Vec::new();
        refuse_ids(table, id, &ids, &mut problems);
        let new = read_new_within(kit.cohort(), kit.ranges(), table).map_err(|found| problems.extend(found));
        let Some(new) = new.ok().filter(|_| problems.is_empty()) else { return Err(Error::Refused(problems)) };
        let known = kit.estimate(ready, new, &ids, watch)?;
        let tally = roles.map(|roles| kit.tally(&known, table, roles)).transpose()?;
        Ok((Predicted { ids, new: known.new, own: Vec::new(), found: known.found, max_distance: None }, tally))
    }

    /// Number of patients.
    pub fn n(&self) -> usize {
        self.found.len()
    }

    fn is_far(&self, e: &Effect) -> bool {
        let farthest = e.groups.iter().flatten().map(|g| g.diameter).fold(0.0, f64::max);
        self.max_distance.is_some_and(|most| farthest > most)
    }

    /// Patients left without an estimate because a group reaches too far.
    pub fn n_far(&self) -> usize {
        self.found.iter().flatten().filter(|e| self.is_far(e)).count()
    }

    /// Patients left without an estimate by the constraints of the run.
    pub fn n_unserved(&self) -> usize {
        self.found.iter().filter(|e| e.is_err()).count()
    }

    /// Patients with a value that the cohort has not seen, and the covariates in which they have one.
    pub fn off_support(&self) -> (usize, Vec<String>) {
        let n = self.new.outside.iter().filter(|o| !o.is_empty()).count();
        let names: BTreeSet<&String> = self.new.outside.iter().flatten().map(|o| &o.covariate).collect();
        (n, names.into_iter().cloned().collect())
    }

    /// As a table of effects.
    pub fn table<'a>(
        &'a self,
        cohort: &'a Cohort,
        fit: &'a Fit,
    ) -> EffectTable<'a, impl Fn(usize) -> EffectRow<'a> + Sync> {
        let row = |i: usize| EffectRow {
            id: self.ids.text(i),
            treatment: "",
            effect: self.found[i].as_ref().ok().filter(|e| !self.is_far(e)),
            flags: match &self.found[i] {
                Ok(e) if self.is_far(e) => vec![Cow::Borrowed(TOO_FAR)],
                Ok(_) => vec![],
                Err(why) => why.arms().map(|z| Unserved::flag(z).into()).collect(),
            }
            .into_iter()
            .chain(self.new.outside[i].iter().map(|o| o.flag().into()))
            .collect(),
        };
        EffectTable { n: self.n(), layout: Layout::of(cohort, fit), row }
    }

    /// Writes who is in the groups of each patient: one row for each member.
    pub fn write_members(&self, out: &mut impl Write, cohort: &Cohort, fit: &Fit) -> io::Result<()> {
        let p = cohort.n_covariates();
        let ground = Ground::of_fit(fit, cohort).map_err(io::Error::other)?;
        let search = Search::new(fit, &ground);
        let groups = |i: usize| {
            let x = &self.new.covariates[i * p..(i + 1) * p];
            (self.ids.text(i), search.groups(x, self.own[i], None))
        };
        tables::write_members(out, cohort, (0..self.n()).map(groups))
    }
}

/// The rows that are patients of the cohort: the same id, which is no row number, and the same covariates.
fn known(cohort: &Cohort, ids: &Ids, covariates: &[f64]) -> Vec<Option<u32>> {
    let p = cohort.n_covariates();
    // A table without a column of ids names nobody.
    let named = !matches!(ids, Ids::Rows(_));
    let of = |(i, x): (usize, &[f64])| {
        let unit = cohort.position(&ids.text(i)).filter(|_| named)?;
        (cohort.covariates(unit) == x).then_some(unit as u32)
    };
    covariates.chunks_exact(p).enumerate().map(of).collect()
}

/// Refuses ids of new patients that are empty or occur twice: an answer must be of one patient.
fn refuse_ids(table: &Table, id: Option<&str>, ids: &Ids, problems: &mut Vec<Problem>) {
    let named = id.or_else(|| Some(table.columns().iter().find(|c| matches!(c.values, Values::Id(_)))?.name.as_str()));
    if let Some(name) = named.filter(|_| !matches!(ids, Ids::Rows(_))) {
        problems.extend(cohort::problems_of_ids(name, ids));
    }
}

/// Ids of the rows of a table: a column, or row numbers.
fn ids_of(table: &Table, id: Option<&str>) -> Ids {
    let column = match id {
        Some(name) => table.column(name),
        None => table.columns().iter().find(|c| matches!(c.values, Values::Id(_))),
    };
    match column.map(|c| &c.values) {
        Some(Values::Id(ids)) => ids.clone(),
        _ => Ids::Rows(table.n_rows()),
    }
}

/// The command that writes comparisons, for their manifest.
const COMPARE: &str = "compare";

/// A table whose effects were estimated by every method.
pub struct Compared {
    /// The cohort.
    pub cohort: Cohort,
    /// What is worth knowing of the input.
    pub warnings: Vec<Problem>,
    learned: Learned,
    units: Vec<u32>,
    group_size: usize,
    effects: Vec<(Method, MethodEffects)>,
    source: String,
    averages: Vec<NamedAverages>,
}

impl Compared {
    /// Estimates a table by every method. All of them match as the paper's estimator does.
    pub fn new(
        input: Input,
        roles: &Roles,
        options: &Options,
        ties: Ties,
        watch: &dyn Watch,
    ) -> Result<Compared, Error> {
        let options = Options { estimator: Estimator::Paper, ..options.clone() };
        let (Admitted { cohort, mut warnings, .. }, _) = admit(&input, roles)?;
        drop(input.table);
        warnings.extend(options.problems(Arm::BOTH.map(|z| cohort.units_of(z).len())));
        memory::refuse_cohort(&cohort, &options, false)?;
        let learned = Learned::learn(&cohort, &options, ties, watch)?;
        let field = Field::new(&cohort, &learned.fit);
        let mut effects = Vec::new();
        for (done, method) in Method::FOR_COHORTS.into_iter().enumerate() {
            if watch.cancelled() {
                return Err(Error::Cancelled);
            }
            watch.progress("estimating", done, Method::FOR_COHORTS.len());
            if let Some([found]) = learned.estimate(&field, method, [options.group_size]) {
                effects.push((method, found));
            }
        }
        watch.progress("estimating", effects.len(), effects.len());
        let units = field.units.clone();
        drop(field);
        let group_size = options.group_size;
        let crude = crude(&cohort, options.confidence);
        let mut averages = vec![("crude", "Crude (arms as they are)", crude)];
        averages.extend(adjusted_averages(&cohort, &options, watch)?);
        Ok(Compared { cohort, warnings, learned, units, group_size, effects, source: input.record.file, averages })
    }

    /// For tables and pages.
    pub fn comparison(&self) -> Comparison<'_> {
        Comparison {
            cohort: &self.cohort,
            learned: &self.learned,
            units: &self.units,
            group_size: self.group_size,
            effects: &self.effects,
            source: &self.source,
            averages: &self.averages,
        }
    }

    /// Writes its files; the directory appears when all is written.
    pub fn write(&self, directory: Directory) -> io::Result<()> {
        let comparison = self.comparison();
        directory.write("effects.csv", |out| comparison.write_effects(out))?;
        directory.write("summary.csv", |out| comparison.write_summary(out))?;
        directory.write("averages.csv", |out| comparison.write_averages(out))?;
        directory.write("correlations.csv", |out| comparison.write_correlations(out))?;
        for (name, text) in [
            ("cure-violins.svg", comparison.violins(false)),
            ("time-violins.svg", comparison.violins(true)),
            ("cure-correlations.svg", comparison.correlation_figure(false)),
            ("time-correlations.svg", comparison.correlation_figure(true)),
            ("report.html", comparison.page()),
        ] {
            directory.write(name, |out| out.write_all(text.as_bytes()))?;
        }
        manifest::publish(directory, COMPARE)
    }
}

/// The averages of the adjusted estimator; none where the cohort is too small for it.
fn adjusted_averages(cohort: &Cohort, options: &Options, watch: &dyn Watch) -> Result<Option<NamedAverages>, Error> {
    let options = Options { estimator: Estimator::Adjusted(AdjustedOptions::default()), ..options.clone() };
    let found = match analysis::run(cohort, &options, watch) {
        Ok(found) => average_effects(cohort, &found, &[])?,
        Err(Error::Refused(_) | Error::Model { .. }) => return Ok(None),
        Err(other) => return Err(other),
    };
    let of = |estimand: &str| {
        let found = found.iter().find(|a| a.estimand == estimand && a.population == "all");
        found.map_or(Averaged::default(), |a| Averaged { estimate: a.estimate, low: a.low, high: a.high })
    };
    let averages = ByEstimand { cure: of("cure_effect"), time: of("time_effect") };
    Ok(Some(("adjusted", "Adjusted estimator", averages)))
}

/// Begins the directory of a comparison. With `force` a comparison that holds nothing but what dvim wrote, unchanged,
/// is replaced; none of its files may be one of the `inputs`.
pub fn begin_comparison(target: &Path, force: bool, inputs: &[&Path]) -> io::Result<Directory> {
    manifest::begin(target, force, COMPARE, inputs)
}
