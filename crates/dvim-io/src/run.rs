//! A run as a directory: `effects.csv`, `weights.csv`, `summary.json` and `run.dvim`.
//!
//! `run.dvim` holds what later commands need to reopen the run without the original file, and without finding its
//! groups again: the cohort, who trained, the models, the metrics, and what the groups gave, to the last bit. Its
//! layout:
//!
//! ```text
//! 8 bytes   "DVIMRUN" and the version of the layout
//! 8 bytes   length of the header, little-endian
//! header    JSON: names, horizon, options, models, metrics, number of units
//! arrays    little-endian, one after the other, as the header announces them
//! 32 bytes  SHA-256 of everything before
//! ```

use crate::atomic::{Directory, Folder, Hashing, Listed, hex};
use crate::manifest::not_ours;
use crate::regular::{hash, is_plain_name, read, read_text};
use dvim::internal::analysis::{Analysis, Stored};
use dvim::internal::arm::ByArm;
use dvim::internal::audit::Audit;
use dvim::internal::cohort::{Arm, Cohort, Flow, Units};
use dvim::internal::constraint::Unserved;
use dvim::internal::correction::FoldModel;
use dvim::internal::cure::ArmModels;
use dvim::internal::curve::{CELLS, Shape};
use dvim::internal::effect::{Corrected, Effect};
use dvim::internal::error::Problem;
use dvim::internal::estimand::ByEstimand;
use dvim::internal::fold::Fit;
use dvim::internal::fold::{DealValues, Description};
use dvim::internal::group::GroupEstimate;
use dvim::internal::joint::Spread;
use dvim::internal::martingale::Residual;
use dvim::internal::metric::Metric;
use dvim::internal::outcome::Extras;
use dvim::internal::phrase::{Action, Face, Phrase};
use dvim::internal::setting::Setting;
use dvim::internal::split::Trained;
use dvim::internal::table::Ids;
use dvim::phrase;
use dvim_report::batch::BATCH_SCHEMA;
use dvim_report::cross_fit::{CrossFitRecord, KeptDeal, PredictorRecord};
use dvim_report::record::{
    CovariateRecord, InputRecord, MetricsRecord, ModelRecord, OptionsRecord, RolesRecord, SUMMARY_SCHEMA, Source,
    Summary,
};
use dvim_report::spell::CommandLine;
use dvim_report::tables::{self, EffectRow, EffectTable};
use rayon::prelude::*;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

const MAGIC: &[u8; 7] = b"DVIMRUN";
const LAYOUT: u8 = 1;

/// The largest `summary.json` that is read.
pub(crate) const MOST_SUMMARY: u64 = 256 << 20;

/// The most bytes of one file that are taken into memory: what is free, or 64 GB where the system does not say.
pub(crate) fn most_in_memory() -> u64 {
    crate::memory::available().unwrap_or(64 << 30)
}

/// Why a run cannot be opened.
#[derive(Debug)]
pub struct OpenError {
    /// The directory asked for.
    pub path: PathBuf,
    /// What is wrong with it, and what to do.
    pub reason: Phrase,
}

impl OpenError {
    /// The whole of it in the words of a face.
    pub fn spelled(&self, face: &dyn Face) -> String {
        format!("error: `{}` cannot be opened as a run: {}", self.path.display(), self.reason.spelled(face))
    }
}

impl fmt::Display for OpenError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.spelled(&CommandLine))
    }
}

impl std::error::Error for OpenError {}

/// What comes before the arrays.
#[derive(Serialize, Deserialize)]
struct Header {
    version: String,
    n_units: usize,
    /// `rows`, `integers` or `texts`.
    ids: String,
    id_bytes: usize,
    names: Vec<String>,
    /// How covariates became columns; empty in files from before there were categories: all numbers.
    #[serde(default)]
    covariates: Vec<CovariateRecord>,
    labels: [String; 2],
    horizon: f64,
    options: OptionsRecord,
    models: [ModelRecord; 2],
    /// Number of entries of each model's covariance; 0 where there is none.
    covariance: [usize; 2],
    metrics: MetricsRecord,
    /// What units have beyond a time and an event, in the order in which the arrays follow the covariates.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "further")]
    extras: Vec<String>,
    /// What the adjusted estimator learned; then the fold of each unit and its corrected values follow the covariates.
    cross_fit: Option<CrossFitRecord>,
    /// Numbers of each unit's corrected values; 0 in files from before they had variances.
    #[serde(default)]
    corrected: usize,
    /// The model of each fold of each split, split after split; empty in files from before they were kept. The
    /// covariances of their parameters follow the corrected values.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fold_models: Vec<PredictorRecord>,
    /// Words of what each group gave, which come last; 0 in files from before they were stored.
    #[serde(default)]
    groups: usize,
    /// Units without groups, whose candidates come before them.
    #[serde(default)]
    unserved: usize,
}

/// The format of the effects of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum EffectsFormat {
    /// `effects.csv`.
    #[default]
    Csv,
    /// `effects.json`.
    Json,
    /// `effects.parquet`; needs the feature `parquet`.
    Parquet,
}

impl EffectsFormat {
    /// All formats.
    pub const ALL: [EffectsFormat; 3] = [EffectsFormat::Csv, EffectsFormat::Json, EffectsFormat::Parquet];

