//! Words and numbers: escaping, widths, truncation, wrapping, and numbers as people write them.

use std::borrow::Cow;
use std::fmt::Write;

/// Text made safe for XML and HTML, in element content and in quoted attributes.
///
/// Characters that XML 1.0 forbids are replaced by U+FFFD. This is the only escape function of the crate's plots and
/// pages.
pub fn escape(text: &str) -> Cow<'_, str> {
    let forbidden = |c: char| (c < ' ' && !matches!(c, '\t' | '\n' | '\r')) || matches!(c, '\u{fffe}' | '\u{ffff}');
    if !text.contains(|c| matches!(c, '&' | '<' | '>' | '"' | '\'') || forbidden(c)) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if forbidden(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// A coordinate: at most two decimals, no trailing zeros, never "-0" and never a word such as "NaN".
pub(super) fn coordinate(out: &mut String, value: f64) {
    let value = if value.is_finite() { value.clamp(-1e6, 1e6) } else { 0.0 };
    let hundredths = (value * 100.0).round() as i64;
    let (sign, h) = (if hundredths < 0 { "-" } else { "" }, hundredths.unsigned_abs());
    let _ = match (h / 100, h % 100) {
        (whole, 0) => write!(out, "{sign}{whole}"),
        (whole, part) if part % 10 == 0 => write!(out, "{sign}{whole}.{}", part / 10),
        (whole, part) => write!(out, "{sign}{whole}.{part:02}"),
    };
}

/// How much wider bold words are.
pub(super) const BOLD: f64 = 1.13;

/// Width of `text` in pixels at a font size, as in DejaVu Sans: the reader's font is not known here, and this is the
/// widest of the usual ones.
pub(super) fn width(text: &str, size: f64) -> f64 {
    let em: f64 = text
        .chars()
        .map(|c| match c {
            'i' | 'j' | 'l' | '\'' | 'I' | 'J' => 0.28,
            ' ' | ',' | '.' | '/' | ':' | ';' | '|' => 0.33,
            'f' | '-' | 't' | 'r' | '(' | ')' | '[' | ']' | '!' => 0.39,
            's' | 'z' | 'c' | '_' | '*' | '?' | '–' | '"' => 0.53,
            'O' | 'Q' | 'D' | 'G' | 'H' | 'N' | 'U' | '&' => 0.77,
            'A' | 'B' | 'C' | 'K' | 'R' | 'V' | 'X' | 'Z' => 0.69,
            'w' | 'M' | '+' | '<' | '=' | '>' | '~' | '#' | '×' | '−' | '←' | '→' => 0.84,
            'm' | 'W' | '%' | '@' | '…' => 0.98,
            '⁰'..='⁹' | '¹' | '²' | '³' | '⁻' => 0.41,
            '\u{2e80}'..='\u{ffef}' | '\u{1f000}'.. => 1.0,
            _ => 0.62,
        })
        .sum();
    em * size
}

/// The text shortened with an ellipsis to fit `max` pixels, and whether it had to be.
pub(super) fn truncate(text: &str, size: f64, max: f64) -> (Cow<'_, str>, bool) {
    if width(text, size) <= max {
        return (Cow::Borrowed(text), false);
    }
    let mut used = width("…", size);
    let mut out = String::new();
    for c in text.chars() {
        used += width(c.encode_utf8(&mut [0; 4]), size);
        if used > max {
            break;
        }
        out.push(c);
    }
    out.truncate(out.trim_end().len());
    out.push('…');
    (Cow::Owned(out), true)
}

/// The text broken at spaces into lines of at most `max` pixels; a longer word is shortened.
pub(super) fn wrap(text: &str, size: f64, max: f64) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        let word = truncate(word, size, max).0;
        match lines.last_mut() {
            Some(line) if width(line, size) + width(" ", size) + width(&word, size) <= max => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => lines.push(word.into_owned()),
        }
    }
    lines
}

/// A count with thousands separated: 20,000.
pub fn count(n: u64) -> String {
    let digits = n.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (i, c) in digits.chars().enumerate() {
        if i > 0 && (digits.len() - i).is_multiple_of(3) {
            out.push(',');
        }
        out.push(c);
    }
    out
}

/// The weight of a covariate; weights of one metric, of which `most` is the largest, have the same decimals.
pub fn weight(weight: f64, most: f64) -> String {
    match weight {
        0.0 => "0".into(),
        _ if most < 1e-3 => scientific(weight, 1),
        _ => fixed(weight, decimals_for(most)),
    }
}

