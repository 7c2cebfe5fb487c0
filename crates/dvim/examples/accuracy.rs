#![allow(clippy::print_stdout)]
//! Errors of both estimators against the truth: `accuracy N SEEDS`; of the adjusted one under each penalty: `accuracy N
//! SEEDS penalties`; with covariates that say nothing, P in all: `accuracy N SEEDS wide=P`.

use dvim::internal::analysis;
use dvim::internal::metric::Scale;
use dvim::internal::options::AdjustedOptions;
use dvim::internal::options::{Estimator, Options};
use dvim::internal::simulate::{Scenario, simulate};
use std::time::Instant;

/// Prints how long each stage took, with the variable STAGES set.
struct Stages(std::sync::Mutex<(Instant, &'static str)>);

impl dvim::internal::watch::Watch for Stages {
    fn progress(&self, stage: &'static str, _done: usize, _total: usize) {
        let mut last = self.0.lock().expect("one thread at a time");
        if last.1 != stage {
            if std::env::var_os("STAGES").is_some() {
                println!("    {:26} {:.3} s", last.1, last.0.elapsed().as_secs_f64());
            }
            *last = (Instant::now(), stage);
        }
    }
}

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).filter_map(|a| a.parse().ok()).collect();
    let (n, seeds) = (numbers.first().copied().unwrap_or(2000), numbers.get(1).copied().unwrap_or(2));
    let wide: Option<usize> = std::env::args().find_map(|a| a.strip_prefix("wide=").and_then(|p| p.parse().ok()));
    for scenario in Scenario::PAPER {
        let penalties = std::env::args().any(|a| a == "penalties");
        let variants: &[(&str, Option<Option<f64>>)] = if penalties {
            &[
                ("prior", Some(None)),
                ("ridge", Some(Some(0.0))),
                ("net 0.5", Some(Some(0.5))),
                ("net 1", Some(Some(1.0))),
            ]
        } else {
            &[("paper", None), ("adjusted", Some(None))]
        };
        for &(name, adjusted) in variants {
            let (mut cure, mut time, mut seconds) = (0.0, 0.0, 0.0);
            let mut note = String::new();
            for seed in 1..=seeds {
                let world = simulate(scenario, n as usize, false, seed);
                let world = wide.map_or(world.clone(), |p| world.widened(p, seed));
                let options = if let Some(elastic_net) = adjusted {
                    Options {
                        estimator: Estimator::Adjusted(AdjustedOptions {
                            elastic_net,
                            largest_group: numbers
                                .get(2)
                                .map_or(AdjustedOptions::default().largest_group, |k| *k as usize),
                            ..AdjustedOptions::default()
                        }),
                        seed,
                        ..Options::paper()
                    }
                } else {
                    Options { scale: Scale::None, seed, group_size: if n < 5000 { 35 } else { 50 }, ..Options::paper() }
                };
                let start = Instant::now();
                let watch = Stages(std::sync::Mutex::new((start, "start")));
                let found = analysis::run(&world.cohort, &options, &watch).expect("a sound cohort");
                dvim::internal::watch::Watch::progress(&watch, "end", 0, 0);
                seconds += start.elapsed().as_secs_f64();
                let error = |f: &dyn Fn(usize) -> Option<f64>| {
                    let all: Vec<f64> = (0..found.units.len()).filter_map(f).collect();
                    all.iter().sum::<f64>() / all.len() as f64
                };
                let truth = |i: usize| &world.truth[found.units[i] as usize];
                cure += error(&|i| Some((found.effects[i].cure() - truth(i).cure_effect()).abs()));
                time += error(&|i| found.effects[i].time().map(|t| (t - truth(i).time_effect()).abs()));
                let fold = &found.fit.first().folds[0];
                if let (Some(told), Some(c)) = (&found.fit.description.cross_fit, &fold.corrector) {
                    let terms = c.model.predictor.n_terms();
                    let (family, sizes) = (told.family.name(), fold.group_size);
                    note = format!("{family} {:?} {sizes:?} {:?} terms {terms}", told.strengths, c.weight);
                }
            }
            let s = seeds as f64;
            println!(
                "{n} {:18} {:8} {:6.2} {:7.2}  {:.2} s  {note}",
                scenario.name(),
                name,
                100.0 * cure / s,
                time / s,
                seconds / s
            );
        }
    }
}
