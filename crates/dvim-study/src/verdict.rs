//! Is the verdict right? The default analysis in every world of [`worlds`], its word for each effect,
//! and whether the interval holds the average of the world.
//!
//! Two errors count: an interval that misses under a good word, and a good interval under a bad one. A world is *sound*
//! where no reader would object: randomised or confounded by covariates that were measured, with overlap, enough
//! patients and events, censoring at random.

use crate::coverage::{titled_markdown, titled_text};
use crate::record::{Job, Record, Said, Settings};
use crate::table::{Records, write_to};
use crate::worlds::{self, World};
use dvim::internal::analysis;
use dvim::internal::audit::Audit;
use dvim::internal::audit::verdict::{Support, Verdict};
use dvim::internal::error::Error;
use dvim::internal::estimand::Estimand;
use dvim::internal::options::Options;
use dvim::internal::watch::Unwatched;
use dvim_report::tables::header;
use dvim_report::text::grouped;

const EFFECTS: [&str; 2] = ["cure_effect", "time_effect"];
/// The words that have an interval.
pub const WORDS: [Support; 4] = [Support::Supported, Support::Reserved, Support::NotSettled, Support::NotReliable];
/// Families in which an unmeasured cause makes every answer wrong: they are told apart.
pub const HIDDEN: &str = "unmeasured";

/// The jobs.
pub fn jobs(settings: &Settings, reps: usize) -> Vec<Job> {
    let of = |rep: usize| {
        let worlds = worlds::all().into_iter().enumerate();
        worlds.map(move |(i, w)| Job::of_world(i, w.n_units.unwrap_or(settings.n_units), rep))
    };
    (0..reps).flat_map(of).collect()
}

/// Does one job. A cohort that is refused has no verdict.
pub fn record(settings: &Settings, job: &Job) -> Result<Record, Error> {
    let world = &worlds::all()[job.place()];
    let seed = job.seed(settings);
    let said = match said(world, job.n_units, seed) {
        Ok(said) => said,
        Err(Error::Refused(_) | Error::Model { .. }) => Vec::new(),
        Err(other) => return Err(other),
    };
    Ok(Record { key: job.key(), cells: Vec::new(), intervals: None, verdicts: Some(said) })
}

fn said(world: &World, n: usize, seed: u64) -> Result<Vec<Said>, Error> {
    let cohort = world.draw(n, seed)?;
    let estimator = Options::default().estimator.with_one_deal();
    let found = analysis::run(&cohort, &Options { seed, estimator, ..Options::default() }, &Unwatched)?;
    let audit = Audit::of(&cohort, &found, &[])?;
    let verdict = Verdict::of(&cohort, &found, &audit);
    let of = |side: Estimand| {
        let name = side.effect();
        let a = audit.averages.iter().find(|a| a.estimand == name && a.population == "all")?;
        let reasons = verdict.reasons.iter().filter(|r| r.sides[side]);
        Some(Said {
            effect: name.into(),
            support: verdict.support[side].name().into(),
            estimate: a.estimate?,
            low: a.low?,
            high: a.high?,
            reasons: reasons.map(|r| format!("{}:{}", r.code, r.weight.name())).collect(),
        })
    };
    Ok(Estimand::BOTH.into_iter().filter_map(of).collect())
}

/// Analyses with a word, and how many of their intervals missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Count {
    /// Analyses.
    pub n: usize,
    /// Intervals that missed the truth.
    pub missed: usize,
}

impl Count {
    fn add(&mut self, missed: bool) {
        (self.n, self.missed) = (self.n + 1, self.missed + usize::from(missed));
    }

    fn and(self, other: Count) -> Count {
        Count { n: self.n + other.n, missed: self.missed + other.missed }
    }
}

/// One effect in one world, or in a family of worlds.
#[derive(Clone, Debug, PartialEq)]
pub struct Row {
    /// The family.
    pub family: String,
    /// The world; empty of a family.
    pub world: String,
    /// `cure_effect` or `time_effect`.
    pub effect: &'static str,
    /// The true average.
    pub truth: Option<f64>,
    /// By word, as [`WORDS`].
    pub words: [Count; 4],
}

impl Row {
    /// All words together.
    pub fn all(&self) -> Count {
        self.words.iter().fold(Count::default(), |sum, c| sum.and(*c))
    }
}