/// A number with a fixed count of decimals, thousands separated and a true minus sign; 10 million and more,
/// or less than a ten-thousandth, in powers of ten.
pub fn fixed(value: f64, decimals: usize) -> String {
    if !value.is_finite() {
        return "–".into();
    }
    if value.abs() >= 1e7 || (value != 0.0 && decimals > 5) {
        return scientific(value, 1);
    }
    let plain = format!("{:.*}", decimals.min(5), value.abs());
    let (whole, part) = plain.split_once('.').map_or((plain.as_str(), None), |(w, p)| (w, Some(p)));
    let negative = value < 0.0 && plain.contains(|c: char| c.is_ascii_digit() && c != '0');
    let mut out = String::from(if negative { "−" } else { "" });
    out.push_str(&count(whole.parse().unwrap_or(0)));
    if let Some(part) = part {
        out.push('.');
        out.push_str(part);
    }
    out
}

/// A number with about three significant digits: 412, 12.3, 0.123.
pub fn number(value: f64) -> String {
    let size = value.abs();
    if size != 0.0 && size < 1e-4 {
        return scientific(value, 1);
    }
    let decimals = match size {
        s if s >= 100.0 => 0,
        s if s >= 10.0 => 1,
        s if s >= 1.0 || s == 0.0 => 2,
        s if s >= 0.01 => 3,
        _ => 5,
    };
    fixed(value, if value == value.round() { 0 } else { decimals })
}

/// Like [`number`], without zeros at the end of the decimals: 0.1 rather than 0.100.
pub(super) fn short(value: f64) -> String {
    trim(number(value))
}

fn trim(digits: String) -> String {
    if digits.contains('.') && !digits.contains('×') {
        digits.trim_end_matches('0').trim_end_matches('.').into()
    } else {
        digits
    }
}

/// Decimals that give the largest of some values three significant digits, so that a column of them lines up.
pub(super) fn decimals_for(largest: f64) -> usize {
    if largest > 0.0 { (2.0 - largest.log10().floor()).clamp(0.0, 5.0) as usize } else { 0 }
}

/// m×10ⁿ with at most `decimals` decimals in m; a mantissa of exactly one is left out.
pub(super) fn scientific(value: f64, decimals: usize) -> String {
    if value == 0.0 || !value.is_finite() {
        return if value == 0.0 { "0".into() } else { "–".into() };
    }
    let text = format!("{:.*e}", decimals, value.abs());
    let (mantissa, power) = text.split_once('e').unwrap_or((&text, "0"));
    let mantissa = if mantissa.contains('.') { mantissa.trim_end_matches('0').trim_end_matches('.') } else { mantissa };
    let mut out = String::from(if value < 0.0 { "−" } else { "" });
    if mantissa != "1" {
        out.push_str(mantissa);
        out.push('×');
    }
    out.push_str("10");
    for c in power.chars() {
        out.push(match c {
            '-' => '⁻',
            digit => ['⁰', '¹', '²', '³', '⁴', '⁵', '⁶', '⁷', '⁸', '⁹'][digit.to_digit(10).unwrap_or(0) as usize],
        });
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_read_as_people_write_them() {
        assert_eq!(count(20_000), "20,000");
        assert_eq!(fixed(-1234.56, 1), "−1,234.6");
        assert_eq!(fixed(-0.04, 1), "0.0");
        assert_eq!(number(0.1234), "0.123");
        assert_eq!(number(412.0), "412");
        assert_eq!(number(3e9), "3×10⁹");
        assert_eq!(number(1e-9), "10⁻⁹");
        assert_eq!(number(f64::NAN), "–");
    }

    #[test]
    fn coordinates_are_short_and_always_numbers() {
        let c = |v| {
            let mut s = String::new();
            coordinate(&mut s, v);
            s
        };
        assert_eq!(c(12.5), "12.5");
        assert_eq!(c(-0.001), "0");
        assert_eq!(c(-0.25), "-0.25");
        assert_eq!(c(f64::NAN), "0");
        assert_eq!(c(f64::INFINITY), "0");
        assert_eq!(c(3.05), "3.05");
    }

    #[test]
    fn text_is_escaped_once_and_for_all() {
        assert_eq!(escape("a<b & \"c\"\u{1}"), "a&lt;b &amp; &quot;c&quot;\u{fffd}");
        assert!(matches!(escape("plain"), Cow::Borrowed(_)));
    }

    #[test]
    fn long_text_is_shortened_and_wrapped() {
        let (short, cut) = truncate("a very long covariate name indeed", 12.0, 60.0);
        assert!(cut && width(&short, 12.0) <= 60.0);
        assert!(wrap("one two three four five", 12.0, 60.0).iter().all(|l| width(l, 12.0) <= 60.0));
    }
}
