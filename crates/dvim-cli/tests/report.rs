//! The report: every number on the page is in the files of the run, and the command on it makes the run again.

use assert_cmd::Command;
use serde_json::Value;
use std::collections::HashMap;
use std::fs;
use std::path::{Path, PathBuf};

fn dvim(folder: &Path, args: &[&str]) -> String {
    let out = Command::cargo_bin("dvim").unwrap().current_dir(folder).args(args).output().unwrap();
    assert!(out.status.success(), "dvim {args:?}: {}", String::from_utf8_lossy(&out.stderr));
    String::from_utf8(out.stdout).unwrap()
}

const COLUMNS: [&str; 8] = ["--time", "time", "--event", "event", "--treatment", "treatment", "--horizon", "800"];

/// A run with a report: of this scenario, with these further flags.
fn run(folder: &Path, scenario: &str, flags: &[&str]) -> (PathBuf, String, Value) {
    dvim(folder, &["simulate", "--scenario", scenario, "--n", "1200", "--seed", "4", "-o", "cohort.csv"]);
    let mut args = vec!["fit", "cohort.csv"];
    args.extend(COLUMNS);
    args.extend(["--estimator", "paper", "-k", "25", "-o", "run", "--report", "report.html"]);
    args.extend(flags);
    dvim(folder, &args);
    let page = fs::read_to_string(folder.join("report.html")).unwrap();
    let summary = serde_json::from_str(&fs::read_to_string(folder.join("run/summary.json")).unwrap()).unwrap();
    (folder.join("run"), page, summary)
}

/// The page without markup in one string: tags become spaces, figures are left out.
fn words(html: &str) -> String {
    let mut out = String::new();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        out.push_str(&rest[..start]);
        out.push(' ');
        rest = if rest[start..].starts_with("<svg") {
            let end = rest[start..].find("</figure>").unwrap();
            &rest[start + end..]
        } else {
            &rest[start + rest[start..].find('>').unwrap() + 1..]
        };
    }
    out.push_str(rest);
    out.replace("&lt;", "<").replace("&#39;", "'").replace("&quot;", "\"").replace("&amp;", "&").replace('\u{a0}', " ")
}

/// A number as it is written: its value, and half a unit of its last digit. A count has no digit to spare.
fn written(token: &str) -> Option<(f64, f64)> {
    let plain = token.replace(',', "").replace('−', "-");
    let value: f64 = plain.parse().ok()?;
    let decimals = plain.split(['e', 'E']).next()?.split_once('.').map_or(0, |(_, d)| d.len() as i32);
    let exponent = plain.split(['e', 'E']).nth(1).map_or(0, |e| e.parse().unwrap_or(0));
    Some((value, 0.5000001 * 10f64.powi(exponent - decimals)))
}

/// All numbers of a JSON value.
fn numbers(of: &Value, out: &mut Vec<f64>) {
    match of {
        Value::Number(n) => out.extend(n.as_f64()),
        Value::String(s) => out
            .extend(s.split(|c: char| !(c.is_ascii_digit() || ".-".contains(c))).filter_map(|t| t.parse::<f64>().ok())),
        Value::Array(all) => all.iter().for_each(|v| numbers(v, out)),
        Value::Object(all) => all.values().for_each(|v| numbers(v, out)),
        _ => {}
    }
}

/// The numbers of a CSV file.
fn csv_numbers(file: &Path, out: &mut Vec<f64>) {
    let text = fs::read_to_string(file).unwrap();
    out.extend(text.split([',', '\n']).filter_map(|t| t.parse::<f64>().ok()));
}

/// The tables of a page: caption and rows of cells.
fn tables(page: &str) -> Vec<(String, Vec<Vec<String>>)> {
    page.split("<table>")
        .skip(1)
        .map(|t| {
            let table = &t[..t.find("</table>").unwrap()];
            let (caption, body) = table.split_once("</caption>").unwrap();
            let rows = body.split("<tr>").skip(1).map(|r| {
                let cells = r.replace("</th>", "</td>");
                cells.split("</td>").map(|c| words(c).trim().to_string()).collect::<Vec<_>>()
            });
            (words(caption), rows.collect())
        })
        .collect()
}

