//! What another machine needs to estimate patients by a run whose cohort is a sample of them, in bytes that travel.
//!
//! A run directory holds everything about its cohort. To estimate other patients takes less: those whom groups are
//! drawn from, the models, and for each patient of the sample the fold that left the patient out. So a kit is small
//! however large the sample was. It holds patients' data, as a run does.
//!
//! ```text
//! 8 bytes   "DVIMKIT" and the version of the layout
//! parts     each after its length in 8 bytes, little-endian: the header (JSON), the ids of the sample, the fold that
//!           left out each of them in each deal, the store of those whom groups are drawn from (`run.rs`), and what
//!           averages need (`dvim::internal::audit::everybody`)
//! 32 bytes  SHA-256 of everything before
//! ```

use crate::atomic::Hashing;
use crate::run::{read_store, write_store};
use dvim::internal::analysis::Analysis;
use dvim::internal::arm::Arm;
use dvim::internal::audit::average::By;
use dvim::internal::audit::everybody::{Everybody, Outsider, Tally};
use dvim::internal::cohort::{Cohort, Roles, Units, outcomes_of};
use dvim::internal::constraint::Unserved;
use dvim::internal::effect::Effect;
use dvim::internal::error::Error;
use dvim::internal::fold::{Deal, Fit, NO_FOLD};
use dvim::internal::ground::Ground;
use dvim::internal::newcomers::{Newcomers, Patients, Prepared};
use dvim::internal::support::{NewUnits, Range, ranges};
use dvim::internal::table::{Ids, Table, Values};
use dvim::internal::watch::Watch;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

const MAGIC: &[u8; 8] = b"DVIMKIT\x01";

#[derive(Serialize, Deserialize)]
struct Header {
    /// `rows`, `integers` or `texts`.
    ids: String,
    n_ids: usize,
    /// What the sample has seen of each numeric covariate: its name, column, and smallest and largest value.
    ranges: Vec<(String, usize, f64, f64)>,
    weighted: bool,
}

/// A kit that was opened.
pub struct Kit {
    cohort: Cohort,
    fit: Fit,
    ranges: Vec<Range>,
    /// The patients of the sample, ascending, and in each deal the fold that left each of them out.
    ids: Ids,
    left_out: Vec<Vec<u8>>,
    weighted: bool,
    everybody: Everybody,
}

/// Patients of a batch, on the way to what is estimated of them.
pub(crate) struct Known {
    pub(crate) new: NewUnits,
    pub(crate) found: Vec<Result<Effect, Unserved>>,
    /// The fold of each in the first deal, or [`NO_FOLD`].
    in_sample: Vec<bool>,
}

/// Writes the kit of a run, and gives the sums over the run's own patients.
pub fn write_kit(cohort: &Cohort, analysis: &Analysis, by: &[By]) -> Result<(Vec<u8>, Tally), Error> {
    let (everybody, tally) = Everybody::of(cohort, analysis, by)?;
    let fit = &analysis.fit;
    let store = match small_store(cohort, fit)? {
        Some(store) => store,
        None => store_of(cohort, fit, (0..cohort.n_units() as u32).collect()).expect("the cohort was a cohort"),
    };
    let (kind, ids) = match cohort.ids() {
        Ids::Rows(_) => ("rows", Vec::new()),
        Ids::Integers(v) => ("integers", v.iter().flat_map(|id| id.to_le_bytes()).collect()),
        Ids::Texts { bytes, ends } => {
            let ends = ends.iter().flat_map(|end| (*end as u64).to_le_bytes());
            ("texts", ends.chain(bytes.bytes()).collect::<Vec<u8>>())
        }
    };
    let header = Header {
        ids: kind.into(),
        n_ids: cohort.n_units(),
        ranges: ranges(cohort).into_iter().map(|r| (r.name, r.column, r.low, r.high)).collect(),
        weighted: cohort.extras().weight.is_some(),
    };
    let folds: Vec<u8> = fit.deals.iter().flat_map(|d| d.fold_of.iter().copied()).collect();
    let header = serde_json::to_vec(&header).expect("a header is text and numbers");
    let mut out = MAGIC.to_vec();
    for part in [&header, &ids, &folds, &store, &everybody.to_bytes()] {
        out.extend_from_slice(&(part.len() as u64).to_le_bytes());
        out.extend_from_slice(part);
    }
    let digest = Sha256::digest(&out);
    out.extend_from_slice(&digest);
    Ok((out, tally))
}

