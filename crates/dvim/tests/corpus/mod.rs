//! Tables that look like those of registries and trials, clean or with one column that does not belong there.
//!
//! Everything is drawn from a seed. A clean table has between 6 and 16 covariates of the kinds that such tables have:
//! ages, laboratory values with long tails, counts, stages as text, codes, years of entry on which censoring depends.
//! Outcomes depend on some of them, strongly in some tables. A spoilt table is a clean one with a leak.

use dvim::internal::table::TextValues;
use dvim::{Column, Roles, Table, Values};

/// Draws from a seed (SplitMix64).
pub struct Draw(u64);

impl Draw {
    pub fn new(seed: u64) -> Draw {
        Draw(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x5851_f42d_4c95_7f2d)
    }

    pub fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64
    }

    pub fn normal(&mut self) -> f64 {
        let (u, v) = (1.0 - self.uniform(), self.uniform());
        (-2.0 * u.ln()).sqrt() * (std::f64::consts::TAU * v).cos()
    }

    pub fn below(&mut self, n: usize) -> usize {
        ((self.uniform() * n as f64) as usize).min(n - 1)
    }

    pub fn chance(&mut self, p: f64) -> bool {
        self.uniform() < p
    }

    fn shuffled(&mut self, n: usize) -> Vec<usize> {
        let mut out: Vec<usize> = (0..n).collect();
        (1..n).rev().for_each(|i| out.swap(i, self.below(i + 1)));
        out
    }
}

/// A table, how it is analysed, and what is wrong with it.
pub struct Case {
    pub name: String,
    pub table: Table,
    pub roles: Roles,
    /// Columns that must not pass.
    pub bad: Vec<String>,
    /// Whether rows repeat each other.
    pub repeated: bool,
    /// Whether a warning is enough: only a person who looks can tell.
    pub look: bool,
}

fn text(levels: &[&str], codes: Vec<usize>) -> Values {
    let levels = levels.iter().map(|l| l.to_string()).collect();
    Values::Text(TextValues { codes: codes.into_iter().map(|c| c as u32).collect(), levels })
}

fn numbers(v: Vec<f64>) -> Values {
    Values::Number(v.into())
}

fn rounded(x: f64, digits: i32) -> f64 {
    let scale = 10f64.powi(digits);
    (x * scale).round() / scale
}