    /// The word used in options.
    pub fn name(self) -> &'static str {
        match self {
            EffectsFormat::Csv => "csv",
            EffectsFormat::Json => "json",
            EffectsFormat::Parquet => "parquet",
        }
    }

    /// The name of the file.
    pub fn file(self) -> &'static str {
        match self {
            EffectsFormat::Csv => "effects.csv",
            EffectsFormat::Json => "effects.json",
            EffectsFormat::Parquet => "effects.parquet",
        }
    }

    /// The format of a run that was written.
    pub fn of(summary: &Summary) -> EffectsFormat {
        EffectsFormat::ALL.into_iter().find(|f| summary.files.contains_key(f.file())).unwrap_or_default()
    }
}

/// A run that was reopened.
#[derive(Debug)]
pub struct Run {
    /// Files of the run that are not what they were when it was written, and what is wrong with each. The cohort and
    /// the fit are never among them: a run whose `run.dvim` was changed is not opened.
    pub changed: Vec<String>,
    /// What `summary.json` says.
    pub summary: Summary,
    /// The cohort.
    pub cohort: Cohort,
    /// What was learned.
    pub fit: Fit,
    /// The corrected values of each unit; empty under the paper's estimator.
    pub corrected: Vec<Corrected>,
    /// What its groups gave; `None` of a run from before it was stored.
    pub stored: Option<Stored>,
}

/// Where a cohort came from.
pub struct Origin<'a> {
    /// The file.
    pub input: InputRecord,
    /// Its columns' parts.
    pub roles: RolesRecord,
    /// Rows that were left out.
    pub flow: &'a Flow,
    /// What is worth knowing of it.
    pub warnings: &'a [Problem],
    /// In which format its effects are wanted.
    pub format: EffectsFormat,
}

/// Writes a run; the directory appears when all is written. With `force` an existing run, and
/// nothing but a run, is replaced.
#[allow(clippy::too_many_arguments, reason = "where, and the parts that a run is made of")]
pub fn write_run(
    target: &Path,
    force: bool,
    cohort: &Cohort,
    analysis: &Analysis,
    audit: &Audit,
    origin: Origin<'_>,
) -> io::Result<Summary> {
    let directory = begin_run(target, force, &[], None)?;
    let summary = write_files(&directory, cohort, analysis, audit, origin)?;
    directory.publish()?;
    Ok(summary)
}

/// Writes the files of a run into a directory that is not yet published.
pub fn write_files(
    directory: &Folder,
    cohort: &Cohort,
    analysis: &Analysis,
    audit: &Audit,
    origin: Origin<'_>,
) -> io::Result<Summary> {
    let effects = tables::effect_table(cohort, analysis);
    let name = origin.format.file();
    let format = origin.format;
    let source = Source { input: origin.input, roles: origin.roles, flow: origin.flow, warnings: origin.warnings };
    let (of_effects, of_rest) = rayon::join(
        || directory.write(name, |out| write_effect_table(out, &effects, format)),
        || -> io::Result<[(&str, String); 2]> {
            let store = directory.write("run.dvim", |out| write_store(out, cohort, analysis))?;
            let weights = directory.write("weights.csv", |out| tables::write_weights(out, cohort, analysis))?;
            Ok([("weights.csv", weights), ("run.dvim", store)])
        },
    );
    let mut files = BTreeMap::from([(name.to_string(), of_effects?)]);
    files.extend(of_rest?.map(|(name, digest)| (name.to_string(), digest)));
    // Last, while the large files go to the disk.
    let summary = Summary::of(cohort, analysis, audit, source, files);
    let text = serde_json::to_string_pretty(&summary)?;
    directory.write("summary.json", |out| out.write_all(sealed(text).as_bytes()))?;
    Ok(summary)
}

/// What stands before and after the digest at the end of a `summary.json`.
const SEAL: [&str; 2] = [",\n  \"seal\": \"", "\"\n}\n"];

/// A JSON object with a digest of all its text as the last field: whoever reads it can tell that nothing was changed.
/// With the digest of `run.dvim` among its files, the two belong together.
pub(crate) fn sealed(text: String) -> String {
    let body = text.trim_end().strip_suffix("\n}").expect("an object of several lines");
    format!("{body}{}{}{}", SEAL[0], hex(&Sha256::digest(body)), SEAL[1])
}

/// Whether nothing was changed in a text since it was sealed.
pub(crate) fn is_sealed(text: &str) -> bool {
    let found = text.strip_suffix(SEAL[1]).and_then(|t| t.rsplit_once(SEAL[0]));
    found.is_some_and(|(body, digest)| hex(&Sha256::digest(body)) == digest)
}

/// Begins the directory of a run; fails early where it may not be written. With `force` a run that holds nothing but
/// the files of its summary, unchanged, is replaced; none of them may be one of the `inputs`. `report` is the name of
/// a page that the user wants in the directory, in place of an earlier one.
pub fn begin_run(target: &Path, force: bool, inputs: &[&Path], report: Option<&str>) -> io::Result<Directory> {
    Directory::begin(target, inputs, |existing| match read_summary(existing) {
        _ if !force => Ok(None),
        Ok(summary) => {
            let mut all = listed(summary.files);
            all.extend(report.filter(|name| !all.contains_key(*name)).map(|name| (name.to_string(), None)));
            Ok(Some(all))
        }
        Err(_) => Err(not_ours(target, "a run of dvim")),
    })
}

