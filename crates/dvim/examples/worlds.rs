#![allow(clippy::print_stdout)]
//! Errors and coverage of the adjusted estimator in worlds that its model does not describe: `worlds N COHORTS
//! FIRST_SEED [SPLITS] [WORLD,…]`. The truth of each patient is exact: times are drawn from the curve that it is
//! computed from.

use dvim::internal::analysis::{self, Analysis};
use dvim::internal::audit::Audit;
use dvim::internal::cohort::{Arm, Cohort, Units};
use dvim::internal::options::{AdjustedOptions, Estimator, Options};
use dvim::internal::outcome::Extras;
use dvim::internal::table::Ids;
use dvim::internal::watch::Unwatched;
use rayon::prelude::*;

const HORIZON: f64 = 10.0;
const STEPS: usize = 200;

/// SplitMix64.
struct Draws(u64);

impl Draws {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn normal(&mut self) -> f64 {
        let (u, v) = (self.uniform().max(1e-300), self.uniform());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }
}

fn expit(x: f64) -> f64 {
    1.0 / (1.0 + (-x).exp())
}

fn above(x: f64, cut: f64) -> f64 {
    f64::from(u8::from(x > cut))
}

/// Survival of the uncured with a Weibull time, truncated at the horizon.
fn mixture(t: f64, cured: f64, scale: f64, shape: f64) -> f64 {
    let f = |t: f64| -(-(t / scale).powf(shape)).exp_m1();
    cured + (1.0 - cured) * (1.0 - f(t) / f(HORIZON))
}

fn hazards(t: f64, log_ratio: f64, scale: f64, shape: f64) -> f64 {
    (-(t / scale).powf(shape) * log_ratio.exp()).exp()
}

/// A world: its covariates, who is treated, the curve of each arm, and the rate at which patients are lost.
struct World {
    name: &'static str,
    p: usize,
    covariates: fn(&mut Draws, usize) -> Vec<f64>,
    propensity: fn(&[f64]) -> f64,
    survival: fn(&[f64], f64, f64) -> f64,
    lost: fn(&[f64], f64) -> f64,
    /// Times are recorded in these steps; 0 for exactly.
    rounded: f64,
}

fn plain(d: &mut Draws, p: usize) -> Vec<f64> {
    (0..p).map(|j| if j % 4 == 3 { above(d.uniform(), 0.5) } else { d.normal() }).collect()
}

fn half(_: &[f64]) -> f64 {
    0.5
}

fn mild(_: &[f64], _: f64) -> f64 {
    0.04
}