/// A covariate of a kind, and the score by which it acts on the outcome.
fn covariate(kind: usize, n: usize, d: &mut Draw) -> (&'static str, Values, Vec<f64>) {
    let mut z: Vec<f64> = (0..n).map(|_| d.normal()).collect();
    let of = |f: &dyn Fn(f64) -> f64| numbers(z.iter().map(|x| f(*x)).collect());
    let cut = |at: &[f64]| -> Vec<usize> { z.iter().map(|x| at.iter().filter(|c| x > c).count()).collect() };
    let (name, values) = match kind {
        0 => ("age", of(&|x| (58.0 + 12.0 * x).clamp(18.0, 95.0).round())),
        1 => ("sex", text(&["female", "male"], cut(&[0.1]))),
        2 => ("bmi", of(&|x| rounded(26.0 * (0.17 * x).exp(), 1))),
        3 => ("stage", text(&["I", "II", "III", "IV"], cut(&[-0.5, 0.4, 1.2]))),
        4 => ("grade", numbers(cut(&[-0.6, 0.7]).into_iter().map(|c| c as f64 + 1.0).collect())),
        5 => ("ecog", numbers(cut(&[0.2, 1.2, 2.1]).into_iter().map(|c| c as f64).collect())),
        6 => ("ldh", of(&|x| (240.0 * (0.45 * x).exp()).round())),
        7 => ("platelets", of(&|x| (250.0 + 70.0 * x).max(8.0).round())),
        8 => ("creatinine", of(&|x| rounded(0.95 * (0.3 * x).exp(), 2))),
        9 => ("crp", of(&|x| rounded(4.0 * (1.8 * x).exp(), 1))),
        10 => ("nodes", of(&|x| (1.2 * (1.1 * x).exp()).floor())),
        11 => ("tumour_size_mm", of(&|x| (24.0 * (0.5 * x).exp()).round())),
        12 => ("er_status", text(&["negative", "positive"], cut(&[-0.7]))),
        13 => ("smoking_status", text(&["never", "former", "current"], cut(&[0.0, 0.9]))),
        14 => ("cd4", of(&|x| (380.0 + 160.0 * x).max(0.0).round())),
        15 => {
            ("hospital", text(&["A", "B", "C", "D", "E", "F", "G", "H"], cut(&[-1.2, -0.7, -0.3, 0.0, 0.3, 0.7, 1.2])))
        }
        16 => ("postal_code", of(&|x| (20_000.0 + 300.0 * (10.0 * x).round()).round())),
        17 => ("karnofsky", of(&|x| (10.0 * (8.0 + 1.3 * x).round()).clamp(20.0, 100.0))),
        18 => ("prior_relapse", numbers(cut(&[0.8]).into_iter().map(|c| c as f64).collect())),
        19 => ("haemoglobin", of(&|x| rounded(12.5 + 1.8 * x, 1))),
        20 => ("systolic_bp", of(&|x| (135.0 + 18.0 * x).round())),
        21 => ("household_income", of(&|x| (100.0 * (310.0 * (0.6 * x).exp()).round()).round())),
        22 => ("psa", of(&|x| rounded(9.0 * (1.2 * x).exp(), 2))),
        23 => ("comorbidities", of(&|x| (0.9 * (0.8 * x).exp()).floor())),
        24 => ("donor_age", of(&|x| (38.0 + 13.0 * x).clamp(5.0, 80.0).round())),
        25 => ("days_from_diagnosis", of(&|x| (95.0 * (0.9 * x).exp()).round())),
        26 => ("base_excess", of(&|x| rounded(-1.0 + 4.5 * x, 1))),
        27 => ("gene_score", of(&|x| x)),
        28 => ("ki67_percent", of(&|x| (100.0 / (1.0 + (1.2 - 1.1 * x).exp())).round())),
        _ => ("performance_status", text(&["0", "1", "2"], cut(&[0.3, 1.4]))),
    };
    // Many covariates do not matter.
    if d.chance(0.4) {
        z.fill(0.0);
    }
    (name, values, z)
}

const KINDS: usize = 30;

/// A clean table with its outcome.
struct Clean {
    columns: Vec<Column>,
    /// In days.
    time: Vec<f64>,
    event: Vec<bool>,
    /// When the patient would have been censored.
    end: Vec<f64>,
    horizon: f64,
}

fn clean(d: &mut Draw) -> Clean {
    let n = [60, 120, 180, 300, 450, 700, 1100, 1800, 3000][d.below(9)];
    let wanted = 6 + d.below(11);
    let kinds: Vec<usize> = d.shuffled(KINDS).into_iter().take(wanted).collect();
    let mut risk = vec![0.0; n];
    let strength = [0.2, 0.4, 0.7, 1.1][d.below(4)];
    let mut columns = Vec::new();
    for kind in kinds {
        let (name, values, score) = covariate(kind, n, d);
        let slope = strength * d.normal() / (wanted as f64).sqrt() * 1.5;
        risk.iter_mut().zip(score).for_each(|(r, s)| *r += slope * s);
        columns.push(Column { name: name.into(), values });
    }
    let treated: Vec<bool> = risk.iter().map(|r| d.chance(1.0 / (1.0 + (-0.4 * r).exp()))).collect();
    let (scale, shape) = (300.0 + 900.0 * d.uniform(), 0.7 + d.uniform());
    let cured = 0.5 * d.uniform();
    let study = 1500.0 + 2500.0 * d.uniform();
    // Enrolment over some years, and the study ends on one day: late patients are censored early.
    let entry: Vec<f64> = (0..n).map(|_| 0.8 * study * d.uniform()).collect();
    let (mut time, mut event, mut ends) = (Vec::new(), Vec::new(), Vec::new());
    for i in 0..n {
        let r = risk[i] - if treated[i] { 0.3 } else { 0.0 };
        let is_cured = d.uniform() < cured * 2.0 / (1.0 + r.exp());
        let t =
            if is_cured { f64::INFINITY } else { scale * (-(1.0 - d.uniform()).ln() * (-r).exp()).powf(1.0 / shape) };
        let lost = if d.chance(0.15) { study * d.uniform() } else { f64::INFINITY };
        let end = (study - entry[i]).min(lost);
        time.push(t.min(end).ceil().max(1.0));
        event.push(t <= end);
        ends.push(end);
    }
    if d.chance(0.5) {
        let years = entry.iter().map(|e| 2001.0 + (e / 365.25).floor()).collect();
        columns.push(Column { name: "year_of_entry".into(), values: numbers(years) });
    }
    columns.push(Column {
        name: "arm".into(),
        values: text(&["standard", "new"], treated.iter().map(|t| usize::from(*t)).collect()),
    });
    let mut sorted = ends.clone();
    sorted.sort_by(f64::total_cmp);
    // Where four of ten would still be followed.
    let horizon = sorted[(0.6 * n as f64) as usize].floor().max(30.0);
    Clean { columns, time, event, end: ends, horizon }
}