/// The store of those whom groups are drawn from; `None` where others matter too, or where so few of a cohort would be
/// no cohort.
fn small_store(cohort: &Cohort, fit: &Fit) -> Result<Option<Vec<u8>>, Error> {
    let ground = Ground::of_fit(fit, cohort)?;
    // A caliper may be in standard deviations of the whole cohort.
    if ground.has_rules() {
        return Ok(None);
    }
    let mut units: Vec<u32> = ground.pools.iter().flat_map(|pool| pool.units.iter().copied()).collect();
    units.sort_unstable();
    let Some(store) = store_of(cohort, fit, units) else { return Ok(None) };
    let same = read_store(&store).is_ok_and(|(few, ..)| few.extras().names() == cohort.extras().names());
    Ok(same.then_some(store))
}

/// The store of some patients of a cohort, without what was found of them.
fn store_of(cohort: &Cohort, fit: &Fit, units: Vec<u32>) -> Option<Vec<u8>> {
    let at = |i: &u32| *i as usize;
    let rows: Vec<usize> = units.iter().map(at).collect();
    let Values::Id(ids) = Values::Id(cohort.ids().clone()).select(&rows) else { return None };
    let few = Units {
        ids,
        // At the horizon already, with times that were tied merged: which of them is here does not matter then.
        time: rows.iter().map(|&i| cohort.time(i)).collect(),
        event: rows.iter().map(|&i| cohort.event(i)).collect(),
        arm: rows.iter().map(|&i| cohort.arm(i)).collect(),
        covariates: cohort.rows_of(&units),
        names: cohort.names().to_vec(),
        labels: [Arm::Control, Arm::Treated].map(|arm| cohort.label(arm).to_string()),
        extras: cohort.extras().select(&units),
    };
    let cohort = Cohort::from_parts(few, Some(cohort.schema().to_vec()), cohort.horizon()).ok()?;
    let deal = |deal: &Deal| Deal {
        fold_of: rows.iter().map(|&i| deal.fold_of[i]).collect(),
        folds: deal.folds.clone(),
        values: if deal.values.is_empty() { Vec::new() } else { rows.iter().map(|&i| deal.values[i]).collect() },
    };
    let fit = Fit {
        options: fit.options.clone(),
        is_training: rows.iter().map(|&i| fit.is_training[i]).collect(),
        deals: fit.deals.iter().map(deal).collect(),
        residuals: rows.iter().map(|&i| fit.residuals[i]).collect(),
        description: fit.description.clone(),
    };
    let n = cohort.n_units();
    let units = (0..n as u32).collect();
    let analysis = Analysis { fit, units, effects: vec![Effect::NOTHING; n], unserved: Vec::new(), groups: None };
    let mut out = Hashing::new(Vec::new());
    write_store(&mut out, &cohort, &analysis).ok()?;
    Some(out.finish().0)
}

/// The next part of a kit.
fn part<'a>(rest: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (length, after) = rest.split_first_chunk::<8>()?;
    let (part, after) = after.split_at_checked(usize::try_from(u64::from_le_bytes(*length)).ok()?)?;
    *rest = after;
    Some(part)
}