/// The files of a run, where a directory is one.
pub(crate) fn listed_run(directory: &Path) -> Option<Listed> {
    read_summary(directory).ok().map(|summary| listed(summary.files))
}

/// The files of a run, from those that its summary lists.
pub(crate) fn listed(files: BTreeMap<String, String>) -> Listed {
    let files = files.into_iter().map(|(name, digest)| (name, Some(digest)));
    files.chain([("summary.json".to_string(), None)]).collect()
}

/// Writes effects in a format.
pub fn write_effect_table<'a>(
    out: &mut (impl Write + Send),
    effects: &EffectTable<'a, impl Fn(usize) -> EffectRow<'a> + Sync>,
    format: EffectsFormat,
) -> io::Result<()> {
    match format {
        EffectsFormat::Csv => effects.write_csv(out),
        EffectsFormat::Json => effects.write_json(out),
        #[cfg(feature = "parquet")]
        EffectsFormat::Parquet => crate::parquet::write_effects(out, effects),
        #[cfg(not(feature = "parquet"))]
        EffectsFormat::Parquet => Err(crate::atomic::refuse_as(
            io::ErrorKind::Unsupported,
            "this dvim was built without Parquet",
            "effects are written in the formats that dvim was built with",
            phrase!["build it with the feature `parquet`, or use ", Setting::Format.to("csv")],
        )),
    }
}

pub(crate) fn write_store<W: Write>(out: &mut Hashing<W>, cohort: &Cohort, analysis: &Analysis) -> io::Result<()> {
    let fit = &analysis.fit;
    let units = cohort.as_recorded();
    let width = if units.extras.is_empty() && analysis.effects.iter().all(are_plain) { PLAIN_GROUP } else { GROUP };
    let (ids, id_bytes) = match units.ids {
        Ids::Rows(_) => ("rows", 0),
        Ids::Integers(_) => ("integers", 0),
        Ids::Texts { bytes, .. } => ("texts", bytes.len()),
    };
    let header = Header {
        version: dvim_report::record::VERSION.into(),
        n_units: cohort.n_units(),
        ids: ids.into(),
        id_bytes,
        names: units.names.to_vec(),
        covariates: cohort.schema().iter().map(CovariateRecord::from).collect(),
        labels: units.labels.clone(),
        horizon: cohort.horizon(),
        options: (&fit.options).into(),
        models: fit.description.models.each_ref().map(ModelRecord::from).into_array(),
        covariance: fit.description.models.each_ref().map(|m| m.covariance.as_ref().map_or(0, Vec::len)).into_array(),
        metrics: (&fit.description.metrics).into(),
        extras: names_of_extras(units.extras).iter().map(|n| n.to_string()).collect(),
        cross_fit: CrossFitRecord::of(fit),
        corrected: corrected_width(fit.deals.len()),
        fold_models: fold_models(fit).map(|m| PredictorRecord::from(&*m.predictor)).collect(),
        groups: width,
        unserved: analysis.unserved.len(),
    };
    out.write_all(MAGIC)?;
    out.write_all(&[LAYOUT])?;
    let json = serde_json::to_vec(&header)?;
    out.write_all(&(json.len() as u64).to_le_bytes())?;
    out.write_all(&json)?;
    match units.ids {
        Ids::Rows(_) => {}
        Ids::Integers(v) => write_array(out, v, |x| x.to_le_bytes())?,
        Ids::Texts { bytes, ends } => {
            write_array(out, ends, |x| (*x as u64).to_le_bytes())?;
            out.write_all(bytes.as_bytes())?;
        }
    }
    write_array(out, units.time, |x| x.to_le_bytes())?;
    // One byte of marks for each unit: event, treated, training.
    let marks: Vec<u8> = (0..cohort.n_units())
        .map(|i| {
            u8::from(units.event[i]) | u8::from(units.arm[i] == Arm::Treated) << 1 | u8::from(fit.is_training[i]) << 2
        })
        .collect();
    out.write_all(&marks)?;
    write_array(out, units.covariates, |x| x.to_le_bytes())?;
    let Extras { weight, entry, cluster, competing } = units.extras;
    write_array(out, weight.as_deref().unwrap_or(&[]), |x| x.to_le_bytes())?;
    write_array(out, entry.as_deref().unwrap_or(&[]), |x| x.to_le_bytes())?;
    write_array(out, cluster.as_deref().unwrap_or(&[]), |x| u64::from(*x).to_le_bytes())?;
    write_array(out, competing.as_deref().unwrap_or(&[]), |x| u64::from(*x).to_le_bytes())?;
    if fit.is_corrected() {
        fit.deals.iter().try_for_each(|r| out.write_all(&r.fold_of))?;
        // Not a number where constraints left a unit without groups.
        let mut corrected: Vec<Option<&Corrected>> = vec![None; cohort.n_units()];
        for (&i, effect) in analysis.units.iter().zip(&analysis.effects) {
            corrected[i as usize] = effect.corrected.as_ref();
        }
        let several = fit.deals.len() > 1;
        let numbers = corrected.iter().zip(&fit.residuals).flat_map(|(c, r)| {
            let numbers = c.map_or([f64::NAN; CORRECTED], |c| numbers(c, r));
            let spread = c.and_then(|c| c.split_sd).map_or([f64::NAN; 2], ByEstimand::into_array);
            numbers.into_iter().chain(spread.into_iter().filter(move |_| several))
        });
        write_array(out, &numbers.collect::<Vec<f64>>(), |x| x.to_le_bytes())?;
        let curves = corrected.iter().zip(&fit.residuals).flat_map(|(c, r)| match c {
            Some(c) => curve_numbers(&c.shape, r),
            None => [f32::NAN; CURVE],
        });
        write_array(out, &curves.collect::<Vec<f32>>(), |x| x.to_le_bytes())?;
        for v in fit.deals.iter().flat_map(|r| &r.values) {
            let ([s0, s1], [m0, m1]) = (v.cure_probability.into_array(), v.mean_event_time.into_array());
            write_array(out, &[s0, s1, m0, m1, v.residual.cure, v.residual.time], |x| x.to_le_bytes())?;
        }
        for model in fold_models(fit) {
            write_array(out, &model.covariance, |x| x.to_le_bytes())?;
        }
    }
    for model in fit.description.models.each_ref() {
        write_array(out, model.covariance.as_deref().unwrap_or(&[]), |x| x.to_le_bytes())?;
    }
    for (i, why) in &analysis.unserved {
        let [control, treated] = why.candidates.into_array();
        write_array(out, &[*i as usize, control, treated, why.group_size], |x| (*x as u64).to_le_bytes())?;
    }
    let mut words = Vec::new();
    for effects in analysis.effects.chunks(4096) {
        words.clear();
        let groups = effects.iter().flat_map(|e| e.groups.iter().flat_map(ByArm::iter));
        groups.for_each(|g| words.extend_from_slice(&group_words(g)[..width]));
        write_array(out, &words, |x| x.to_le_bytes())?;
    }
    let digest = out.so_far();
    out.write_all(&digest)
}

