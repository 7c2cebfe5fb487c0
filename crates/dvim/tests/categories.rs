//! Categories: one distance between any two levels, one weight, no reference level, no order of levels.

use dvim::internal::cohort::{Arm, Cohort, Roles};
use dvim::internal::cure;
use dvim::internal::error::{Error, ProblemKind, Severity};
use dvim::internal::fold::Fit;
use dvim::internal::metric::{Scale, Scaling};
use dvim::internal::options::Options;
use dvim::internal::phrase::Fields;
use dvim::internal::schema::{Kind, Missing, encode_new};
use dvim::internal::setting::Setting;
use dvim::internal::simulate::{Scenario, simulate};
use dvim::internal::split::Split;
use dvim::internal::table::{Column, Table, TextValues, Values};
use dvim::internal::watch::Unwatched;

fn text(name: &str, values: &[Option<String>]) -> Column {
    let mut t = TextValues::default();
    for v in values {
        let code = match v {
            None => TextValues::MISSING,
            Some(v) => t.levels.iter().position(|l| l == v).unwrap_or_else(|| {
                t.levels.push(v.clone());
                t.levels.len() - 1
            }) as u32,
        };
        t.codes.push(code);
    }
    Column { name: name.into(), values: Values::Text(t) }
}

fn number(name: &str, values: Vec<f64>) -> Column {
    Column { name: name.into(), values: Values::Number(values.into()) }
}

/// A simulated cohort with six of its covariates and a category cut from two of them; the level of each unit is its
/// class.
fn world(n: usize) -> (Vec<Column>, Vec<usize>) {
    let w = simulate(Scenario::BothOverlap, n, false, 3);
    let c = &w.cohort;
    let units = 0..c.n_units();
    let mut columns = vec![
        number("time", units.clone().map(|i| c.recorded(i).0).collect()),
        number("event", units.clone().map(|i| f64::from(u8::from(c.recorded(i).1))).collect()),
        number("arm", units.clone().map(|i| f64::from(u8::from(c.arm(i) == Arm::Treated))).collect()),
    ];
    columns.extend((2..6).map(|j| number(&format!("x{j}"), units.clone().map(|i| c.covariates(i)[j]).collect())));
    let class = |i: usize| {
        let x = c.covariates(i);
        usize::from(x[0] > 0.0) + usize::from(x[0] > 0.6) + usize::from(x[1] > 0.4)
    };
    (columns, units.map(class).collect())
}

fn roles() -> Roles {
    Roles { time: "time".into(), event: "event".into(), treatment: "arm".into(), horizon: 800.0, ..Roles::default() }
}

fn with_levels(columns: &[Column], class: &[usize], names: [&str; 4]) -> Cohort {
    let mut columns = columns.to_vec();
    columns.push(text("grade", &class.iter().map(|&k| Some(names[k].to_string())).collect::<Vec<_>>()));
    Cohort::from_table(&Table::new(columns).unwrap(), &roles()).unwrap().0
}

fn options(ridge: f64) -> Options {
    let fit = cure::FitOptions { cure_ridge: ridge, latency_ridge: ridge, ..cure::FitOptions::default() };
    Options { group_size: 20, fit, ..Options::paper() }
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];