impl Kit {
    /// Opens a kit. Fails with what is wrong with it.
    pub fn open(bytes: &[u8]) -> Result<Kit, String> {
        let cut = || String::from("it was cut short or changed");
        let (body, digest) = bytes.split_at_checked(bytes.len().saturating_sub(32)).ok_or_else(cut)?;
        let mut rest = body.strip_prefix(MAGIC).ok_or("it is no kit of this version")?;
        if Sha256::digest(body)[..] != *digest {
            return Err(cut());
        }
        let mut next = || part(&mut rest).ok_or_else(cut);
        let header: Header = serde_json::from_slice(next()?).map_err(|e| e.to_string())?;
        let (ids, folds, store, everybody) = (next()?, next()?, next()?, next()?);
        let n = header.n_ids;
        let whole =
            |bytes: &[u8]| bytes.chunks_exact(8).map(|b| b.try_into().expect("eight bytes")).collect::<Vec<[u8; 8]>>();
        let ids = match header.ids.as_str() {
            "rows" => Ids::Rows(n),
            "integers" if ids.len() == 8 * n => Ids::Integers(whole(ids).into_iter().map(i64::from_le_bytes).collect()),
            "texts" if ids.len() >= 8 * n => {
                let ends: Vec<usize> =
                    whole(&ids[..8 * n]).into_iter().map(|b| u64::from_le_bytes(b) as usize).collect();
                let text = std::str::from_utf8(&ids[8 * n..]).map_err(|e| e.to_string())?;
                let in_order = ends.windows(2).all(|w| w[0] <= w[1]) && ends.last().is_none_or(|e| *e == text.len());
                if !in_order || !ends.iter().all(|end| text.is_char_boundary(*end)) {
                    return Err(cut());
                }
                Ids::Texts { bytes: text.into(), ends }
            }
            _ => return Err(cut()),
        };
        let (cohort, fit, ..) = read_store(store)?;
        let p = cohort.n_covariates();
        let everybody = Everybody::from_bytes(everybody, p)?;
        if folds.len() != n * fit.deals.len() || header.ranges.iter().any(|r| r.1 >= p) {
            return Err(cut());
        }
        let range = |(name, column, low, high)| Range { name, column, low, high };
        Ok(Kit {
            ranges: header.ranges.into_iter().map(range).collect(),
            left_out: folds.chunks_exact(n.max(1)).map(<[u8]>::to_vec).collect(),
            ids,
            weighted: header.weighted,
            cohort,
            fit,
            everybody,
        })
    }

    /// Those whom groups are drawn from.
    pub fn cohort(&self) -> &Cohort {
        &self.cohort
    }

    /// What was learned.
    pub fn fit(&self) -> &Fit {
        &self.fit
    }

    /// What averages need.
    pub fn everybody(&self) -> &Everybody {
        &self.everybody
    }

    /// Estimates the rows of a table whose covariates were read; `ids` say who is of the sample.
    pub(crate) fn estimate(
        &self,
        (newcomers, prepared): (&Newcomers<'_>, &Prepared<'_>),
        new: NewUnits,
        ids: &Ids,
        watch: &dyn Watch,
    ) -> Result<Known, Error> {
        let named = !matches!(ids, Ids::Rows(_));
        let places: Vec<Option<usize>> =
            (0..ids.len()).map(|i| self.ids.position(&ids.text(i)).filter(|_| named)).collect();
        let own = |(i, place): (usize, &Option<usize>)| place.and_then(|_| self.cohort.position(&ids.text(i)));
        let own: Vec<Option<u32>> = places.iter().enumerate().map(own).map(|o| o.map(|o| o as u32)).collect();
        let of_deal = |folds: &Vec<u8>| places.iter().map(|place| place.map_or(NO_FOLD, |at| folds[at])).collect();
        let left_out: Vec<Vec<u8>> = self.left_out.iter().map(of_deal).collect();
        let patients = Patients { covariates: &new.covariates, own: &own, left_out: &left_out };
        let found = newcomers.estimate_each(prepared, &patients, watch)?;
        Ok(Known { found, in_sample: places.iter().map(Option::is_some).collect(), new })
    }

    /// What the sample has seen of each numeric covariate.
    pub(crate) fn ranges(&self) -> &[Range] {
        &self.ranges
    }

    /// The sums over the patients of a table who are not of the sample.
    pub(crate) fn tally(&self, known: &Known, table: &Table, roles: &Roles) -> Result<Tally, Error> {
        let roles = Roles { weights: roles.weights.clone().filter(|_| self.weighted), ..roles.clone() };
        let labels = [Arm::Control, Arm::Treated].map(|arm| self.cohort.label(arm).to_string());
        let seen = outcomes_of(table, &roles, &labels, self.cohort.horizon())?;
        let p = self.cohort.n_covariates();
        let mut tally = self.everybody.nobody();
        for (q, (found, seen)) in known.found.iter().zip(&seen).enumerate() {
            let Some(corrected) = found.as_ref().ok().and_then(|e| e.corrected.as_ref()) else { continue };
            if !known.in_sample[q] {
                let covariates = &known.new.covariates[q * p..(q + 1) * p];
                let outsider = Outsider { covariates, corrected, outcome: &seen.outcome, arm: seen.arm };
                self.everybody.add(&mut tally, &outsider);
            }
        }
        Ok(tally)
    }
}