/// Times as a table has them: days, months with a decimal, whole months, or years.
fn recorded(days: f64, unit: usize) -> f64 {
    match unit {
        0 => days,
        1 => rounded(days / 30.4375, 1).max(0.1),
        2 => (days / 30.4375).ceil(),
        _ => rounded(days / 365.25, 3).max(0.003),
    }
}

impl Clean {
    fn case(self, name: String, unit: usize, bad: Vec<String>) -> Case {
        let Clean { mut columns, time, event, horizon, .. } = self;
        let times = numbers(time.iter().map(|t| recorded(*t, unit)).collect());
        columns.push(Column { name: "followup_time_used".into(), values: times });
        let events = numbers(event.iter().map(|e| f64::from(u8::from(*e))).collect());
        columns.push(Column { name: "event_used".into(), values: events });
        let roles = Roles {
            time: "followup_time_used".into(),
            event: "event_used".into(),
            treatment: "arm".into(),
            treated: Some("new".into()),
            horizon: recorded(horizon, unit),
            missing: dvim::internal::schema::Missing::Indicator,
            ..Roles::default()
        };
        let table = Table::new(columns).expect("columns of one length");
        Case { name, table, roles, bad, repeated: false, look: false }
    }
}

pub fn clean_case(seed: u64) -> Case {
    let mut d = Draw::new(seed);
    let unit = d.below(4);
    clean(&mut d).case(format!("clean {seed}"), unit, vec![])
}

/// The ways in which tables are spoilt.
pub const LEAKS: [&str; 36] = [
    "copy of the time",
    "time in years",
    "time in months, rounded",
    "time with 10 % noise",
    "logarithm of the time",
    "rank of the time",
    "quarters of the time",
    "survival and death beside relapse",
    "progression beside death",
    "event",
    "event as text",
    "event with 2 % errors",
    "event before a third of the horizon",
    "still there at half of the horizon",
    "cause of death as codes",
    "age at last contact",
    "year of last contact",
    "visits attended",
    "cycles received",
    "potential follow-up",
    "site of relapse, empty for others",
    "death implies the event",
    "row number",
    "shuffled row number",
    "patient number with gaps",
    "site and number",
    "hospital record number",
    "-9 for unknown",
    "99 for unknown age",
    "999 for unknown",
    "-9999 for unknown",
    "one value of 1e23",
    "a factor of a million",
    "every row twice",
    "one row in ten twice",
    "toxicity after treatment",
];