/// Words of what a group gave: of a group whose members count alike, and of any.
const PLAIN_GROUP: usize = 7;
const GROUP: usize = 9;

/// Whether the groups of a unit have one cause of events, members that count alike, and nobody who enters late.
fn are_plain(effect: &Effect) -> bool {
    let is_plain = |g: &GroupEstimate| g.curve.event_free == g.curve.survival && g.curve.worth == 1.0 && !g.curve.thin;
    effect.groups.iter().flat_map(ByArm::iter).all(is_plain)
}

fn group_words(g: &GroupEstimate) -> [u64; GROUP] {
    let c = &g.curve;
    let counts = c.n_at_risk as u64 | (c.n_events as u64) << 32 | u64::from(c.thin) << 63;
    let [a, b, c, d, e, f, g, h] =
        [c.survival, c.event_area, c.greenwood, c.area_mean, c.area_spread, g.diameter, c.event_free, c.worth]
            .map(f64::to_bits);
    [a, b, c, d, e, f, counts, g, h]
}

fn group_of(words: &[u8]) -> GroupEstimate {
    let word = |i: usize| {
        let bytes = words.get(8 * i..8 * i + 8).map(|b| <[u8; 8]>::try_from(b).unwrap_or_default());
        bytes.map(u64::from_le_bytes)
    };
    let number = |i: usize| word(i).map_or(f64::NAN, f64::from_bits);
    let counts = word(6).unwrap_or_default();
    let curve = dvim::internal::survival::Summary {
        survival: number(0),
        event_area: number(1),
        greenwood: number(2),
        area_mean: number(3),
        area_spread: number(4),
        n_at_risk: (counts & u64::from(u32::MAX)) as usize,
        n_events: (counts >> 32 & 0x7fff_ffff) as usize,
        thin: counts >> 63 == 1,
        event_free: word(7).map_or(number(0), f64::from_bits),
        worth: word(8).map_or(1.0, f64::from_bits),
    };
    GroupEstimate { curve, diameter: number(5) }
}

/// What the groups of a run gave; `None` of a run from before it was stored.
fn read_groups(width: usize, n_unserved: usize, fit: &Fit, rest: &mut Rest<'_>) -> Result<Option<Stored>, String> {
    if width == 0 {
        return Ok(None);
    }
    if ![PLAIN_GROUP, GROUP].contains(&width) {
        return Err("what its groups gave has an unknown form".into());
    }
    let n_estimated = fit.is_training.iter().filter(|t| !**t).count();
    let numbers = rest.array(n_unserved.checked_mul(4).ok_or("its size is absurd")?, u64::from_le_bytes)?;
    let of = |v: &[u64]| {
        let candidates = ByArm { control: v[1] as usize, treated: v[2] as usize };
        (v[0] as u32, Unserved { candidates, group_size: v[3] as usize })
    };
    let unserved: Vec<(u32, Unserved)> = numbers.chunks_exact(4).map(of).collect();
    let is_estimated = |i: u32| fit.is_training.get(i as usize) == Some(&false);
    if !unserved.windows(2).all(|w| w[0].0 < w[1].0) || !unserved.iter().all(|(i, _)| is_estimated(*i)) {
        return Err("its patients without groups do not fit".into());
    }
    let size = 8 * width;
    let n_served = n_estimated - unserved.len();
    let bytes = rest.take(n_served.checked_mul(4 * size).ok_or("its size is absurd")?)?;
    let group = |unit: usize, at: usize| group_of(&bytes[(4 * unit + at) * size..][..size]);
    let of_unit = |unit: usize| ByEstimand {
        cure: ByArm { control: group(unit, 0), treated: group(unit, 1) },
        time: ByArm { control: group(unit, 2), treated: group(unit, 3) },
    };
    let groups = (0..n_served).into_par_iter().with_min_len(1024).map(of_unit).collect();
    Ok(Some(Stored { groups, unserved }))
}