/// Every number in the tables and in the answer is, to the digits shown, a number of the run's files or 100 times one.
fn all_found(folder: &Path, run: &Path, page: &str, summary: &Value) {
    let mut known = vec![800.0, 0.0];
    numbers(summary, &mut known);
    for name in ["effects.csv", "weights.csv"] {
        csv_numbers(&run.join(name), &mut known);
    }
    // The tables of single patients: what `dvim match` prints, and the cohort's own values.
    for id in page.split("<h3>Patient ").skip(1).map(|p| &p[..p.find('<').unwrap()]) {
        numbers(&serde_json::from_str(&dvim(folder, &["match", "run", id, "--json"])).unwrap(), &mut known);
    }
    csv_numbers(&folder.join("cohort.csv"), &mut known);
    let n = known.len();
    for i in 0..n {
        known.push(100.0 * known[i]);
    }
    known.sort_by(f64::total_cmp);
    let found = |value: f64, slack: f64| {
        let from = known.partition_point(|k| *k < value - slack);
        known.get(from).is_some_and(|k| *k <= value + slack)
    };
    let mut missing = Vec::new();
    let mut checked = 0;
    let answer = page.split("class=\"lead\">").nth(1).map(|a| &a[..a.find("</p>").unwrap()]).unwrap();
    let cells = tables(page)
        .into_iter()
        .filter(|(caption, _)| !caption.contains("mean share of each"))
        .flat_map(|(_, rows)| rows);
    let texts = cells.flatten().chain([words(answer)]);
    for text in texts.filter(|t| t.len() < 400 && !(t.len() == 64 && t.chars().all(|c| c.is_ascii_hexdigit()))) {
        for token in text.split(|c: char| c.is_whitespace() || "()<%=:;".contains(c)) {
            let token = token.trim_end_matches(['.', ',']).trim_start_matches('+');
            if let Some((value, slack)) = written(token) {
                checked += 1;
                // Signs are words in the answer, and a count that is left out has a minus sign in the flow only.
                if !found(value, slack) && !found(-value, slack) {
                    missing.push(format!("{token} in `{}`", text.chars().take(80).collect::<String>()));
                }
            }
        }
    }
    assert!(checked > 300, "{checked}");
    assert!(missing.is_empty(), "{missing:#?}");
}

#[test]
fn every_number_is_in_the_files() {
    let folder = tempfile::tempdir().unwrap();
    let (run, page, summary) = run(folder.path(), "both-overlap", &["--by", "x3", "--by", "x12:3"]);
    all_found(folder.path(), &run, &page, &summary);
}

#[test]
fn the_answer_is_that_of_the_summary() {
    let folder = tempfile::tempdir().unwrap();
    let (_, page, summary) = run(folder.path(), "both-overlap", &["--confidence", "0.9"]);
    let of = |estimand: &str| {
        let all = summary["average_effects"].as_array().unwrap();
        let found = all.iter().find(|a| a["estimand"] == estimand && a["population"] == "all").unwrap().clone();
        ["estimate", "low", "high"].map(|k| found[k].as_f64().unwrap())
    };
    let text = words(&page);
    let [v, low, high] = of("cure_effect").map(|v| 100.0 * v);
    assert!(low > 0.0, "this cohort has a clear effect");
    assert!(
        text.contains(&format!(
            "{v:.1} more of 100 patients are event-free at time 800 than with control (90 % CI {low:.1} to {high:.1})."
        )),
        "{}",
        &text[..3000]
    );
    let [v, low, high] = of("time_effect");
    assert!(text.contains(&format!(
        "it comes {v:.0} later with treatment in the unit of the time column (90 % CI {low:.0} to {high:.0})."
    )));
    // And the subgroups and baseline rows by name.
    let cells: HashMap<String, Vec<String>> =
        tables(&page).into_iter().flat_map(|(_, r)| r).map(|r| (r[0].clone(), r)).collect();
    let x20 = summary["baseline"].as_array().unwrap().iter().find(|b| b["covariate"] == "x20").unwrap();
    assert!(cells["x20"][0] == "x20" && x20["difference"].is_number());
}