#[test]
fn any_two_different_levels_are_equally_far() {
    let (columns, class) = world(600);
    let cohort = with_levels(&columns, &class, NAMES);
    let grade = cohort.schema().iter().find(|c| c.name == "grade").unwrap();
    assert_eq!(grade.columns().len(), 4);
    for scale in [Scale::Standard, Scale::None] {
        let scaling = Scaling::of(&cohort, scale);
        let z = scaling.apply(cohort.all_covariates());
        let p = cohort.n_covariates();
        let d2 = |i: usize, j: usize| grade.columns().map(|k| (z[i * p + k] - z[j * p + k]).powi(2)).sum::<f64>();
        let first = |k: usize| class.iter().position(|&c| c == k).unwrap();
        let mut found: Vec<f64> = Vec::new();
        for a in 0..4 {
            for b in 0..a {
                found.push(d2(first(a), first(b)));
            }
        }
        let expected = match scale {
            Scale::None => 1.0,
            Scale::Standard => {
                let n = class.len() as f64;
                let share = |k: usize| class.iter().filter(|&&c| c == k).count() as f64 / n;
                2.0 / ((1.0 - (0..4).map(|k| share(k).powi(2)).sum::<f64>()) * n / (n - 1.0))
            }
        };
        found.iter().for_each(|d| assert!((d - expected).abs() < 1e-12, "{d} is not {expected}"));
        if scale == Scale::Standard {
            // Over all pairs of units the mean is 2, as for a standardised number.
            let n = class.len();
            let sum: f64 = (0..n).flat_map(|i| (0..n).map(move |j| (i, j))).map(|(i, j)| d2(i, j)).sum();
            assert!((sum / (n * (n - 1)) as f64 - 2.0).abs() < 1e-9);
        }
    }
}

#[test]
fn two_levels_are_one_indicator() {
    let (columns, class) = world(1_000);
    let words: Vec<Option<String>> =
        class.iter().map(|&k| Some(if k > 1 { "yes" } else { "no" }.to_string())).collect();
    let (mut as_text, mut as_number) = (columns.clone(), columns);
    as_text.push(text("g", &words));
    as_number.push(number("g", class.iter().map(|&k| f64::from(u8::from(k > 1))).collect()));
    let [a, b] = [as_text, as_number].map(|c| Cohort::from_table(&Table::new(c).unwrap(), &roles()).unwrap().0);
    assert_eq!(a.schema().last().unwrap().kind, Kind::Indicator { zero: "no".into(), one: "yes".into() });
    assert_eq!(a.all_covariates(), b.all_covariates());
    let [a, b] = [a, b].map(|c| Fit::learn(&c, &options(0.0), &Unwatched).unwrap().description.metrics);
    assert_eq!(a, b);
}

/// The contrasts span what k − 1 dummies span, whichever level is their reference.
#[test]
fn the_model_is_that_of_dummies_under_any_reference() {
    let (columns, class) = world(3_000);
    let cohort = with_levels(&columns, &class, NAMES);
    let fit = Fit::learn(&cohort, &options(0.0), &Unwatched).unwrap();
    let scaling = &fit.description.metrics.cure.scaling;
    let split = Split::honest(&cohort, 0.35, 1);
    for arm in Arm::BOTH {
        let model = &fit.description.models[arm];
        assert!(model.certificate.converged);
        let training = split.training().arm(arm);
        for reference in 0..4 {
            let p = cohort.n_covariates();
            let dummies: Vec<f64> = training
                .covariates
                .chunks_exact(p)
                .flat_map(|x| (0..p).filter(|&j| j != p - 4 + reference).map(|j| x[j]).collect::<Vec<_>>())
                .collect();
            let data = cure::ArmData {
                time: &training.time,
                event: &training.event,
                covariates: &dummies,
                n_covariates: p - 1,
                horizon: cohort.horizon(),
                extras: None,
            };
            let other = cure::describe(&data, &cure::FitOptions::default()).unwrap();
            assert!((model.log_likelihood - other.log_likelihood).abs() < 1e-7);
            for i in (0..cohort.n_units()).step_by(37) {
                let x = cohort.covariates(i);
                let y: Vec<f64> = (0..p).filter(|&j| j != p - 4 + reference).map(|j| x[j]).collect();
                let z = scaling.apply(x);
                assert!((model.cure_logit(&z) - other.cure_logit(&y)).abs() < 1e-6);
                assert!((model.latency_location(&z) - other.latency_location(&y)).abs() < 1e-6);
                let by_intercept =
                    model.cure.intercept + z.iter().zip(&model.cure.coefficients).map(|(a, b)| a * b).sum::<f64>();
                assert!((by_intercept - model.cure_logit(&z)).abs() < 1e-9);
                // The variance of a prediction is a property of the model, not of its columns.
                let variance = |m: &cure::CureModel, x: &[f64]| {
                    let v: Vec<f64> = std::iter::once(1.0).chain(x.iter().copied()).collect();
                    let q = 2 * (x.len() + 1) + 1;
                    let c = m.covariance.as_ref().unwrap();
                    (0..v.len())
                        .flat_map(|a| (0..v.len()).map(move |b| (a, b)))
                        .map(|(a, b)| v[a] * c[a * q + b] * v[b])
                        .sum::<f64>()
                };
                let (a, b) = (variance(model, &z), variance(&other, &y));
                assert!((a - b).abs() < 1e-6 * b, "{a} is not {b}");
            }
        }
    }
}