/// Numbers of a unit's corrected values, their variances, its residuals, and what the values are made of.
const CORRECTED: usize = 24;

/// Numbers of a unit's curves: the distribution of the event time in both arms, and the residual at each knot.
const CURVE: usize = 2 * (CELLS - 1) + CELLS;

fn curve_numbers(shape: &ByArm<Shape>, residual: &Residual) -> [f32; CURVE] {
    let all = shape.iter().flat_map(|s| s.0).chain(residual.survival);
    let mut out = [0.0; CURVE];
    out.iter_mut().zip(all).for_each(|(x, v)| *x = v);
    out
}

fn curves_of(numbers: &[f32]) -> (ByArm<Shape>, [f32; CELLS]) {
    let shape = |from: usize| Shape(std::array::from_fn(|k| numbers[from + k]));
    let shapes = ByArm { control: shape(0), treated: shape(CELLS - 1) };
    (shapes, std::array::from_fn(|k| numbers[2 * (CELLS - 1) + k]))
}

/// The same with the spread over deals where there are several.
fn corrected_width(n_deals: usize) -> usize {
    if n_deals > 1 { CORRECTED + 2 } else { CORRECTED }
}

/// The models of the folds, deal after deal.
fn fold_models(fit: &Fit) -> impl Iterator<Item = &FoldModel> {
    fit.folds().filter_map(|f| Some(&f.corrector.as_ref()?.model))
}

fn numbers(c: &Corrected, r: &Residual) -> [f64; CORRECTED] {
    let ([s0, s1], [m0, m1]) = (c.cure_probability.into_array(), c.mean_event_time.into_array());
    let ([a, b], ab) = (c.spread.cure.variance.into_array(), c.spread.cure.covariance);
    let ([d, e], de) = (c.spread.time.variance.into_array(), c.spread.time.covariance);
    let [[cc, ct], [tc, tt]] = c.cross.map(ByArm::into_array).into_array();
    let [[p0, p1], [q0, q1]] = c.model.map(ByArm::into_array).into_array();
    let ([v0, v1], [wc, wt]) = (c.shape_variance.into_array(), c.weight.into_array());
    [s0, s1, m0, m1, a, b, ab, d, e, de, r.cure, r.time, cc, ct, tc, tt, p0, p1, q0, q1, v0, v1, wc, wt]
}

fn corrected_of(numbers: [f64; CORRECTED]) -> (Corrected, Residual) {
    let [s0, s1, m0, m1, a, b, ab, d, e, de, cure, time, cc, ct, tc, tt, p0, p1, q0, q1, v0, v1, wc, wt] = numbers;
    let corrected = Corrected {
        cure_probability: [s0, s1].into(),
        mean_event_time: [m0, m1].into(),
        spread: ByEstimand {
            cure: Spread { variance: [a, b].into(), covariance: ab },
            time: Spread { variance: [d, e].into(), covariance: de },
        },
        cross: ByArm { control: [cc, ct].into(), treated: [tc, tt].into() },
        shape_variance: [v0, v1].into(),
        model: ByEstimand { cure: [p0, p1].into(), time: [q0, q1].into() },
        weight: [wc, wt].into(),
        ..Corrected::NOTHING
    };
    (corrected, Residual { cure, time, ..Residual::default() })
}

/// Numbers of what one of several deals made of a unit.
const DEAL_VALUES: usize = 6;

fn deal_values_of([s0, s1, m0, m1, cure, time]: [f64; DEAL_VALUES]) -> DealValues {
    DealValues {
        cure_probability: [s0, s1].into(),
        mean_event_time: [m0, m1].into(),
        residual: Residual { cure, time, ..Residual::default() },
    }
}

/// The parts of [`Extras`] that are there, in the order in which they are stored.
fn names_of_extras(extras: &Extras) -> Vec<&'static str> {
    let all = [
        ("weight", extras.weight.is_some()),
        ("entry", extras.entry.is_some()),
        ("cluster", extras.cluster.is_some()),
        ("competing", extras.competing.is_some()),
    ];
    all.into_iter().filter(|(_, there)| *there).map(|(name, _)| name).collect()
}

/// Values converted at a time.
const CHUNK: usize = 8192;

fn write_array<T, const W: usize>(out: &mut impl Write, values: &[T], bytes: impl Fn(&T) -> [u8; W]) -> io::Result<()> {
    let mut buffer = Vec::with_capacity(W * CHUNK);
    for chunk in values.chunks(CHUNK) {
        buffer.clear();
        chunk.iter().for_each(|v| buffer.extend_from_slice(&bytes(v)));
        out.write_all(&buffer)?;
    }
    Ok(())
}

/// Reopens a run.
pub fn open_run(path: &Path) -> Result<Run, OpenError> {
    open(path).map_err(|reason| OpenError { path: path.to_path_buf(), reason })
}