fn worlds() -> Vec<World> {
    let base = World {
        name: "linear",
        p: 12,
        covariates: plain,
        propensity: half,
        survival: |x, z, t| {
            let cured = expit(-0.5 + 0.7 * x[0] - 0.5 * x[1] + z * (0.5 + 0.6 * x[2]));
            mixture(t, cured, (1.2 + 0.3 * x[4] + z * (0.3 + 0.2 * x[0])).exp(), 1.4)
        },
        lost: mild,
        rounded: 0.0,
    };
    let with = |name: &'static str, survival: fn(&[f64], f64, f64) -> f64| World { name, survival, ..base };
    vec![
        World { ..base },
        with("ph", |x, z, t| {
            let r =
                0.5 * x[0] - 0.4 * x[1] + 0.3 * x[2] + 0.4 * x[3] + 0.2 * x[4] - z * (0.4 + 0.3 * x[0] - 0.2 * x[5]);
            hazards(t, r, 9.0, 1.1)
        }),
        World {
            name: "ph22",
            p: 22,
            ..with("ph22", |x, z, t| {
                let r: f64 = (0..10).map(|j| if j % 2 == 0 { 0.25 } else { -0.2 } * x[j]).sum();
                hazards(t, r - z * (0.35 + 0.25 * x[1]), 12.0, 0.9)
            })
        },
        with("ph_const", |x, z, t| hazards(t, 0.6 * x[0] - 0.4 * x[1] + 0.5 * x[3] - 0.5 * z, 8.0, 1.0)),
        with("and3", |x, z, t| {
            let hit = above(x[0], -0.3) * above(x[1], -0.3) * above(x[2], -0.5);
            mixture(t, expit(-0.6 + 0.4 * x[0] + 0.4 * x[4] + 1.9 * z * hit), (1.2f64 + 0.3 * x[5]).exp(), 1.3)
        }),
        with("tree", |x, z, t| {
            let (a, b) = (above(x[3], 0.5), above(x[0], 0.2));
            let effect = if a > 0.5 { if b > 0.5 { 1.6 } else { -0.6 } } else { if x[7] > 0.5 { 0.8 } else { -0.2 } };
            let prog = if x[1] > 0.0 { 0.8 } else { -0.6 } + 0.6 * x[11];
            mixture(t, expit(-0.4 + prog + z * effect), (1.3 + 0.3 * a).exp(), 1.2)
        }),
        with("threshold", |x, z, t| {
            let hit = above(x[0].abs(), 0.9);
            mixture(t, expit(-0.3 + 0.6 * x[1] + z * (1.3 * hit - 0.2)), (1.2f64 + 0.3 * x[2]).exp(), 1.3)
        }),
        with("curved", |x, z, t| {
            let hit = (1.5 * x[0]).sin() + 0.5 * x[1] * x[2];
            mixture(t, expit(-0.3 + 0.5 * x[4] + z * (0.3 + 0.8 * hit)), (1.2f64 + 0.3 * x[2]).exp(), 1.3)
        }),
        with("constant", |x, z, t| {
            let cured = 0.15 + 0.45 * expit(x[0] * x[0] - 1.0 + 0.8 * x[1]) + 0.15 * z;
            mixture(t, cured, 4.0 + z, 1.3)
        }),
        with("nothing", |x, _, t| {
            mixture(t, expit(-0.3 + 0.6 * x[0] + 0.5 * x[1] * x[2]), (1.2f64 + 0.3 * x[4]).exp(), 1.3)
        }),
        World {
            name: "ring",
            propensity: |x| if (x[0] * x[0] + x[1] * x[1] - 1.4).abs() < 0.8 { 0.8 } else { 0.2 },
            ..with("ring", |x, z, t| {
                let inside = f64::from(u8::from((x[0] * x[0] + x[1] * x[1] - 1.4).abs() < 0.8));
                mixture(t, expit(-0.8 + 1.6 * inside + 0.3 * x[2] + 0.25 * z), (1.2f64 + 0.3 * x[4]).exp(), 1.3)
            })
        },
        World {
            name: "checker",
            propensity: |x| if (x[0] > 0.0) == (x[1] > 0.0) { 0.75 } else { 0.25 },
            ..with("checker", |x, z, t| {
                let same = f64::from(u8::from((x[0] > 0.0) == (x[1] > 0.0)));
                mixture(t, expit(-0.8 + 1.4 * same + 0.25 * z), (1.2f64 + 0.3 * x[4] + 0.4 * same).exp(), 1.3)
            })
        },
        World {
            name: "lost",
            lost: |x, z| 0.09 * (0.9 * x[0] + 0.7 * x[1] - 0.4 * z).exp(),
            ..with("lost", |x, z, t| {
                let cured = expit(-0.2 - 0.8 * x[0] - 0.6 * x[1] + 0.4 * z);
                mixture(t, cured, (1.3 - 0.3 * x[0]).exp(), 1.3)
            })
        },
        World { rounded: 1.0, ..with("months", base.survival) },
        World {
            name: "skewed",
            covariates: |d, p| (0..p).map(|j| if j < 4 { (1.2 * d.normal()).exp() } else { d.normal() }).collect(),
            ..with("skewed", |x, z, t| {
                let l = |j: usize| x[j].ln() / 1.2;
                mixture(t, expit(-0.3 + 0.6 * l(0) + z * (0.3 + 0.7 * l(1))), (1.2 + 0.3 * l(2)).exp(), 1.3)
            })
        },
        World {
            name: "copies",
            covariates: |d, p| {
                let mut x = plain(d, p);
                for j in 0..3 {
                    x[p - 1 - j] = x[j] + 0.15 * d.normal();
                }
                x
            },
            ..with("copies", base.survival)
        },
        with("crossing", |x, z, t| {
            let r = (0.4 * x[0] + 0.3 * x[1]).exp();
            (-(t / (9.0 + 2.0 * x[2].tanh())).powf(0.8 + 0.8 * z) * r).exp()
        }),
        World { name: "rare", propensity: |_| 0.07, ..with("rare", base.survival) },
        with("surely", |x, z, t| {
            let cured = if x[3] > 0.5 { 0.995 } else { expit(-0.8 + 0.6 * x[0] + 0.5 * z) };
            mixture(t, cured, (1.2 + 0.3 * x[4] + 0.3 * z).exp(), 1.3)
        }),
        with("all_events", |x, z, t| {
            let f = |t: f64| -(-(t / (1.0f64 + 0.3 * x[0] + z * (0.2 + 0.2 * x[1])).exp()).powf(1.3)).exp_m1();
            1.0 - f(t) / f(HORIZON)
        }),
        with("timetree", |x, z, t| {
            let hit = if x[3] > 0.5 && x[0] > 0.0 { 0.8 } else { 0.0 };
            mixture(t, expit(-0.6 + 0.5 * x[1] + 0.3 * z), (0.9 + 0.3 * x[4] + z * hit).exp(), 1.6)
        }),
        World {
            name: "confounded",
            propensity: |x| expit(0.8 * x[0] - 0.6 * x[1]),
            ..with("confounded", base.survival)
        },
        World {
            name: "bent",
            propensity: |x| expit(0.9 * (x[0] * x[0] - 1.0) - 0.6 * above(x[1], 0.3)),
            ..with("bent", |x, z, t| {
                let cured = expit(-0.4 + 0.7 * (x[0] * x[0] - 1.0) + 0.5 * above(x[1], 0.3) + 0.4 * z);
                mixture(t, cured, (1.2 + 0.3 * x[4] + 0.2 * z).exp(), 1.3)
            })
        },
    ]
}

