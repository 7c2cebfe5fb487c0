//! A run made ready to be asked about: who is in it, in any order, and what each patient's groups give.

use crate::filter::{self, Filter};
use dvim::internal::analysis::Analysis;
use dvim::internal::cohort::Cohort;
use dvim::internal::curve::Grid;
use dvim::internal::effect::Effect;
use dvim::internal::ground::Ground;
use dvim::internal::inspect::Search;
use dvim::internal::newcomers::Newcomers;
use dvim::internal::schema::{Covariate, Kind};
use dvim_report::names::Names;
use dvim_report::record::Summary;
use dvim_report::text::short;
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, OnceLock};

/// Groups can be made this large, or as large as the run's own, or as the smaller arm allows.
pub const LARGEST_GROUP: usize = 500;
/// The smallest group that can be asked for.
pub const SMALLEST_GROUP: usize = 2;
/// Orders that are kept.
const KEPT_ORDERS: usize = 12;
/// Units beyond which the packed arms of many folds are not kept: there are four for each fold.
const MOST_KEPT_UNITS: usize = 300_000;

/// A run, its index and its searches.
pub struct Explorer<'a> {
    /// The cohort.
    pub cohort: &'a Cohort,
    /// What was found.
    pub analysis: &'a Analysis,
    /// What `summary.json` says.
    pub summary: &'a Summary,
    /// The unit of time in words, where another is asked for than that of the run.
    pub time_unit: Option<String>,
    /// The times at which curves are held.
    pub grid: Grid,
    ground: &'a Ground<'a>,
    search: Search<'a>,
    /// What estimates new patients; made when first needed.
    newcomers: OnceLock<Option<Newcomers<'a>>>,
    /// For each unit its place in the effects.
    place: Vec<Place>,
    orders: Mutex<VecDeque<(Column, Arc<Vec<u32>>)>>,
}

/// Where the effect of a unit is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Among the effects.
    Effect(u32),
    /// Among those that the constraints left without a group.
    Unserved(u32),
    /// It trained the models.
    Trained,
}

/// What a table can be ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Column {
    /// The id: the order of the cohort.
    Id,
    /// The arm.
    Treatment,
    /// Time up to the horizon.
    Time,
    /// Whether the event happened before the horizon.
    Event,
    /// π.
    CureEffect,
    /// Δ.
    TimeEffect,
    /// The number of flags.
    Flags,
    /// A covariate, by its position in the schema.
    Covariate(usize),
}