fn open(path: &Path) -> Result<Run, Phrase> {
    if !path.exists() {
        return Err(phrase!["it does not exist; a run is a directory that ", Action::Fit, " wrote"]);
    }
    if !path.is_dir() || !path.join("summary.json").is_file() {
        return Err(phrase!["it has no summary.json; a run is a directory that ", Action::Fit, " wrote"]);
    }
    let text = read_text(&path.join("summary.json"), MOST_SUMMARY);
    let text = text.map_err(|e| format!("summary.json cannot be read: {e}"))?;
    let summary = parse_summary(&text)?;
    if let Some(name) = summary.files.keys().find(|name| !is_plain_name(name)) {
        let name = name.escape_debug();
        return Err(format!("summary.json lists `{name}`, which is no file of the run; do not use this run").into());
    }
    let bytes = read(&path.join("run.dvim"), most_in_memory()).map_err(|e| format!("run.dvim cannot be read: {e}"))?;
    // Rows and columns of tables are bounded by the cohort, which is in the store.
    let most = (1 << 30) + 64 * bytes.len() as u64;
    let others: Vec<(&String, &String)> = summary.files.iter().filter(|(name, _)| *name != "run.dvim").collect();
    let (read, (store, hashes)) = rayon::join(
        || read_store(&bytes),
        || (store_digests(&bytes), others.par_iter().map(|(name, _)| hash(&path.join(name), most)).collect::<Vec<_>>()),
    );
    let damaged = |e: String| fit_again(format!("run.dvim is damaged: {e}"));
    let store = store.map_err(damaged)?;
    let (cohort, fit, corrected, stored) = read.map_err(damaged)?;
    if summary.files.get("run.dvim") != Some(&store) {
        return Err(fit_again("summary.json and run.dvim are not of one run, or one of them was changed".into()));
    }
    if summary.horizon != cohort.horizon() || summary.options.options().as_ref() != Ok(&fit.options) {
        return Err(fit_again("summary.json was changed: its horizon or options are not those of the run".into()));
    }
    if !is_sealed(&text) {
        return Err(fit_again("summary.json was changed after it was written".into()));
    }
    let mut changed = Vec::new();
    for ((name, digest), found) in others.into_iter().zip(hashes) {
        match found {
            Err(e) if e.kind() == io::ErrorKind::NotFound => changed.push(format!("`{name}` is gone")),
            Err(e) if e.kind() == io::ErrorKind::InvalidData => return Err(format!("{e}; do not use this run").into()),
            Err(e) => changed.push(format!("`{name}` cannot be read: {e}")),
            Ok(found) if found != *digest => changed.push(format!("`{name}` was changed after it was written")),
            Ok(_) => {}
        }
    }
    Ok(Run { changed, summary, cohort, fit, corrected, stored })
}

/// What is wrong with a run, and that it has to be made again.
pub(crate) fn fit_again(found: String) -> Phrase {
    phrase![found, "; run ", Action::Fit, " again"]
}

fn parse_summary(text: &str) -> Result<Summary, Phrase> {
    #[derive(Deserialize)]
    struct Schema {
        schema: String,
        version: String,
    }
    let damaged = |e: serde_json::Error| fit_again(format!("summary.json is damaged ({e})"));
    let found: Schema = serde_json::from_str(text).map_err(damaged)?;
    if found.schema == BATCH_SCHEMA {
        return Err("it holds several runs, each in a directory of its own; name one of those".into());
    }
    if found.schema != SUMMARY_SCHEMA {
        let found = format!(
            "it was written by dvim {} under the schema {}, this version reads {SUMMARY_SCHEMA}",
            found.version, found.schema
        );
        return Err(fit_again(found).and(" or use that version"));
    }
    serde_json::from_str(text).map_err(damaged)
}

/// The paths of the files of a run, as far as they are known: commands that read a run never write to them.
pub fn files_of(run: &Path) -> Vec<PathBuf> {
    let listed = read_summary(run).map(|s| s.files).unwrap_or_default();
    let names = listed.keys().map(String::as_str).filter(|name| is_plain_name(name));
    names.chain(["summary.json", "run.dvim"]).map(|name| run.join(name)).collect()
}

/// Reads `summary.json` alone: of a run, or by its own path.
pub fn read_summary(path: &Path) -> Result<Summary, OpenError> {
    let fail = |reason: Phrase| OpenError { path: path.to_path_buf(), reason };
    let file = if path.is_dir() { path.join("summary.json") } else { path.to_path_buf() };
    let text = read_text(&file, MOST_SUMMARY).map_err(|e| fail(format!("summary.json cannot be read: {e}").into()))?;
    parse_summary(&text).map_err(fail)
}

/// The SHA-256 of a store, if that of its body is the one that it ends with.
fn store_digests(bytes: &[u8]) -> Result<String, String> {
    let (body, digest) = bytes.split_at_checked(bytes.len().saturating_sub(32)).ok_or("it was cut short")?;
    let mut hasher = Sha256::new();
    hasher.update(body);
    // What comes before is checked where the store is read, and said first.
    let is_ours = bytes.starts_with(MAGIC) && bytes.get(MAGIC.len()) == Some(&LAYOUT);
    if is_ours && hasher.clone().finalize()[..] != *digest {
        return Err("its checksum does not fit: it was cut short or changed after it was written".into());
    }
    hasher.update(digest);
    Ok(hex(&hasher.finalize()))
}

