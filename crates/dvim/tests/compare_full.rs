//! Full matching: equal to a brute-force optimum, and every invariant of a full match.

use dvim::internal::compare::InvalidInput;
use dvim::internal::compare::full::{FullMatching, full_match};
use proptest::prelude::*;
use proptest::test_runner::FileFailurePersistence;

/// Cheapest cover by enumeration: each treated unit takes a non-empty set of controls; all controls must be taken.
fn brute_force(score: &[f64], treated: &[bool]) -> f64 {
    let side = |arm: bool| (0..score.len()).filter(|&i| treated[i] == arm).map(|i| score[i]).collect::<Vec<f64>>();
    let (t, c) = (side(true), side(false));
    let full = (1_usize << c.len()) - 1;
    let mut best = vec![f64::INFINITY; full + 1];
    best[0] = 0.0;
    for a in t {
        let mut next = vec![f64::INFINITY; full + 1];
        for set in 1..=full {
            let cost: f64 = (0..c.len()).filter(|j| set >> j & 1 == 1).map(|j| (a - c[j]).abs()).sum();
            for (covered, before) in best.iter().enumerate() {
                let both = covered | set;
                next[both] = next[both].min(before + cost);
            }
        }
        best = next;
    }
    best[full]
}

/// The path of the module's docs by its plain dynamic programme, every value of f at every unit.
fn plain_programme(score: &[f64], treated: &[bool]) -> f64 {
    let n = score.len();
    let mut order: Vec<usize> = (0..n).collect();
    order.sort_by(|&a, &b| score[a].total_cmp(&score[b]));
    let mut cost = vec![f64::INFINITY; 2 * n + 1];
    cost[n] = 0.0;
    for (i, &unit) in order.iter().enumerate() {
        let mut next = vec![f64::INFINITY; 2 * n + 1];
        let mut best = f64::INFINITY;
        for step in 0..2 * n {
            let (from, to) = if treated[unit] { (step, step + 1) } else { (2 * n - step, 2 * n - step - 1) };
            best = best.min(cost[from]);
            next[to] = best;
        }
        let gap = if i + 1 < n { score[order[i + 1]] - score[unit] } else { 0.0 };
        for (f, c) in next.iter_mut().enumerate() {
            *c += gap * (f as f64 - n as f64).abs();
        }
        cost = next;
    }
    cost[n]
}

/// What every full match must satisfy; returns the distance recomputed from the subclasses alone.
#[track_caller]
fn assert_full_match(m: &FullMatching, score: &[f64], treated: &[bool]) -> f64 {
    let n = score.len();
    assert_eq!((m.subclass.len(), m.weights.len()), (n, n));
    let mut distance = 0.0;
    let mut members: Vec<[Vec<usize>; 2]> = vec![[vec![], vec![]]; m.n_subclasses];
    for i in 0..n {
        members[m.subclass[i]][usize::from(treated[i])].push(i);
    }
    for [control, treated] in &members {
        assert!(!control.is_empty() && !treated.is_empty(), "a subclass lacks an arm");
        assert!(control.len() == 1 || treated.len() == 1, "a subclass is not a star");
        for &a in control {
            distance += treated.iter().map(|&b| (score[a] - score[b]).abs()).sum::<f64>();
            assert!((m.weights[a] - (1 + treated.len()) as f64 / 1.0).abs() < 1e-12 || control.len() > 1);
        }
    }
    for arm in [false, true] {
        let sum: f64 = (0..n).filter(|&i| treated[i] == arm).map(|i| m.weights[i]).sum();
        assert!((sum - n as f64).abs() < 1e-9 * n as f64, "weights of an arm sum to n");
    }
    assert!((distance - m.total_distance).abs() <= 1e-9 * (1.0 + distance));
    distance
}

#[test]
fn worked_by_hand() {
    // Controls 0, 10; treated 1, 2, 9: {0, 1, 2} costs 3, {9, 10} costs 1.
    let score = [0.0, 1.0, 2.0, 9.0, 10.0];
    let treated = [false, true, true, true, false];
    let m = full_match(&score, &treated).unwrap();
    assert_eq!(m.subclass, [0, 0, 0, 1, 1]);
    assert_eq!((m.n_subclasses, m.total_distance), (2, 4.0));
    assert_eq!(m.weights, [3.0, 1.5, 1.5, 2.0, 2.0]);
    assert_full_match(&m, &score, &treated);
}

