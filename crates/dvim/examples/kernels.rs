//! Fixed work for counting instructions: `kernels NAME REPEATS`. bench/callgrind.sh takes the difference
//! between one repeat and none, so that setting up does not count. A new kernel is a new arm of `main`.

use dvim::matching::{Index, Points};

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

fn main() {
    let mut args = std::env::args().skip(1);
    let name = args.next().expect("a kernel");
    let repeats = args.next().and_then(|n| n.parse().ok()).expect("how many repeats");
    match name.as_str() {
        "search-learned" => search(repeats, 50, |axis| if axis % 4 == 0 { 0.5 } else { 0.03 }),
        "search-learned-k800" => search(repeats, 800, |axis| if axis % 4 == 0 { 0.5 } else { 0.03 }),
        "search-equal" => search(repeats, 50, |_| 1.0),
        "search-ties" => search(repeats, 50, |axis| if axis < 10 { 1.0 } else { 0.0 }),
        other => panic!("no kernel is called {other}"),
    }
}