/// Reads a store whose checksum somebody else looks at.
pub(crate) fn read_store(bytes: &[u8]) -> Result<(Cohort, Fit, Vec<Corrected>, Option<Stored>), String> {
    if bytes.len() < MAGIC.len() + 1 + 8 + 32 || &bytes[..MAGIC.len()] != MAGIC {
        return Err("it is not such a file, or was cut short".into());
    }
    if bytes[MAGIC.len()] != LAYOUT {
        return Err(format!("its layout is number {}, this version reads number {LAYOUT}", bytes[MAGIC.len()]));
    }
    let body = &bytes[..bytes.len() - 32];
    let mut rest = Rest(&body[MAGIC.len() + 1..]);
    let header_bytes = rest.u64()?;
    let header: Header = serde_json::from_slice(rest.take(header_bytes)?).map_err(|e| e.to_string())?;
    let n = header.n_units;
    let p = header.names.len();
    let ids = match header.ids.as_str() {
        "rows" => Ids::Rows(n),
        "integers" => Ids::Integers(rest.array(n, i64::from_le_bytes)?),
        "texts" => {
            let ends = rest.array(n, |b| u64::from_le_bytes(b) as usize)?;
            let text = std::str::from_utf8(rest.take(header.id_bytes)?).map_err(|e| e.to_string())?;
            let in_order = ends.windows(2).all(|w| w[0] <= w[1]) && ends.last().is_none_or(|e| *e == text.len());
            if !in_order || !ends.iter().all(|&e| text.is_char_boundary(e)) {
                return Err("its ids do not fit together".into());
            }
            Ids::Texts { bytes: text.to_string(), ends }
        }
        other => return Err(format!("its ids are of an unknown kind `{other}`")),
    };
    let time = rest.array(n, f64::from_le_bytes)?;
    let marks = rest.take(n)?;
    let covariates = rest.array(n.checked_mul(p).ok_or("its size is absurd")?, f64::from_le_bytes)?;
    let mut extras = Extras::default();
    for name in &header.extras {
        match name.as_str() {
            "weight" => extras.weight = Some(rest.array(n, f64::from_le_bytes)?),
            "entry" => extras.entry = Some(rest.array(n, f64::from_le_bytes)?),
            "cluster" => extras.cluster = Some(rest.array(n, |b| u64::from_le_bytes(b) as u32)?),
            "competing" => extras.competing = Some(rest.array(n, |b| u64::from_le_bytes(b) != 0)?),
            other => return Err(format!("its units have something unknown, `{other}`")),
        }
    }
    if names_of_extras(&extras) != header.extras {
        return Err("its parts do not fit together".into());
    }
    let units = Units {
        extras,
        ids,
        time,
        event: marks.iter().map(|m| m & 1 != 0).collect(),
        arm: marks.iter().map(|m| if m & 2 != 0 { Arm::Treated } else { Arm::Control }).collect(),
        covariates,
        names: header.names,
        labels: header.labels,
    };
    let schema = match &header.covariates[..] {
        [] => None,
        records => Some(CovariateRecord::schema(records, p)?),
    };
    let cohort = Cohort::from_parts(units, schema, header.horizon).map_err(refused)?;
    let metrics = header.metrics.metrics();
    let (mut cross_fit, mut corrected, mut residuals) = (None, Vec::new(), Vec::new());
    if let Some(record) = &header.cross_fit {
        let n_folds = record.n_folds();
        let width = corrected_width(n_folds.len());
        if header.corrected != width {
            return Err(format!("it is an adjusted run of dvim {}, which stored other numbers", header.version));
        }
        let fold_of: Vec<Vec<u8>> =
            n_folds.iter().map(|_| Ok(rest.take(n)?.to_vec())).collect::<Result<_, String>>()?;
        let values = rest.array(n.checked_mul(width).ok_or("its size is absurd")?, f64::from_le_bytes)?;
        let curves = rest.array(n.checked_mul(CURVE).ok_or("its size is absurd")?, f32::from_le_bytes)?;
        let of_unit = |(values, curves): (&[f64], &[f32])| {
            let (numbers, spread) = values.split_first_chunk::<CORRECTED>().expect("so many are in each chunk");
            let (mut of_unit, mut residual) = corrected_of(*numbers);
            of_unit.split_sd = spread.first_chunk::<2>().map(|sd| ByEstimand::from(*sd));
            (of_unit.shape, residual.survival) = curves_of(curves);
            (of_unit, residual)
        };
        let all = values.par_chunks_exact(width).zip(curves.par_chunks_exact(CURVE)).with_min_len(1024);
        (corrected, residuals) = all.map(of_unit).unzip();
        let mut models = header.fold_models.iter().map(|m| m.predictor(p, header.horizon));
        let mut deals = Vec::new();
        for fold_of in fold_of {
            let several = n_folds.len() > 1;
            let numbers = rest.array(if several { n * DEAL_VALUES } else { 0 }, f64::from_le_bytes)?;
            let values =
                numbers.chunks_exact(DEAL_VALUES).map(|v| deal_values_of(std::array::from_fn(|i| v[i]))).collect();
            deals.push(KeptDeal { fold_of, models: Vec::new(), values });
        }
        for (deal, n_folds) in deals.iter_mut().zip(&n_folds).filter(|_| !header.fold_models.is_empty()) {
            for _ in 0..*n_folds {
                let predictor = models.next().ok_or("a fold has no model")??;
                let both = 2 * predictor.n_parameters();
                let covariance = rest.array(both * both, f64::from_le_bytes)?;
                deal.models.push(FoldModel { predictor: Trained::restored(predictor), covariance });
            }
        }
        if models.next().is_some() {
            return Err("it has more models than folds".into());
        }
        cross_fit = Some(record.restore(deals, &metrics.cure.scaling)?);
    }
    let [a, b] = header.covariance;
    let covariance = [a, b].map(|len| if len == 0 { Ok(None) } else { rest.array(len, f64::from_le_bytes).map(Some) });
    let [control, treated] = header.models;
    let [cov_control, cov_treated] = covariance;
    let options = header.options.options()?;
    let is_training = marks.iter().map(|m| m & 4 != 0).collect();
    let models = ByArm {
        control: control.model(cov_control?, header.horizon)?,
        treated: treated.model(cov_treated?, header.horizon)?,
    };
    let fit = match cross_fit {
        None => Fit::of_one_fold(options, is_training, models.map(Trained::restored), metrics),
        Some((deals, told)) => {
            let models = ArmModels::Described(models);
            let description = Description { models, metrics, cross_fit: Some(told) };
            Fit { options, is_training, deals, residuals, description }
        }
    };
    let stored = read_groups(header.groups, header.unserved, &fit, &mut rest)?;
    if !rest.0.is_empty() {
        return Err("it is longer than it says".into());
    }
    fits_together(&cohort, &fit)?;
    Ok((cohort, fit, corrected, stored))
}

