//! Summaries for the eye: bins, quartiles, densities. None of them is reported as a number.

/// The `p`-quantile of sorted values, with linear interpolation between order statistics (R's type 7).
pub(super) fn quantile(sorted: &[f64], p: f64) -> f64 {
    let at = p * (sorted.len() - 1) as f64;
    let (below, share) = (at.floor() as usize, at.fract());
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] * (1.0 - share) + sorted[above] * share
}

/// Equal bins with round edges, one of them at zero.
#[derive(Clone, Debug)]
pub(super) struct Bins {
    pub first_edge: f64,
    pub width: f64,
    pub counts: Vec<u64>,
}

impl Bins {
    /// Bins of sorted values between `lo` and `hi`. The width is that of Freedman and Diaconis, rounded to 1, 2 or 5
    /// times a power of ten and kept to 8 to 60 bins.
    pub(super) fn new(sorted: &[f64], (lo, hi): (f64, f64)) -> Self {
        let range = hi - lo;
        let iqr = quantile(sorted, 0.75) - quantile(sorted, 0.25);
        let ideal = (2.0 * iqr / (sorted.len() as f64).cbrt()).clamp(range / 60.0, range / 8.0);
        let width = round_up(ideal);
        let first = (lo / width + 1e-9).floor();
        let last = (hi / width - 1e-9).ceil().max(first + 1.0);
        let mut counts = vec![0; (last - first) as usize];
        for &v in sorted.iter().filter(|&&v| v >= lo && v <= hi) {
            let bin = (v / width - first).floor().clamp(0.0, counts.len() as f64 - 1.0);
            counts[bin as usize] += 1;
        }
        Bins { first_edge: first * width, width, counts }
    }

    pub(super) fn edges(&self, bin: usize) -> (f64, f64) {
        (self.first_edge + self.width * bin as f64, self.first_edge + self.width * (bin + 1) as f64)
    }
}

/// The next of 1, 2, 5 times a power of ten that is not smaller.
fn round_up(value: f64) -> f64 {
    let power = 10f64.powf(value.log10().floor());
    let mantissa = value / power;
    power * [1.0, 2.0, 5.0].into_iter().find(|&m| mantissa <= m * (1.0 + 1e-9)).unwrap_or(10.0)
}

/// Limits that keep nearly all sorted values: those beyond twelve interquartile ranges of the median are cut off, so
/// that one absurd value does not hide the rest. Returns the limits and how many values lie outside.
pub(super) fn sane_limits(sorted: &[f64]) -> ((f64, f64), usize) {
    let (lo, hi) = (sorted[0], sorted[sorted.len() - 1]);
    let (q1, q2, q3) = (quantile(sorted, 0.25), quantile(sorted, 0.5), quantile(sorted, 0.75));
    let reach = 12.0 * (q3 - q1);
    if reach <= 0.0 {
        return ((lo, hi), 0);
    }
    let first = sorted.partition_point(|&v| v < q2 - reach);
    let last = sorted.partition_point(|&v| v <= q2 + reach);
    ((sorted[first], sorted[last - 1]), first + sorted.len() - last)
}