impl<'a> Explorer<'a> {
    /// Makes a run ready. `ground` is that of the fit of the analysis.
    pub fn new(
        cohort: &'a Cohort,
        analysis: &'a Analysis,
        summary: &'a Summary,
        ground: &'a Ground<'a>,
    ) -> Explorer<'a> {
        let mut place = vec![Place::Trained; cohort.n_units()];
        analysis.units.iter().enumerate().for_each(|(e, &i)| place[i as usize] = Place::Effect(e as u32));
        analysis.unserved.iter().enumerate().for_each(|(e, (i, _))| place[*i as usize] = Place::Unserved(e as u32));
        let orders = Mutex::new(VecDeque::new());
        let time_unit = None;
        let (search, newcomers) = (Search::new(&analysis.fit, ground), OnceLock::new());
        let grid = Grid::of(cohort);
        Explorer { cohort, analysis, summary, time_unit, grid, ground, search, newcomers, place, orders }
    }

    /// What the arms, the time and the covariates are called.
    pub fn names(&self) -> Names {
        Names::of(self.summary, self.time_unit.as_deref())
    }

    /// Calls `f` with the search.
    pub fn with_search<T>(&self, f: impl FnOnce(&Search<'_>) -> T) -> T {
        if self.analysis.fit.first().folds.len() > 1 && self.cohort.n_units() > MOST_KEPT_UNITS {
            f(&Search::new(&self.analysis.fit, self.ground))
        } else {
            f(&self.search)
        }
    }

    /// What estimates new patients, and corrects groups of any size.
    pub fn newcomers(&self) -> Option<&Newcomers<'a>> {
        self.newcomers.get_or_init(|| Newcomers::new(&self.analysis.fit, self.cohort).ok()).as_ref()
    }

    /// The group sizes that can be asked for.
    pub fn group_sizes(&self) -> (usize, usize) {
        let most = LARGEST_GROUP.max(self.own_group_sizes(None).into_iter().max().unwrap_or(0));
        let high = self.search.largest_group().min(most);
        (SMALLEST_GROUP.min(high), high)
    }

    /// The run's own group sizes for cure and time: of a unit, or of new patients.
    pub fn own_group_sizes(&self, unit: Option<usize>) -> [usize; 2] {
        self.analysis.fit.fold_of(unit.map(|i| i as u32)).group_size.into_array()
    }

    /// Where the effect of a unit is.
    pub fn place(&self, unit: usize) -> Place {
        self.place[unit]
    }

    /// The effect of a unit, where it has one.
    pub fn effect(&self, unit: usize) -> Option<&'a Effect> {
        match self.place[unit] {
            Place::Effect(e) => Some(&self.analysis.effects[e as usize]),
            _ => None,
        }
    }

    /// The flags of a unit's row of `effects.csv`.
    pub fn flags(&self, unit: usize) -> Vec<&'static str> {
        match self.place[unit] {
            Place::Effect(e) => self.analysis.effects[e as usize].flags().map(|f| f.name()).collect(),
            Place::Unserved(e) => {
                self.analysis.unserved[e as usize].1.arms().map(dvim::internal::constraint::Unserved::flag).collect()
            }
            Place::Trained => Vec::new(),
        }
    }

    /// What a column is called.
    pub fn column(&self, name: &str) -> Option<Column> {
        Some(match name {
            "id" => Column::Id,
            "treatment" => Column::Treatment,
            "time" => Column::Time,
            "event" => Column::Event,
            "cure_effect" => Column::CureEffect,
            "time_effect" => Column::TimeEffect,
            "flags" => Column::Flags,
            name => Column::Covariate(self.cohort.schema().iter().position(|c| c.label() == name)?),
        })
    }

    /// The value of a unit that a column is ordered by; `None` where it is undefined.
    pub fn key(&self, column: Column, unit: usize) -> Option<f64> {
        Some(match column {
            Column::Id => unit as f64,
            Column::Treatment => self.cohort.arm(unit).index() as f64,
            Column::Time => self.cohort.time(unit),
            Column::Event => f64::from(u8::from(self.cohort.event(unit))),
            Column::CureEffect => self.effect(unit)?.cure(),
            Column::TimeEffect => self.effect(unit)?.time()?,
            Column::Flags => self.flags(unit).len() as f64,
            Column::Covariate(c) => {
                let (c, x) = (&self.cohort.schema()[c], self.cohort.covariates(unit));
                match &c.kind {
                    Kind::Category { .. } => x[c.columns()].iter().position(|v| *v == 1.0)? as f64,
                    _ => x[c.first],
                }
            }
        })
    }

    /// What is written in a column of a unit, where it is text.
    pub fn word(&self, column: Column, unit: usize) -> Option<String> {
        match column {
            Column::Id => Some(self.cohort.ids().text(unit).into_owned()),
            Column::Treatment => Some(self.cohort.label(self.cohort.arm(unit)).to_string()),
            Column::Covariate(c) => self.cohort.schema()[c].level_of(self.cohort.covariates(unit)).map(str::to_string),
            _ => None,
        }
    }

    /// All units in the order of a column, ascending, undefined values last, ties by id.
    fn order(&self, column: Column) -> Arc<Vec<u32>> {
        let kept = |orders: &VecDeque<(Column, Arc<Vec<u32>>)>| {
            orders.iter().find(|(c, _)| *c == column).map(|(_, o)| Arc::clone(o))
        };
        let lock = || self.orders.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(order) = kept(&lock()) {
            return order;
        }
        // Without the lock: two who ask at once sort twice, and nobody waits.
        let mut order: Vec<u32> = (0..self.cohort.n_units() as u32).collect();
        if column != Column::Id {
            let keys: Vec<f64> = order.iter().map(|&i| self.key(column, i as usize).unwrap_or(f64::NAN)).collect();
            order.sort_by(|&a, &b| keys[a as usize].total_cmp(&keys[b as usize]));
        }
        let order = Arc::new(order);
        let mut orders = lock();
        if orders.len() >= KEPT_ORDERS {
            orders.pop_front();
        }
        orders.push_back((column, Arc::clone(&order)));
        order
    }

    /// The units that pass a filter, in the order of a column. A unit whose id is what was searched comes first.
    pub fn select(&self, filter: &Filter, column: Column, descending: bool) -> Vec<u32> {
        let order = self.order(column);
        let passes = |i: &u32| filter.passes(self, *i as usize);
        // Undefined values stay last in both directions.
        let undefined = |i: &u32| self.key(column, *i as usize).is_none();
        let mut out: Vec<u32> = if descending {
            let from = order.partition_point(|i| !undefined(i));
            order[..from].iter().rev().chain(&order[from..]).copied().filter(passes).collect()
        } else {
            order.iter().copied().filter(passes).collect()
        };
        if let Some(at) = filter.exact(self).and_then(|unit| out.iter().position(|&i| i as usize == unit)) {
            out[..=at].rotate_right(1);
        }
        out
    }

    /// The filter that was written, or what is wrong with it.
    pub fn filter(&self, show: &str, text: &str) -> Result<Filter, String> {
        filter::Filter::read(self, show, text)
    }

    /// The values of a unit with these numbers, covariate by covariate, as a person would write them.
    pub fn values(&self, x: &[f64]) -> Vec<String> {
        let value = |c: &Covariate| c.level_of(x).map_or_else(|| short(x[c.first]), str::to_string);
        self.cohort.schema().iter().map(value).collect()
    }
}