#[test]
fn refuses_one_arm_and_holes() {
    assert_eq!(full_match(&[1.0, 2.0], &[true, true]), Err(InvalidInput::OneArm));
    assert_eq!(full_match(&[], &[]), Err(InvalidInput::Empty));
    let hole = full_match(&[1.0, f64::INFINITY], &[true, false]);
    assert_eq!(hole, Err(InvalidInput::NotFinite { what: "score", row: 1 }));
    // The widest gap there is between finite numbers.
    assert!(full_match(&[-f64::MAX, f64::MAX, 0.0], &[true, false, true]).is_ok());
}

fn cases(cases: u32) -> ProptestConfig {
    let failure_persistence = Some(Box::new(FileFailurePersistence::WithSource("regressions")) as _);
    ProptestConfig { cases, failure_persistence, ..ProptestConfig::default() }
}

proptest! {
    #![proptest_config(cases(3000))]

    /// Whole scores in a narrow range: nearly every case has ties within and between arms.
    #[test]
    fn tied_scores_equal_brute_force(units in prop::collection::vec((0_i32..12, any::<bool>()), 2..12)) {
        let score: Vec<f64> = units.iter().map(|u| f64::from(u.0)).collect();
        let treated: Vec<bool> = units.iter().map(|u| u.1).collect();
        prop_assume!(treated.iter().any(|&z| z) && treated.iter().any(|&z| !z));
        let m = full_match(&score, &treated).unwrap();
        prop_assert_eq!(assert_full_match(&m, &score, &treated), brute_force(&score, &treated));
    }

    #[test]
    fn other_scores_equal_brute_force(units in prop::collection::vec((-1.0_f64..1.0, any::<bool>()), 2..12)) {
        let score: Vec<f64> = units.iter().map(|u| u.0 * u.0 * u.0).collect();
        let treated: Vec<bool> = units.iter().map(|u| u.1).collect();
        prop_assume!(treated.iter().any(|&z| z) && treated.iter().any(|&z| !z));
        let m = full_match(&score, &treated).unwrap();
        let (found, expected) = (assert_full_match(&m, &score, &treated), brute_force(&score, &treated));
        prop_assert!((plain_programme(&score, &treated) - expected).abs() < 1e-12);
        prop_assert!((found - expected).abs() < 1e-12, "{} {}", found, expected);
    }

    /// Larger than brute force can go: equal to the plain programme; mirrored scores and exchanged arms cost the same.
    #[test]
    fn larger_cases_equal_the_plain_programme(units in prop::collection::vec((0_i32..60, 0_u8..5), 2..120)) {
        let score: Vec<f64> = units.iter().map(|u| f64::from(u.0)).collect();
        let treated: Vec<bool> = units.iter().map(|u| u.1 == 0).collect();
        prop_assume!(treated.iter().any(|&z| z) && treated.iter().any(|&z| !z));
        let m = full_match(&score, &treated).unwrap();
        assert_full_match(&m, &score, &treated);
        prop_assert_eq!(plain_programme(&score, &treated), m.total_distance);
        let mirrored: Vec<f64> = score.iter().map(|s| 7.0 - s).collect();
        let exchanged: Vec<bool> = treated.iter().map(|z| !z).collect();
        prop_assert_eq!(full_match(&mirrored, &treated).unwrap().total_distance, m.total_distance);
        prop_assert_eq!(full_match(&score, &exchanged).unwrap().total_distance, m.total_distance);
    }
}

/// Not a benchmark, a guard, over easy and hostile orders of the arms. Prints what it took.
#[test]
fn twenty_thousand_units() {
    let n = 20_000;
    let pseudo = |i: usize| ((i as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 11) as f64 / (1_u64 << 53) as f64;
    let score: Vec<f64> = (0..n).map(pseudo).collect();
    let cases: [(&str, Vec<bool>); 5] = [
        ("half", (0..n).map(|i| pseudo(i + 77_777) < 0.5).collect()),
        ("rare", (0..n).map(|i| pseudo(i + 77_777) < 0.01).collect()),
        ("apart", score.iter().map(|s| *s < 0.5).collect()),
        ("blocks", score.iter().map(|s| (s * 37.0) as usize & 1 == 0).collect()),
        ("one", (0..n).map(|i| i == 5).collect()),
    ];
    for (name, treated) in cases {
        let start = std::time::Instant::now();
        let m = full_match(&score, &treated).unwrap();
        eprintln!("full matching, n 20,000, {name}: {:?}, {} subclasses", start.elapsed(), m.n_subclasses);
        assert_full_match(&m, &score, &treated);
    }
}