/// The rows that there are records for: worlds in their order, cure then time.
pub fn rows(settings: &Settings, records: &Records, reps: usize) -> Vec<Row> {
    let jobs = jobs(settings, reps);
    let mut out = Vec::new();
    for (place, world) in worlds::all().into_iter().enumerate() {
        let of_world = jobs.iter().filter(|j| j.place() == place);
        let found: Vec<&Said> = of_world.filter_map(|j| records.get(&j.key())?.verdicts.as_ref()).flatten().collect();
        if found.is_empty() {
            continue;
        }
        let truth = world.truth();
        for (side, effect) in EFFECTS.into_iter().enumerate() {
            let mut words = [Count::default(); 4];
            for s in found.iter().filter(|s| s.effect == effect) {
                let Some(word) = WORDS.iter().position(|w| w.name() == s.support) else { continue };
                words[word].add(!(s.low..=s.high).contains(&truth[side]));
            }
            let (family, name) = (world.family.to_string(), world.name.to_string());
            out.push(Row { family, world: name, effect, truth: Some(truth[side]), words });
        }
    }
    out
}

/// The rows summed over families, and over all but the unmeasured.
pub fn families(rows: &[Row]) -> Vec<Row> {
    let mut names: Vec<&str> = Vec::new();
    rows.iter().for_each(|r| {
        if !names.contains(&r.family.as_str()) {
            names.push(&r.family);
        }
    });
    let mut out = Vec::new();
    let mut sum = |family: &str, of: &dyn Fn(&&Row) -> bool| {
        for effect in EFFECTS {
            let mut words = [Count::default(); 4];
            for r in rows.iter().filter(|r| r.effect == effect).filter(of) {
                words.iter_mut().zip(r.words).for_each(|(w, c)| *w = w.and(c));
            }
            out.push(Row { family: family.into(), world: String::new(), effect, truth: None, words });
        }
    };
    names.iter().for_each(|name| sum(name, &|r: &&Row| r.family == *name));
    sum("all but unmeasured", &|r: &&Row| r.family != HIDDEN);
    out
}

/// The columns of `verdict.csv`.
pub const COLUMNS: [&str; 12] = [
    "family",
    "world",
    "effect",
    "truth",
    "supported",
    "supported_missed",
    "reserved",
    "reserved_missed",
    "not_settled",
    "not_settled_missed",
    "not_reliable",
    "not_reliable_missed",
];

/// As CSV: every world, then every family.
pub fn csv(found: &[Row]) -> Vec<u8> {
    let mut out = Vec::new();
    let mut row = header(&COLUMNS);
    for r in found.iter().chain(&families(found)) {
        row.text(&r.family).text(&r.world).text(r.effect).maybe(r.truth);
        r.words.iter().for_each(|c| {
            row.count(c.n).count(c.missed);
        });
        row.end();
    }
    write_to(&mut row, &mut out);
    out
}

fn grid(found: &[Row]) -> (Vec<String>, Vec<Vec<String>>) {
    let columns = ["Worlds", "effect", "analyses", "missed", "supported", "reserved", "not settled", "not reliable"];
    let words = |c: &Count| match c.n {
        0 => "—".to_string(),
        n => format!("{n} ({:.0} %)", 100.0 * c.missed as f64 / n as f64),
    };
    let line = |r: &Row| {
        let all = r.all();
        let missed = format!("{:.0} %", 100.0 * all.missed as f64 / all.n.max(1) as f64);
        let effect = if r.effect == EFFECTS[0] { "cure" } else { "time" };
        let mut out = vec![r.family.clone(), effect.into(), grouped(all.n), missed];
        out.extend(r.words.iter().map(words));
        out
    };
    (columns.map(String::from).to_vec(), families(found).iter().map(line).collect())
}

const TITLE: &str = "What a verdict is worth";

fn remark(settings: &Settings, found: &[Row]) -> String {
    let worlds = found.len() / 2;
    format!(
        "Analyses with each word, in brackets the share of their 95 % intervals that missed the true average. {worlds} worlds of {} patients where not said otherwise, seed {}, default options with one deal of ten splits.",
        grouped(settings.n_units),
        settings.seed
    )
}

/// As Markdown.
pub fn markdown(settings: &Settings, found: &[Row]) -> String {
    titled_markdown(TITLE, &grid(found), &remark(settings, found))
}

/// As text for a terminal.
pub fn text(settings: &Settings, found: &[Row]) -> String {
    titled_text(TITLE, 2, grid(found), &remark(settings, found))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dvim::internal::audit::verdict::rates::{RATES, Rate};

    /// What stands under a verdict is what the study found.
    #[test]
    fn printed_rates_are_those_of_the_study() {
        let file = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/study/verdict.csv");
        let table = std::fs::read_to_string(file).expect("the table of the study");
        for (side, effect) in Estimand::BOTH.into_iter().zip(EFFECTS) {
            let start = format!("all but unmeasured,,{effect},");
            let row = table.lines().find(|l| l.starts_with(&start)).expect("a row of sums");
            let counts: Vec<usize> = row.split(',').skip(4).map(|c| c.parse().expect("a count")).collect();
            let found = WORDS.iter().zip(counts.chunks(2)).map(|(w, c)| Rate { support: *w, n: c[0], missed: c[1] });
            assert_eq!(found.collect::<Vec<_>>(), RATES[side]);
        }
    }
}