/// A Gaussian kernel density of sorted values on an even grid from the smallest to the largest, scaled to a largest
/// value of one. The bandwidth is Silverman's rule. Values are first counted on a fine grid, so a million cost little.
pub(super) fn density(sorted: &[f64], grid: usize) -> Vec<(f64, f64)> {
    let n = sorted.len() as f64;
    let (lo, hi) = (sorted[0], sorted[sorted.len() - 1]);
    let mean = sorted.iter().sum::<f64>() / n;
    let sd = (sorted.iter().map(|v| (v - mean) * (v - mean)).sum::<f64>() / n).sqrt();
    let iqr = (quantile(sorted, 0.75) - quantile(sorted, 0.25)) / 1.349;
    let spread = if iqr > 0.0 { sd.min(iqr) } else { sd };
    let bandwidth = (0.9 * spread * n.powf(-0.2)).max((hi - lo) / 200.0);
    const FINE: usize = 512;
    let step = (hi - lo) / (FINE - 1) as f64;
    let mut counts = [0.0; FINE];
    for &v in sorted {
        counts[(((v - lo) / step).round() as usize).min(FINE - 1)] += 1.0;
    }
    let mut curve: Vec<(f64, f64)> = (0..grid)
        .map(|i| {
            let x = lo + (hi - lo) * i as f64 / (grid - 1) as f64;
            let height = counts
                .iter()
                .enumerate()
                .filter(|c| *c.1 > 0.0)
                .map(|(j, c)| {
                    let z = (x - (lo + step * j as f64)) / bandwidth;
                    c * (-0.5 * z * z).exp()
                })
                .sum();
            (x, height)
        })
        .collect();
    let top = curve.iter().map(|c| c.1).fold(0.0, f64::max);
    curve.iter_mut().for_each(|c| c.1 /= top);
    curve
}

/// Counts of points in hexagons of radius `r`: (middle x, middle y, count), in a fixed order.
pub(super) fn hexagons(points: &[(f64, f64)], r: f64) -> Vec<(f64, f64, u64)> {
    let (dx, dy) = (r * 3f64.sqrt(), r * 1.5);
    let mut cells = std::collections::BTreeMap::new();
    for &(x, y) in points {
        // The nearest middle is in the row above or the row below.
        let row = (y / dy).floor() as i64;
        let nearest = [row, row + 1]
            .map(|j| {
                let shift = if j.rem_euclid(2) == 1 { 0.5 } else { 0.0 };
                let i = (x / dx - shift).round() as i64;
                let (cx, cy) = ((i as f64 + shift) * dx, j as f64 * dy);
                ((x - cx) * (x - cx) + (y - cy) * (y - cy), j, i)
            })
            .into_iter()
            .min_by(|a, b| a.0.total_cmp(&b.0));
        if let Some((_, j, i)) = nearest {
            *cells.entry((j, i)).or_insert(0) += 1;
        }
    }
    let middle = |j: i64, i: i64| ((i as f64 + if j.rem_euclid(2) == 1 { 0.5 } else { 0.0 }) * dx, j as f64 * dy);
    cells.into_iter().map(|((j, i), n)| (middle(j, i).0, middle(j, i).1, n)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_is_in_one_bin() {
        let values: Vec<f64> = (0..1000).map(|i| f64::from(i) / 100.0 - 3.0).collect();
        let bins = Bins::new(&values, (values[0], values[999]));
        assert_eq!(bins.counts.iter().sum::<u64>(), 1000);
        let zero = -bins.first_edge / bins.width;
        assert!((zero - zero.round()).abs() < 1e-9);
    }

    #[test]
    fn every_point_is_in_one_hexagon_near_it() {
        let points: Vec<(f64, f64)> = (0..5000).map(|i| (f64::from(i * 37 % 400), f64::from(i * 91 % 300))).collect();
        let cells = hexagons(&points, 6.0);
        assert_eq!(cells.iter().map(|c| c.2).sum::<u64>(), 5000);
        for p in &points {
            assert!(cells.iter().any(|c| (c.0 - p.0).hypot(c.1 - p.1) <= 6.0 + 1e-9));
        }
    }

    #[test]
    fn quantiles_are_those_of_type_seven() {
        assert_eq!(quantile(&[1.0, 2.0, 3.0, 4.0], 0.25), 1.75);
        assert_eq!(quantile(&[7.0], 0.9), 7.0);
    }

    #[test]
    fn one_absurd_value_is_cut_off_and_counted() {
        let mut values: Vec<f64> = (0..100).map(f64::from).collect();
        values.push(1e12);
        assert_eq!(sane_limits(&values), ((0.0, 99.0), 1));
    }
}
