//! Fixed work for counting instructions: `kernels NAME REPEATS`. bench/callgrind.sh takes the difference
//! between one repeat and none, so that setting up does not count. A new kernel is a new arm of `main`.

use dvim::internal::cure::{self, ArmData, FitOptions};
use dvim::internal::group::Pool;
use dvim::internal::matching::{Index, Points};

/// SplitMix64: the same points everywhere, for ever.
struct Draw(u64);

impl Draw {
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Ten coins and ten nearly normal axes, stretched by `weight(axis)`.
    fn points(&mut self, n: usize, weight: impl Fn(usize) -> f64) -> Points {
        let mut coords = Vec::with_capacity(20 * n);
        for _ in 0..n {
            for axis in 0..20 {
                let x = if axis < 10 {
                    self.uniform().round()
                } else {
                    (0..6).map(|_| self.uniform()).sum::<f64>() * 1.4 - 4.2
                };
                coords.push(x * weight(axis).sqrt());
            }
        }
        Points { dim: 20, coords }
    }
}

fn search(repeats: usize, k: usize, weight: impl Fn(usize) -> f64) {
    let mut draw = Draw(1);
    let reference = draw.points(6_500, &weight);
    let queries = draw.points(1_000, &weight);
    for _ in 0..repeats {
        std::hint::black_box(Index::build(&reference).nearest(&queries, k));
    }
}

/// One arm's cure model: 3,500 units, 20 covariates; nearly half reach the horizon, some are lost.
fn likelihood(repeats: usize) {
    let mut draw = Draw(2);
    let n = 3_500;
    let x = draw.points(n, |_| 1.0).coords;
    let (mut time, mut event) = (Vec::with_capacity(n), Vec::with_capacity(n));
    for row in x.chunks_exact(20) {
        let cured = draw.uniform() < 1.0 / (1.0 + (0.8 * row[0] - 0.5 * row[10]).exp());
        let noise = (0..6).map(|_| draw.uniform()).sum::<f64>() * 1.4 - 4.2;
        let happens = if cured { f64::INFINITY } else { (4.5 + 0.3 * row[3] + 0.4 * row[13] + 0.8 * noise).exp() };
        let lost = 2_000.0 * draw.uniform();
        time.push(happens.min(lost).min(800.0));
        event.push(happens < lost.min(800.0));
    }
    let data = ArmData { time: &time, event: &event, covariates: &x, n_covariates: 20, horizon: 800.0, extras: None };
    for _ in 0..repeats {
        let model = cure::describe(&data, &FitOptions::default()).expect("there are events");
        assert!(model.certificate.converged, "the work is that of a fit that succeeds");
        std::hint::black_box(model);
    }
}

/// The curves of 10,000 groups of 50 out of 6,500 units.
fn curves(repeats: usize) {
    let mut draw = Draw(3);
    let outcomes: Vec<(f64, bool)> = (0..6_500)
        .map(|_| ((1_200.0 * draw.uniform()).min(800.0), draw.uniform() < 0.6))
        .map(|(time, event)| (time, event && time < 800.0))
        .collect();
    let pool = Pool::of_outcomes((0..6_500).collect(), &outcomes, 800.0);
    // Members of a group are different units: 50 steps of up to 129 do not come back to where they began.
    let mut group = || {
        let (start, step) = ((6_500.0 * draw.uniform()) as u32, 1 + (129.0 * draw.uniform()) as u32);
        (0..50).map(move |i| (start + i * step) % 6_500)
    };
    let members: Vec<u32> = (0..10_000).flat_map(|_| group()).collect();
    let mut scratch = Vec::new();
    for _ in 0..repeats {
        for group in members.chunks_exact(50) {
            std::hint::black_box(pool.summary(group, &mut scratch));
        }
    }
}

fn main() {
    let mut args = std::env::args().skip(1);
    let name = args.next().expect("a kernel");
    let repeats = args.next().and_then(|n| n.parse().ok()).expect("how many repeats");
    match name.as_str() {
        "search-learned" => search(repeats, 50, |axis| if axis % 4 == 0 { 0.5 } else { 0.03 }),
        "search-learned-k800" => search(repeats, 800, |axis| if axis % 4 == 0 { 0.5 } else { 0.03 }),
        "search-equal" => search(repeats, 50, |_| 1.0),
        "search-ties" => search(repeats, 50, |axis| if axis < 10 { 1.0 } else { 0.0 }),
        "likelihood" => likelihood(repeats),
        "curves" => curves(repeats),
        other => panic!("no kernel is called {other}"),
    }
}
