//! `dvim explore` from outside: the numbers are those of the run's files and of `dvim predict`; it ends as it should.

use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

fn dvim(folder: &Path, args: &str) -> Output {
    Command::new(env!("CARGO_BIN_EXE_dvim")).current_dir(folder).args(args.split(' ')).output().expect("dvim runs")
}

fn done(folder: &Path, args: &str) -> String {
    let output = dvim(folder, args);
    assert!(output.status.success(), "dvim {args}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("text")
}

/// Rows of a table without quotes, by the names of its columns.
fn rows(text: &str) -> Vec<Vec<(String, String)>> {
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().expect("a header").split(',').collect();
    lines.map(|l| names.iter().zip(l.split(',')).map(|(n, v)| (n.to_string(), v.to_string())).collect()).collect()
}

/// A program that Ctrl-C ends, even where the tests themselves run in the background and ignore it: what a parent
/// ignores its children ignore too.
fn listening_to_interrupts(program: &str) -> Command {
    if cfg!(target_os = "linux") {
        let mut command = Command::new("env");
        command.args(["--default-signal=INT", program]);
        return command;
    }
    Command::new(program)
}

struct Served {
    child: Child,
    port: u16,
    token: String,
}

impl Served {
    fn start(folder: &Path, run: &str) -> Served {
        let mut child = listening_to_interrupts(env!("CARGO_BIN_EXE_dvim"))
            .current_dir(folder)
            .args(["explore", run, "--no-open"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("dvim starts");
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().expect("stdout")).read_line(&mut line).expect("an address");
        let place = line.trim().strip_prefix("http://127.0.0.1:").expect("a loopback address");
        let (port, token) = place.split_once("/?token=").expect("a token");
        Served { port: port.parse().expect("a port"), token: token.to_string(), child }
    }

    fn ask(&self, method: &str, target: &str, body: &str) -> (u16, Value) {
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        let request = format!(
            "{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
            self.port,
            self.token,
            body.len()
        );
        stream.write_all(request.as_bytes()).expect("a request");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("an answer");
        let (head, body) = text.split_once("\r\n\r\n").expect("a head");
        let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status");
        (status, serde_json::from_str(body).expect("JSON"))
    }

    fn get(&self, target: &str) -> Value {
        let (status, answer) = self.ask("GET", target, "");
        assert_eq!(status, 200, "{target}: {answer}");
        answer
    }

    /// Ends it as Ctrl-C does; gives the exit code.
    #[cfg(unix)]
    fn interrupt(mut self) -> Option<i32> {
        let id = self.child.id().to_string();
        assert!(Command::new("kill").args(["-INT", &id]).status().expect("kill").success());
        self.child.wait().expect("an end").code()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether a row of a table and an effect of the page are the same, to the last bit.
fn assert_same(row: &[(String, String)], effect: &Value, except: &[&str]) {
    for (name, text) in row.iter().filter(|(n, _)| !except.contains(&n.as_str())) {
        let value = effect.get(name).unwrap_or_else(|| panic!("no {name} in {effect}"));
        match (text.parse::<f64>(), value) {
            (_, Value::Null) => assert!(text.is_empty(), "{name} is {text} in the table and undefined on the page"),
            (Ok(number), Value::Number(n)) => assert_eq!(n.as_f64(), Some(number), "{name}"),
            (_, Value::String(s)) => assert_eq!(s, text, "{name}"),
            (_, other) => panic!("{name} is {text} in the table and {other} on the page"),
        }
    }
}

const COLUMNS: &str = "--time time --event event --treatment treatment --horizon 800";

#[test]
fn the_page_shows_the_numbers_of_the_run_and_of_predict() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    done(folder, "simulate --scenario both-overlap --n 900 --seed 4 -o cohort.csv");
    done(folder, &format!("fit cohort.csv {COLUMNS} --estimator paper -k 25 -o run"));
    done(folder, "simulate --scenario both-overlap --n 20 --seed 5 -o new.csv");
    let effects = rows(&fs::read_to_string(folder.join("run/effects.csv")).expect("effects.csv"));
    let served = Served::start(folder, "run");
    for row in effects.iter().step_by(60) {
        let id = &row[0].1;
        for question in ["", "?k=25", "?h=800", "?k=25&h=800&w=600&group=time-control"] {
            let answer = served.get(&format!("/api/patient/{id}{question}"));
            assert_eq!(answer["as_run"], Value::Bool(true));
            assert_same(row, &answer["effect"], &[]);
        }
        let other = served.get(&format!("/api/patient/{id}?k=60&h=400"));
        assert_eq!((other["as_run"].as_bool(), other["horizon"].as_f64()), (Some(false), Some(400.0)));
        assert_eq!(other["cure"]["treated"]["n_members"].as_u64(), Some(60));
        assert_ne!(other["effect"]["cure_effect"], served.get(&format!("/api/patient/{id}"))["effect"]["cure_effect"]);
    }
    // The table and the plane have the same numbers.
    let table = served.get("/api/patients?limit=200");
    for (row, shown) in effects.iter().zip(table["rows"].as_array().expect("rows")) {
        assert_eq!(shown["id"].as_str(), Some(row[0].1.as_str()));
        assert_eq!(shown["cure"][0].as_f64(), row[2].1.parse().ok());
        assert_eq!(shown["time_effect"][0].as_f64(), row[3].1.parse().ok());
    }
    // The members are those of `dvim match`.
    let id = &effects[7][0].1;
    let matched: Value = serde_json::from_str(&done(folder, &format!("match run {id} --json"))).expect("JSON");
    let shown = served.get(&format!("/api/patient/{id}?group=cure-control"));
    let members = shown["members"]["members"].as_array().expect("members");
    let expected = matched["cure"]["control"]["members"].as_array().expect("members");
    assert_eq!(members.len(), expected.len());
    for (a, b) in members.iter().zip(expected) {
        assert_eq!(
            (&a["id"], &a["distance"], &a["time"], &a["event"]),
            (&b["id"], &b["distance"], &b["time"], &b["event"])
        );
        for (j, name) in (1..=20).map(|j| (j - 1, format!("x{j}"))) {
            assert_eq!(a["shares"][j], b["shares"][&name]);
        }
    }
    // New patients: as `dvim predict`.
    let predicted = rows(&done(folder, "predict run new.csv"));
    let new = rows(&fs::read_to_string(folder.join("new.csv")).expect("new.csv"));
    for (row, patient) in predicted.iter().zip(&new) {
        let values: Value =
            patient.iter().filter(|(n, _)| n.starts_with('x')).map(|(n, v)| (n.clone(), json!(v))).collect();
        let (status, answer) = served.ask("POST", "/api/new", &json!({ "values": values }).to_string());
        assert_eq!(status, 200, "{answer}");
        assert_same(row, &answer["effect"], &["id", "treatment"]);
    }
    #[cfg(unix)]
    assert_eq!(served.interrupt(), Some(0), "Ctrl-C is how it ends");
}

#[test]
fn an_adjusted_run_shows_what_the_correction_moved() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    done(folder, "simulate --scenario both-overlap --n 500 --seed 4 -o cohort.csv");
    done(folder, &format!("fit cohort.csv {COLUMNS} --estimator adjusted --folds 3 -o run"));
    let effects = rows(&fs::read_to_string(folder.join("run/effects.csv")).expect("effects.csv"));
    let served = Served::start(folder, "run");
    for row in effects.iter().step_by(50) {
        let answer = served.get(&format!("/api/patient/{}", row[0].1));
        assert_same(row, &answer["effect"], &[]);
        assert_eq!(answer["correction"]["cure_corrected"], answer["effect"]["cure_effect"]);
        assert_eq!(answer["correction"]["cure_matched"], answer["effect"]["cure_effect_matched"]);
        let other = served.get(&format!("/api/patient/{}?k=10", row[0].1));
        assert_eq!(other["correction"]["cure_corrected"], other["effect"]["cure_effect"]);
        assert_ne!(other["effect"]["cure_effect"], answer["effect"]["cure_effect"]);
        let other = served.get(&format!("/api/patient/{}?h=500", row[0].1));
        // An earlier horizon is read off the patient's own curve, which `dvim curves` writes.
        let curves = done(folder, &format!("curves run --patients {} --at 500", row[0].1));
        let survival = |arm: &str| -> f64 {
            let of = rows(&curves).into_iter().find(|r| r.iter().any(|(_, v)| v == arm)).expect("the arm");
            of.iter().find(|(name, _)| name == "survival").expect("a column").1.parse().expect("a number")
        };
        let expected = survival("treated") - survival("control");
        let found = other["effect"]["cure_effect"].as_f64().expect("an effect");
        assert!((found - expected).abs() < 1e-9, "{found} {expected}");
    }
}

#[test]
fn categories_gaps_and_constraints_are_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let mut table = String::from("patient,time,event,arm,age,sex,stage\n");
    for i in 0..400u64 {
        // SplitMix64's finaliser: anything that mixes well will do.
        let mix = |salt: u64| {
            let mut z = (16 * i + salt).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            (z >> 33) % 1000
        };
        let age = if mix(1) < 60 { String::new() } else { (30 + mix(2) % 50).to_string() };
        let stage = ["I", "II", "III \"late\""][(mix(5) % 3) as usize].replace('"', "");
        let (time, event) = (1 + mix(3), u8::from(mix(4) < 600));
        let arm = if mix(6) < 500 { "drug" } else { "placebo" };
        table += &format!("p{i},{time},{event},{arm},{age},{},{stage}\n", if mix(7) < 500 { "f" } else { "m" });
    }
    fs::write(folder.join("cohort.csv"), table).expect("a table");
    done(
        folder,
        "fit cohort.csv --id patient --time time --event event --treatment arm --treated drug --horizon 900 --missing indicator --exact sex --caliper age=6 --estimator paper -k 12 -o run",
    );
    let effects = rows(&fs::read_to_string(folder.join("run/effects.csv")).expect("effects.csv"));
    let served = Served::start(folder, "run");
    let unserved = effects.iter().filter(|r| r[14].1.contains("too_few")).count();
    assert!(unserved > 0 && unserved < effects.len(), "some are not served");
    for row in &effects {
        let answer = served.get(&format!("/api/patient/{}", row[0].1));
        assert_same(row, &answer["effect"], &[]);
        assert_eq!(answer["unserved"].is_string(), row[14].1.contains("too_few"));
    }
    let found = served.get("/api/patients?q=stage%3D%22iii+late%22+sex%3Df&show=all&limit=200");
    assert!(found["n"].as_u64().is_some_and(|n| n > 20));
    fs::write(folder.join("new.csv"), "age,sex,stage\n55,f,II\n,m,I\n").expect("a table");
    let predicted = rows(&done(folder, "predict run new.csv"));
    let patients = [json!({ "age": "55", "sex": "f", "stage": "II" }), json!({ "age": "", "sex": "m", "stage": "I" })];
    for (row, values) in predicted.iter().zip(&patients) {
        let (status, answer) = served.ask("POST", "/api/new", &json!({ "values": values }).to_string());
        assert_eq!(status, 200, "{answer}");
        assert_same(row, &answer["effect"], &["id", "treatment"]);
    }
    let (status, answer) =
        served.ask("POST", "/api/new", &json!({ "values": { "age": 50, "sex": "x", "stage": "I" } }).to_string());
    assert_eq!(status, 422);
    assert!(answer["error"]["message"].as_str().is_some_and(|m| m.contains("sex") && m.contains("`f`")), "{answer}");
    let (status, _) = served.ask("POST", "/api/new", &json!({ "values": { "age": 50, "stage": "I" } }).to_string());
    assert_eq!(status, 422, "sex was never missing in the run");
}

#[test]
fn what_cannot_be_explored_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let output = dvim(folder, "explore nothing --no-open");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("`dvim fit`"));
    done(folder, "simulate --scenario both-overlap --n 400 --seed 4 -o cohort.csv");
    done(folder, &format!("fit cohort.csv {COLUMNS} --estimator paper -k 20 -o run"));
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = taken.local_addr().expect("an address").port();
    let output = dvim(folder, &format!("explore run --no-open --port {port}"));
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(said.contains(&port.to_string()) && said.contains("remedy"), "{said}");
}