/// Names decide the order of levels; neither it nor the penalty may move a weight.
#[test]
fn the_order_of_levels_does_not_matter() {
    let (columns, class) = world(1_500);
    for ridge in [0.0, 20.0] {
        let mut found = Vec::new();
        for names in [NAMES, ["d", "c", "b", "a"], ["b", "d", "a", "c"], ["c", "a", "d", "b"]] {
            let cohort = with_levels(&columns, &class, names);
            let fit = Fit::learn(&cohort, &options(ridge), &Unwatched).unwrap();
            let grade = cohort.schema().last().unwrap();
            let level = |k: usize| grade.first + (0..4).find(|&l| grade.level(l) == names[k]).unwrap();
            let coefficients: Vec<f64> =
                (0..4).map(|k| fit.description.models[Arm::Treated].cure.coefficients[level(k)]).collect();
            let weights = [&fit.description.metrics.cure.weights, &fit.description.metrics.time.weights].map(|w| {
                let of = &w[grade.columns()];
                assert!(of.iter().all(|v| v == &of[0]), "one weight for the category");
                of[0]
            });
            found.push((coefficients, weights, fit.description.metrics.cure.weights[..4].to_vec()));
        }
        for other in &found[1..] {
            let all = |f: &(Vec<f64>, [f64; 2], Vec<f64>)| [f.0.clone(), f.1.to_vec(), f.2.clone()].concat();
            for (a, b) in all(&found[0]).iter().zip(all(other)) {
                assert!((a - b).abs() < 1e-6, "{a} is not {b} with ridge {ridge}");
            }
        }
    }
}

#[test]
fn levels_of_one_arm_are_said_and_served() {
    let (columns, mut class) = world(1_000);
    let Values::Number(arm) = &columns[2].values else { panic!() };
    class.iter_mut().zip(arm.iter()).filter(|(k, a)| **k == 3 && **a == 1.0).for_each(|(k, _)| *k = 2);
    let mut columns = columns.clone();
    columns.push(text("grade", &class.iter().map(|&k| Some(NAMES[k].to_string())).collect::<Vec<_>>()));
    let (cohort, warnings) = Cohort::from_table(&Table::new(columns).unwrap(), &roles()).unwrap();
    let warning = warnings.iter().find(|p| p.kind == ProblemKind::LevelInOneArm).expect("a word about `d`");
    let found = warning.found.spelled(&Fields);
    assert!(found.contains("`d`") && found.contains("control"), "{warning:?}");
    let fit = Fit::learn(&cohort, &options(0.0), &Unwatched).unwrap();
    assert!(!fit.level_problems(&cohort).is_empty());
    let d = cohort.schema().last().unwrap().columns().end - 1;
    assert_eq!(
        fit.description.models[Arm::Treated].cure.coefficients[d],
        0.0,
        "a level that was not seen gets the mean"
    );
    assert!(
        fit.description.models.each_ref().iter().all(|m| m.certificate.flags.is_empty()),
        "{:?}",
        fit.description.models[Arm::Treated].certificate.flags
    );
}

