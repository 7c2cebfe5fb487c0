//! Whether two runs say the same to the precision that is promised, where their last bits differ.
//!
//! On one machine, and on all that have fused multiplication, a run repeats to the last bit. Another compiler or
//! processor may round a sum in another way.

use serde_json::Value;

/// Two numbers agree where they differ by at most this share of the largest value of their column.
pub const PRECISION: f64 = 1e-9;

/// The largest difference of two tables as CSV, as a share of the largest value of its column. `None` where they do not
/// say the same: a name, an id, a flag, an empty cell, or a difference beyond [`PRECISION`].
pub fn of_tables(a: &str, b: &str) -> Option<f64> {
    let [a, b] = [a, b].map(rows);
    if a.len() != b.len() || a.first() != b.first() {
        return None;
    }
    let mut most = 0.0_f64;
    for column in 0..a.first().map_or(0, Vec::len) {
        let (mut largest, mut apart) = (0.0_f64, 0.0_f64);
        for (a, b) in a.iter().zip(&b).skip(1) {
            let (a, b) = (a.get(column)?, b.get(column)?);
            if a != b {
                let [a, b] = [a, b].map(|x| x.parse::<f64>().ok().filter(|x| x.is_finite()));
                apart = apart.max((a? - b?).abs());
            }
            largest = [a, b].iter().filter_map(|x| x.parse::<f64>().ok()).fold(largest, |m, x| m.max(x.abs()));
        }
        if apart > 0.0 {
            most = most.max(apart / largest);
        }
    }
    (most <= PRECISION).then_some(most)
}

/// The largest difference of the numbers of two JSON values, as a share of the larger or of `scale`. `None` where
/// anything else differs, or beyond [`PRECISION`].
pub fn of_values(a: &Value, b: &Value, scale: f64) -> Option<f64> {
    match (a, b) {
        (Value::Number(x), Value::Number(y)) => {
            let (x, y) = (x.as_f64()?, y.as_f64()?);
            let apart = (x - y).abs() / scale.max(x.abs()).max(y.abs());
            (apart <= PRECISION).then_some(apart)
        }
        (Value::Array(x), Value::Array(y)) if x.len() == y.len() => {
            largest(x.iter().zip(y).map(|(x, y)| of_values(x, y, scale)))
        }
        (Value::Object(x), Value::Object(y)) if x.len() == y.len() => {
            largest(x.iter().map(|(name, x)| of_values(x, y.get(name)?, scale)))
        }
        _ => (a == b).then_some(0.0),
    }
}

/// The largest of some differences; `None` where one is.
fn largest(mut differences: impl Iterator<Item = Option<f64>>) -> Option<f64> {
    differences.try_fold(0.0_f64, |most, found| found.map(|d| most.max(d)))
}

/// The cells of a table that dvim wrote.
fn rows(text: &str) -> Vec<Vec<String>> {
    let mut rows = Vec::new();
    let (mut row, mut cell, mut is_quoted) = (Vec::new(), String::new(), false);
    let mut letters = text.chars().peekable();
    while let Some(c) = letters.next() {
        match c {
            '"' if is_quoted && letters.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' => is_quoted = !is_quoted,
            ',' if !is_quoted => row.push(std::mem::take(&mut cell)),
            '\n' if !is_quoted => {
                row.push(std::mem::take(&mut cell));
                rows.push(std::mem::take(&mut row));
            }
            c => cell.push(c),
        }
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tables_agree_to_nine_digits() {
        let table = "id,x,flag\n\"a,\"\"b\",100,\nc,-0.5,few\n";
        assert_eq!(of_tables(table, table), Some(0.0));
        let close = of_tables(table, &table.replace("-0.5", "-0.50000000001")).expect("close");
        assert!((close - 1e-13).abs() < 1e-15, "{close}");
        for (old, new) in
            [("-0.5", "-0.5000002"), ("few", "far"), ("c,", "d,"), (",x", ",y"), ("-0.5", ""), ("100", "inf")]
        {
            assert_eq!(of_tables(table, &table.replace(old, new)), None, "{old} {new}");
        }
        assert_eq!(of_tables(table, "id,x,flag\n"), None);
    }

    #[test]
    fn values_agree_to_nine_digits() {
        let value = json!({"a": [1.0, 1e-12], "b": "text"});
        let close = of_values(&value, &json!({"a": [1.0, 3e-12], "b": "text"}), 1.0).expect("close");
        assert!((close - 2e-12).abs() < 1e-20, "{close}");
        assert_eq!(of_values(&value, &json!({"a": [1.0, 1e-8], "b": "text"}), 1.0), None);
        assert_eq!(of_values(&value, &json!({"a": [1.0], "b": "text"}), 1.0), None);
        assert_eq!(of_values(&value, &json!({"a": [1.0, 1e-12], "b": "tex"}), 1.0), None);
    }
}