#[test]
fn the_command_on_the_page_makes_the_run_again() {
    let folder = tempfile::tempdir().unwrap();
    let flags = [
        "--by",
        "x3",
        "--exact",
        "x2",
        "--caliper",
        "x12=2sd",
        "--seed",
        "9",
        "--metric",
        "combined",
        "--drop",
        "x7,x8",
        "--cluster",
        "x9",
    ];
    let (run, page, _) = run(folder.path(), "cure-only", &flags);
    let command = page.split("<pre tabindex=\"0\"><code>").nth(1).unwrap();
    let command = words(&command[..command.find("</code>").unwrap()]);
    let args: Vec<&str> = command.split_whitespace().skip(1).map(|w| if w == "run" { "again" } else { w }).collect();
    dvim(folder.path(), &args);
    for file in ["effects.csv", "weights.csv", "run.dvim"] {
        assert_eq!(
            fs::read(run.join(file)).unwrap(),
            fs::read(folder.path().join("again").join(file)).unwrap(),
            "{file}"
        );
    }
}

#[test]
fn adjusted_runs_have_a_page_that_says_what_is_not_there() {
    let folder = tempfile::tempdir().unwrap();
    dvim(folder.path(), &["simulate", "--scenario", "both-overlap", "--n", "800", "--seed", "4", "-o", "cohort.csv"]);
    let mut args = vec!["fit", "cohort.csv", "--estimator", "adjusted", "--folds", "3", "-o", "run"];
    args.extend(COLUMNS);
    dvim(folder.path(), &args);
    dvim(folder.path(), &["report", "run", "-o", "report.html", "--title", "A <title>", "--time-unit", "days"]);
    let page = fs::read_to_string(folder.path().join("report.html")).unwrap();
    let text = words(&page);
    assert!(page.contains("<h1>A &lt;title&gt;</h1>"));
    assert!(text.contains(" days later") || text.contains(" days earlier"));
    assert!(text.contains("corrected by"));
    let summary: Value =
        serde_json::from_str(&fs::read_to_string(folder.path().join("run/summary.json")).unwrap()).unwrap();
    for why in summary["audit"]["left_out"].as_array().unwrap() {
        assert!(text.contains(why.as_str().unwrap()), "{why}");
    }
    all_found(folder.path(), &folder.path().join("run"), &page, &summary);
}

#[test]
fn a_run_without_audit_has_a_page() {
    let folder = tempfile::tempdir().unwrap();
    let (run, page, summary) = run(folder.path(), "both-overlap", &["--no-audit"]);
    let text = words(&page);
    assert!(text.contains("the audit was not asked for") && text.contains("it has no interval"));
    assert!(text.contains("--no-audit"), "the command makes the same run");
    all_found(folder.path(), &run, &page, &summary);
}

#[test]
fn a_page_loads_nothing_and_replaces_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let (_, page, _) = run(folder.path(), "time-only", &[]);
    assert!(!page.contains("<script") && !page.contains("src=") && !page.contains("@import") && !page.contains("url("));
    let addresses: Vec<&str> = page.match_indices("http").map(|(i, _)| &page[i..i + 30]).collect();
    assert!(
        addresses.iter().all(|a| a.starts_with("http://www.w3.org/2000/svg") || a.starts_with("http-equiv")),
        "{addresses:?}"
    );
    let out = Command::cargo_bin("dvim")
        .unwrap()
        .current_dir(folder.path())
        .args(["report", "run", "-o", "report.html"])
        .output()
        .unwrap();
    assert_eq!(out.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&out.stderr).contains("--force"));
    dvim(folder.path(), &["report", "run", "-o", "report.html", "--force"]);
    assert_eq!(
        fs::read_to_string(folder.path().join("report.html")).unwrap(),
        page,
        "the same page, of the run reopened"
    );
}