/// The first problem for which the door refuses the units of a run.
fn refused(error: dvim::internal::error::Error) -> String {
    match error {
        dvim::internal::error::Error::Refused(problems) if !problems.is_empty() => {
            format!("its units are no cohort ({})", problems[0].found.spelled(&dvim::internal::phrase::Fields))
        }
        other => other.to_string(),
    }
}

/// Whether the parts of a run are of one size, and its numbers numbers: nothing after this validates.
fn fits_together(cohort: &Cohort, fit: &Fit) -> Result<(), String> {
    let p = cohort.n_covariates();
    let metrics = [&fit.description.metrics.cure, &fit.description.metrics.time];
    let sized = metrics
        .iter()
        .all(|m| m.weights.len() == p && m.scaling.center.len() == p && m.scaling.scale.len() == p)
        && fit.description.models.each_ref().iter().all(|m| {
            let q = 2 * p + 3;
            let parts = [&m.cure, &m.latency];
            let errors = |part: &dvim::internal::cure::Part| part.standard_errors.as_ref().is_none_or(|e| e.len() == p);
            parts.iter().all(|part| part.coefficients.len() == p && errors(part))
                && m.center.len() == p
                && m.covariance.as_ref().is_none_or(|c| c.len() == q * q)
        });
    let units = 0..cohort.n_units();
    let valid = metrics.iter().all(|m| {
        m.weights.iter().all(|w| (0.0..=dvim::internal::cohort::LARGEST_VALUE).contains(w))
            && m.scaling.scale.iter().all(|s| *s > 0.0 && s.is_finite())
            && m.scaling.center.iter().all(|c| c.is_finite())
    });
    let k = fit.options.fewest();
    let usable = fit.folds().all(|f| {
        let weights = |m: &Metric| m.weights.len() == p && m.weights.iter().all(|w| *w >= 0.0 && w.is_finite());
        let weight = f.corrector.iter().flat_map(|c| c.weight.iter()).all(|w| w.is_finite());
        f.metrics.iter().flatten().all(weights) && f.group_size.iter().all(|k| *k > 0) && weight
    });
    let pool = |z: Arm| units.clone().filter(|&i| cohort.arm(i) == z && !fit.is_training[i]).count();
    if !sized || !valid || !usable || p == 0 || k == 0 || Arm::BOTH.into_iter().any(|z| pool(z) < k) {
        return Err("its parts do not fit together".into());
    }
    Ok(())
}

/// What is left of a file that is being read.
struct Rest<'a>(&'a [u8]);

impl<'a> Rest<'a> {
    fn take(&mut self, n: usize) -> Result<&'a [u8], String> {
        let (taken, rest) = self.0.split_at_checked(n).ok_or("it ends too early")?;
        self.0 = rest;
        Ok(taken)
    }

    fn u64(&mut self) -> Result<usize, String> {
        let bytes = self.take(8)?.try_into().map_err(|_| "it ends too early")?;
        usize::try_from(u64::from_le_bytes(bytes)).map_err(|e| e.to_string())
    }

    fn array<T: Send, const W: usize>(
        &mut self,
        n: usize,
        value: impl Fn([u8; W]) -> T + Sync,
    ) -> Result<Vec<T>, String> {
        let bytes = self.take(n.checked_mul(W).ok_or("its size is absurd")?)?;
        let all = bytes.par_chunks_exact(W).with_min_len(1 << 15);
        Ok(all.map(|b| value(std::array::from_fn(|i| b[i]))).collect())
    }
}