/// A table spoilt in one of the ways; `None` where the draw has no place for it.
pub fn spoilt_case(leak: &'static str, seed: u64) -> Case {
    let mut d = Draw::new(seed ^ 0xabcd_ef01);
    let unit = d.below(4);
    let mut c = clean(&mut d);
    let n = c.time.len();
    let noise: Vec<f64> = (0..n).map(|_| d.normal()).collect();
    let of_time = |f: &dyn Fn(usize, f64) -> f64| numbers((0..n).map(|i| f(i, c.time[i])).collect());
    let flag = |f: &dyn Fn(usize) -> bool| numbers((0..n).map(|i| f64::from(u8::from(f(i)))).collect());
    let mut added: Vec<(&str, Values)> = Vec::new();
    let (mut repeated, mut look) = (false, false);
    match leak {
        "copy of the time" => added.push(("days", of_time(&|_, t| t))),
        "time in years" => added.push(("yrs", of_time(&|_, t| rounded(t / 365.25, 2)))),
        "time in months, rounded" => added.push(("m", of_time(&|_, t| (t / 30.4375).round()))),
        "time with 10 % noise" => {
            added.push(("duration", of_time(&|i, t| (t * (1.0 + 0.1 * noise[i])).max(1.0).round())))
        }
        "logarithm of the time" => added.push(("ln_x", of_time(&|_, t| t.ln()))),
        "rank of the time" => {
            let mut order: Vec<usize> = (0..n).collect();
            order.sort_by(|&a, &b| c.time[a].total_cmp(&c.time[b]));
            let mut rank = vec![0.0; n];
            order.iter().enumerate().for_each(|(r, &i)| rank[i] = r as f64 + 0.5);
            added.push(("prognostic_rank", numbers(rank)));
        }
        "quarters of the time" => {
            let mut sorted: Vec<f64> = (0..n).filter(|&i| c.event[i]).map(|i| c.time[i]).collect();
            sorted.sort_by(f64::total_cmp);
            let at = [0.25, 0.5, 0.75].map(|p| sorted[(p * (sorted.len() - 1) as f64) as usize]);
            added.push(("period", of_time(&|_, t| at.iter().filter(|a| t > **a).count() as f64 + 1.0)));
        }
        "survival and death beside relapse" => {
            let after: Vec<f64> = (0..n).map(|_| 200.0 * -(1.0 - d.uniform()).ln()).collect();
            let os = |i: usize| {
                if c.event[i] { (c.time[i] + after[i]).min(c.end[i]).ceil().max(c.time[i]) } else { c.time[i] }
            };
            added.push(("surv_days", numbers((0..n).map(os).collect())));
            added.push(("died", flag(&|i| c.event[i] && c.time[i] + after[i] < c.end[i])));
        }
        "progression beside death" => {
            let before: Vec<f64> = (0..n).map(|_| d.uniform()).collect();
            let progressed: Vec<bool> =
                (0..n).map(|i| if c.event[i] { d.chance(0.8) } else { d.chance(0.2) }).collect();
            let pfs = |i: usize| if progressed[i] { (before[i] * c.time[i]).ceil().max(1.0) } else { c.time[i] };
            added.push(("pfs", numbers((0..n).map(pfs).collect())));
            added.push(("progression", flag(&|i| progressed[i])));
        }
        "event" => added.push(("flag", flag(&|i| c.event[i]))),
        "event as text" => {
            added.push(("finding", text(&["none", "confirmed"], c.event.iter().map(|e| usize::from(*e)).collect())))
        }
        "event with 2 % errors" => {
            let wrong: Vec<bool> = (0..n).map(|_| d.chance(0.02)).collect();
            added.push(("coded", flag(&|i| c.event[i] != wrong[i])));
        }
        "event before a third of the horizon" => {
            let early = c.horizon / 3.0;
            added.push(("early", flag(&|i| c.event[i] && c.time[i] <= early)));
        }
        "still there at half of the horizon" => {
            let half = c.horizon / 2.0;
            added.push(("landmark", flag(&|i| c.time[i] > half)));
        }
        "cause of death as codes" => {
            let codes: Vec<usize> = (0..n).map(|i| if c.event[i] { 1 + d.below(3) } else { 0 }).collect();
            let levels = ["alive", "cancer", "infection", "heart"];
            added.push(("icd_group", text(&levels, codes)));
        }
        "age at last contact" => {
            let age: Vec<f64> = (0..n).map(|_| rounded(55.0 + 11.0 * d.normal(), 1)).collect();
            let last = (0..n).map(|i| rounded(age[i] + c.time[i] / 365.25, 1)).collect();
            c.columns.retain(|c| c.name != "age");
            added.push(("age_last", numbers(last)));
            c.columns.push(Column { name: "age".into(), values: numbers(age) });
        }
        "year of last contact" => {
            let begin: Vec<f64> = (0..n).map(|_| rounded(2003.0 + 6.0 * d.uniform(), 2)).collect();
            let last = (0..n).map(|i| rounded(begin[i] + c.time[i] / 365.25, 2)).collect();
            added.push(("y2", numbers(last)));
            c.columns.push(Column { name: "y1".into(), values: numbers(begin) });
        }
        "visits attended" => added.push(("visits", of_time(&|_, t| (t / 91.0).floor() + 1.0))),
        "cycles received" => {
            added.push(("cycles", of_time(&|i, t| ((t / 28.0) * (1.0 + 0.15 * noise[i])).round().max(1.0))))
        }
        "potential follow-up" => added.push(("possible", numbers(c.end.iter().map(|e| e.ceil().max(1.0)).collect()))),
        "site of relapse, empty for others" => {
            let codes: Vec<usize> = (0..n).map(|i| if c.event[i] { d.below(3) } else { usize::MAX }).collect();
            let codes = codes.into_iter().map(|k| if k == usize::MAX { TextValues::MISSING } else { k as u32 });
            let levels = ["bone", "liver", "lung"].map(String::from).to_vec();
            added.push(("site", Values::Text(TextValues { codes: codes.collect(), levels })));
        }
        "death implies the event" => {
            let half: Vec<bool> = (0..n).map(|_| d.chance(0.5)).collect();
            added.push(("dx", flag(&|i| c.event[i] && half[i])));
        }
        "row number" => added.push(("x1", numbers((1..=n).map(|i| i as f64).collect()))),
        "shuffled row number" => {
            added.push(("x2", numbers(d.shuffled(n).into_iter().map(|i| i as f64 + 1.0).collect())));
        }
        "patient number with gaps" => {
            let mut next = 1000.0;
            let ids = (0..n)
                .map(|_| {
                    next += 1.0 + if d.chance(0.3) { d.below(4) as f64 } else { 0.0 };
                    next
                })
                .collect();
            added.push(("code", numbers(ids)));
        }
        "site and number" => {
            let mut counts = [0.0; 6];
            let ids = (0..n)
                .map(|_| {
                    let s = d.below(6);
                    counts[s] += 1.0;
                    1000.0 * (s as f64 + 1.0) + counts[s]
                })
                .collect();
            added.push(("unit", numbers(ids)));
        }
        "hospital record number" => {
            let mut ids: Vec<f64> = (0..n).map(|i| 10_000.0 * (i as f64 + 1.0) + d.below(9000) as f64).collect();
            let order = d.shuffled(n);
            ids = order.into_iter().map(|i| ids[i]).collect();
            added.push(("mrn", numbers(ids)));
        }
        "-9 for unknown" | "99 for unknown age" | "999 for unknown" | "-9999 for unknown" => {
            let code = match leak {
                "-9 for unknown" => -9.0,
                "99 for unknown age" => 99.0,
                "999 for unknown" => 999.0,
                _ => -9999.0,
            };
            let share = 0.01 + 0.08 * d.uniform();
            let mut any = 0;
            let values: Vec<f64> = (0..n)
                .map(|i| {
                    let unknown = d.chance(share) || i > n - 8 && any < 6;
                    any += usize::from(unknown);
                    if unknown { code } else { (58.0 + 11.0 * noise[i]).clamp(18.0, 94.0).round() }
                })
                .collect();
            c.columns.retain(|c| c.name != "age");
            added.push(("age", numbers(values)));
        }
        "one value of 1e23" => {
            let at = d.below(n);
            added.push((
                "albumin",
                numbers((0..n).map(|i| if i == at { 1e23 } else { rounded(40.0 + 5.0 * noise[i], 1) }).collect()),
            ));
        }
        "a factor of a million" => {
            let at = d.below(n);
            let value = |i: usize| rounded(4.0 * (0.4 * noise[i]).exp(), 2) * if i == at { 1e6 } else { 1.0 };
            added.push(("leucocytes", numbers((0..n).map(value).collect())));
        }
        "every row twice" | "one row in ten twice" => {
            let all = leak == "every row twice";
            let rows: Vec<usize> = (0..n).chain((0..n).filter(|i| all || i % 10 == 3)).collect();
            c.columns.iter_mut().for_each(|c| c.values = c.values.select(&rows));
            c.time = rows.iter().map(|&i| c.time[i]).collect();
            c.event = rows.iter().map(|&i| c.event[i]).collect();
            repeated = true;
        }
        "toxicity after treatment" => {
            added.push(("toxicity_grade_week12", flag(&|i| noise[i] > 0.4)));
            look = true;
        }
        other => panic!("no such leak: {other}"),
    }
    let mut bad = Vec::new();
    for (name, values) in added {
        bad.push(name.to_string());
        c.columns.retain(|c| c.name != name);
        let place = d.below(c.columns.len() + 1);
        c.columns.insert(place, Column { name: name.into(), values });
    }
    Case { repeated, look, ..c.case(format!("{leak}, {seed}"), unit, bad) }
}