/// What is true of a patient: S(H) and E[T | T < H] in each arm.
struct Truth {
    cured: [f64; 2],
    mean: [f64; 2],
}

fn curve(w: &World, x: &[f64], z: f64) -> Vec<f64> {
    (0..=STEPS).map(|k| (w.survival)(x, z, HORIZON * k as f64 / STEPS as f64)).collect()
}

fn draw(w: &World, n: usize, seed: u64) -> (Cohort, Vec<Truth>) {
    let mut d = Draws(seed.wrapping_mul(0x2545_f491_4f6c_dd1d) ^ w.name.bytes().fold(7, |a, b| a * 31 + u64::from(b)));
    let (mut time, mut event, mut arm, mut covariates, mut truth) = (vec![], vec![], vec![], vec![], vec![]);
    for _ in 0..n {
        let x = (w.covariates)(&mut d, w.p);
        let z = d.uniform() < (w.propensity)(&x);
        let curves = [0.0, 1.0].map(|z| curve(w, &x, z));
        let step = HORIZON / STEPS as f64;
        let cured = curves.each_ref().map(|c| c[STEPS]);
        let mean = curves.each_ref().map(|c| {
            let area: f64 = c.windows(2).map(|s| 0.5 * (s[0] + s[1]) * step).sum();
            (area - HORIZON * c[STEPS]) / (1.0 - c[STEPS]).max(1e-12)
        });
        truth.push(Truth { cured, mean });
        let own = &curves[usize::from(z)];
        let u = d.uniform();
        let t = if u < own[STEPS] {
            2.0 * HORIZON
        } else {
            let k = own.windows(2).position(|s| s[1] <= u).unwrap_or(STEPS - 1);
            step * (k as f64 + (own[k] - u) / (own[k] - own[k + 1]).max(1e-300))
        };
        let c = -d.uniform().max(1e-300).ln() / (w.lost)(&x, f64::from(u8::from(z)));
        let mut y = t.min(c).min(HORIZON);
        let seen = t <= c && t < HORIZON;
        if w.rounded > 0.0 && y < HORIZON {
            y = ((y / w.rounded).ceil() * w.rounded).min(HORIZON - 1e-6);
        }
        time.push(y);
        event.push(seen);
        arm.push(if z { Arm::Treated } else { Arm::Control });
        covariates.extend(x);
    }
    let units = Units {
        ids: Ids::Integers((1..=n as i64).collect()),
        names: (0..w.p).map(|j| format!("x{j}")).collect(),
        labels: ["0".into(), "1".into()],
        time,
        event,
        arm,
        covariates,
        extras: Extras::default(),
    };
    (Cohort::from_parts(units, None, HORIZON).expect("sound parts"), truth)
}

const NAMES: [&str; 17] = [
    "err_pi", "mad_pi", "err_dl", "mad_dl", "cov_pi", "cov_dl", "tail_pi", "tail_dl", "wrong", "wid_pi", "wid_dl",
    "a_err", "a_cov", "a_se", "t_err", "t_cov", "het",
];