#[test]
fn a_cohort_reads_its_own_units_again() {
    let (columns, class) = world(400);
    let mut columns = columns.clone();
    let gaps = |v: Option<String>, i: usize| if i.is_multiple_of(7) { None } else { v };
    columns.push(text(
        "grade",
        &class.iter().enumerate().map(|(i, &k)| gaps(Some(NAMES[k].into()), i)).collect::<Vec<_>>(),
    ));
    columns.push(text(
        "sex",
        &class.iter().enumerate().map(|(i, _)| gaps(Some(["m", "f"][i % 2].into()), i + 3)).collect::<Vec<_>>(),
    ));
    if let Values::Number(v) = &mut columns[4].values {
        *v = v.iter().enumerate().map(|(i, x)| if i % 5 == 0 { f64::NAN } else { *x }).collect();
    }
    let table = Table::new(columns).unwrap();
    let roles = Roles { missing: Missing::Indicator, ..roles() };
    let (cohort, warnings) = Cohort::from_table(&table, &roles).unwrap();
    assert_eq!(warnings.iter().filter(|p| p.kind == ProblemKind::FilledValues).count(), 3);
    assert_eq!(cohort.schema().iter().filter(|c| c.kind == Kind::Missing).count(), 3);
    assert_eq!(encode_new(cohort.schema(), &table).unwrap(), cohort.all_covariates());
    // A cohort without the gaps cannot place a unit that has them.
    let Err(Error::Refused(problems)) =
        Cohort::from_table(&table, &Roles { missing: Missing::Refuse, ..roles.clone() })
    else {
        panic!("missing values are refused")
    };
    let errors: Vec<_> = problems.iter().filter(|p| p.severity == Severity::Error).collect();
    assert_eq!(errors.len(), 3);
    assert!(
        errors.iter().all(|p| p.kind == ProblemKind::MissingValues && p.remedy.has(&Setting::Missing.to("indicator")))
    );
    let kept = Cohort::admit(&table, &Roles { missing: Missing::Drop, ..roles }).unwrap();
    let complete = (0..400).filter(|i| i % 7 != 0 && (i + 3) % 7 != 0 && i % 5 != 0).count();
    assert_eq!((kept.cohort.n_units(), kept.flow.n_kept()), (complete, complete));
    assert_eq!(kept.cohort.ids().text(0), "2", "ids stay those of the file");
    let Err(problems) = encode_new(kept.cohort.schema(), &table) else { panic!("gaps are refused") };
    assert_eq!(problems.len(), 3);
}

/// Before, such a table was refused without a word: the column was refused as text, and no text was left to name.
#[test]
fn numbers_that_are_left_of_a_text_are_numbers() {
    let (columns, _) = world(400);
    let dose = |i: usize| Some(if i == 17 { "unknown".to_string() } else { format!("{}", (i * 7) % 31) });
    let dose: Vec<Option<String>> = (0..400).map(dose).collect();
    let mut late = columns.clone();
    late.push(text("dose", &dose));
    // The row with the text enters at the horizon and is left out.
    late.push(number("from", (0..400).map(|i| if i == 17 { 900.0 } else { 0.0 }).collect()));
    let asked = Roles { entry: Some("from".into()), ..roles() };
    let (cohort, _) = Cohort::from_table(&Table::new(late).unwrap(), &asked).unwrap();
    let schema = cohort.schema().iter().find(|c| c.name == "dose").unwrap();
    assert_eq!((&schema.kind, cohort.n_units()), (&Kind::Number, 399));
    assert_eq!(cohort.covariates(30)[schema.first], f64::from((31 * 7) % 31), "unit 30 is row 31, counted from 0");
    // A program may hand numbers over as texts.
    let mut all = columns.clone();
    all.push(text("dose", &(0..400).map(|i| Some(format!("{}", (i * 7) % 31))).collect::<Vec<_>>()));
    let table = Table::new(all).unwrap();
    let (cohort, _) = Cohort::from_table(&table, &roles()).unwrap();
    assert_eq!(encode_new(cohort.schema(), &table).unwrap(), cohort.all_covariates());
    // The text itself is still refused where its row stays.
    let mut refused = columns;
    refused.push(text("dose", &dose));
    let Err(Error::Refused(problems)) = Cohort::from_table(&Table::new(refused).unwrap(), &roles()) else {
        panic!("a text among numbers is refused")
    };
    assert!(problems.iter().any(|p| p.kind == ProblemKind::NotNumeric && p.rows == [18]), "{problems:?}");
}