fn measure(w: &World, n: usize, seed: u64, splits: usize) -> [f64; 17] {
    let (cohort, truth) = draw(w, n, seed);
    let adjusted = AdjustedOptions { splits: Some(splits), ..AdjustedOptions::default() };
    let options = Options { estimator: Estimator::Adjusted(adjusted), seed, ..Options::default() };
    let found: Analysis = analysis::run(&cohort, &options, &Unwatched).expect("a sound cohort");
    let audit = Audit::of(&cohort, &found, &[]).expect("an audit");
    let of = |i: usize| &truth[found.units[i] as usize];
    let pi = |i: usize| of(i).cured[1] - of(i).cured[0];
    let dl = |i: usize| of(i).mean[1] - of(i).mean[0];
    let m = found.units.len();
    let mean = |f: &dyn Fn(usize) -> f64| (0..m).map(f).sum::<f64>() / m as f64;
    let (true_pi, true_dl) = (mean(&pi), mean(&dl));
    let time = |i: usize| found.effects[i].time().unwrap_or(0.0);
    let cure_interval = |i: usize| found.effects[i].cure_interval(0.95);
    let time_interval = |i: usize| found.effects[i].time_interval(HORIZON, 0.95);
    let yes = |b: bool| f64::from(u8::from(b));
    let cov_pi = |i: usize| yes(cure_interval(i).covers(pi(i)));
    let cov_dl = |i: usize| yes(time_interval(i).is_none_or(|t| t.covers(dl(i))));
    let tail = |value: &dyn Fn(usize) -> f64, average: f64, covered: &dyn Fn(usize) -> f64| {
        let mut order: Vec<usize> = (0..m).collect();
        order.sort_by(|&a, &b| (value(b) - average).abs().total_cmp(&(value(a) - average).abs()));
        order[..m / 10].iter().map(|&i| covered(i)).sum::<f64>() / (m / 10) as f64
    };
    let wrong = |i: usize| {
        let c = cure_interval(i);
        yes((c.low > 0.0 && pi(i) <= 1e-9) || (c.high < 0.0 && pi(i) >= -1e-9))
    };
    let average = |name: &str| {
        let a = audit.averages.iter().find(|a| a.estimand == name && a.population == "all").expect("an average");
        (
            a.estimate.unwrap_or(f64::NAN),
            a.se.unwrap_or(f64::NAN),
            a.low.unwrap_or(f64::NAN),
            a.high.unwrap_or(f64::NAN),
        )
    };
    let (cure, of_time) = (average("cure_effect"), average("time_effect"));
    let het = audit.heterogeneity.cure.as_ref().and_then(|v| v.p()).map_or(0.0, |p| yes(p < 0.05));
    [
        100.0 * mean(&|i| (found.effects[i].cure() - pi(i)).abs()),
        100.0 * mean(&|i| (pi(i) - true_pi).abs()),
        10.0 * mean(&|i| (time(i) - dl(i)).abs()),
        10.0 * mean(&|i| (dl(i) - true_dl).abs()),
        100.0 * mean(&cov_pi),
        100.0 * mean(&cov_dl),
        100.0 * tail(&pi, true_pi, &cov_pi),
        100.0 * tail(&dl, true_dl, &cov_dl),
        100.0 * mean(&wrong),
        100.0 * mean(&|i| cure_interval(i).width()),
        10.0 * mean(&|i| time_interval(i).map_or(HORIZON, |t| t.width())),
        100.0 * (cure.0 - true_pi),
        100.0 * yes(cure.2 <= true_pi && true_pi <= cure.3),
        100.0 * cure.1,
        10.0 * (of_time.0 - true_dl),
        100.0 * yes(of_time.2 <= true_dl && true_dl <= of_time.3),
        100.0 * het,
    ]
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |k: usize, default: u64| arguments.get(k).and_then(|a| a.parse().ok()).unwrap_or(default);
    let (n, cohorts, first, splits) = (number(1, 2000) as usize, number(2, 2), number(3, 1), number(4, 10) as usize);
    let only: Option<Vec<&str>> = arguments.get(5).map(|names| names.split(',').collect());
    let all = worlds();
    let all: Vec<&World> = all.iter().filter(|w| only.as_ref().is_none_or(|o| o.contains(&w.name))).collect();
    let jobs: Vec<(usize, u64)> = (0..all.len()).flat_map(|w| (first..first + cohorts).map(move |s| (w, s))).collect();
    let found: Vec<[f64; 17]> = jobs.par_iter().map(|&(w, s)| measure(all[w], n, s, splits)).collect();
    print!("{:10}", "world");
    NAMES.iter().for_each(|name| print!(" {name:>7}"));
    println!();
    let mut sums = [0.0; 17];
    for (w, world) in all.iter().enumerate() {
        let rows: Vec<&[f64; 17]> = jobs.iter().zip(&found).filter(|(j, _)| j.0 == w).map(|(_, r)| r).collect();
        print!("{:10}", world.name);
        for k in 0..17 {
            // Errors of averages are root mean squares.
            let value = if k == 11 || k == 14 {
                (rows.iter().map(|r| r[k] * r[k]).sum::<f64>() / rows.len() as f64).sqrt()
            } else {
                rows.iter().map(|r| r[k]).sum::<f64>() / rows.len() as f64
            };
            sums[k] += value;
            print!(" {value:7.2}");
        }
        println!();
    }
    print!("{:10}", "mean");
    sums.iter().for_each(|s| print!(" {:7.2}", s / all.len() as f64));
    println!();
}
