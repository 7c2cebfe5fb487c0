//! The server over a raw socket: who is let in, what is refused, and that it goes on.

use dvim::internal::analysis::{self, Analysis};
use dvim::internal::audit::Audit;
use dvim::internal::cohort::{Cohort, Flow};
use dvim::internal::ground::Ground;
use dvim::internal::options::AdjustedOptions;
use dvim::internal::options::{Estimator, Options};
use dvim::internal::outcome::Extras;
use dvim::internal::simulate::{Scenario, simulate};
use dvim::internal::watch::Unwatched;
use dvim_explore::{Explorer, Server};
use dvim_report::record::{InputRecord, RolesRecord, Source, Summary};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::time::Duration;

struct World {
    cohort: Cohort,
    analysis: Analysis,
    summary: Summary,
}

fn world() -> World {
    of(simulate(Scenario::BothOverlap, 600, false, 3).cohort, &Options { group_size: 20, ..Options::paper() })
}

/// The same patients with case weights, hospitals, delayed entry and events of another cause.
fn further_world() -> World {
    let mut units = simulate(Scenario::BothOverlap, 600, false, 3).cohort.to_units();
    let n = units.time.len();
    let other: Vec<bool> = (0..n).map(|i| !units.event[i] && i % 3 == 0).collect();
    units.extras = Extras {
        weight: Some((0..n).map(|i| 0.5 + (i % 7) as f64 / 2.0).collect()),
        entry: Some((0..n).map(|i| if i % 5 == 0 { 0.2 * units.time[i].min(800.0) } else { 0.0 }).collect()),
        cluster: Some((0..n).map(|i| (i % 30) as u32).collect()),
        competing: Some(other),
    };
    of(Cohort::from_parts(units, None, 800.0).expect("sound parts"), &Options { group_size: 20, ..Options::paper() })
}

fn of(cohort: Cohort, options: &Options) -> World {
    let analysis = analysis::run(&cohort, options, &Unwatched).expect("a run");
    let audit = Audit::of(&cohort, &analysis, &[]).expect("an audit");
    let input = InputRecord { file: "cohort.csv".into(), sha256: String::new(), n_bytes: 0, n_rows: 600 };
    let flow = Flow { n_rows: 600, ..Flow::default() };
    let source = Source { input, roles: RolesRecord::simulated(&cohort), flow: &flow, warnings: &[] };
    let summary = Summary::of(&cohort, &analysis, &audit, source, BTreeMap::new());
    World { cohort, analysis, summary }
}

/// A server while a test talks to it.
struct Client {
    port: u16,
    token: String,
}

struct Answer {
    status: u16,
    head: String,
    body: String,
}

impl Answer {
    fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|e| panic!("{e}: {}", self.body))
    }

    /// The words of a refusal.
    fn refusal(&self) -> String {
        assert!(self.head.contains("application/json"), "{}", self.head);
        self.json()["error"]["message"].as_str().expect("a message").to_string()
    }
}

impl Client {
    fn connect(&self) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", self.port)).expect("a connection");
        stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
        stream
    }

    /// Sends these bytes and reads to the end.
    fn raw(&self, bytes: &[u8]) -> Answer {
        let mut stream = self.connect();
        // A server that refuses early may stop reading: what matters is its answer.
        let _ = stream.write_all(bytes);
        read(&mut stream)
    }

    /// A request with these headers besides the host.
    fn send(&self, method: &str, target: &str, headers: &[&str], body: &str) -> Answer {
        let more: String = headers.iter().map(|h| format!("{h}\r\n")).collect();
        self.raw(
            format!(
                "{method} {target} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nConnection: close\r\nContent-Length: {}\r\n{more}\r\n{body}",
                self.port,
                body.len()
            )
            .as_bytes(),
        )
    }

    /// A request that is let in.
    fn get(&self, target: &str) -> Answer {
        self.send("GET", target, &[&format!("Authorization: Bearer {}", self.token)], "")
    }

    fn post(&self, target: &str, body: &str) -> Answer {
        let headers = [&*format!("Authorization: Bearer {}", self.token), "Content-Type: application/json"];
        self.send("POST", target, &headers, body)
    }

    fn ok(&self, target: &str) -> Value {
        let answer = self.get(target);
        assert_eq!(answer.status, 200, "{target}: {}", answer.body);
        answer.json()
    }
}

fn read(stream: &mut TcpStream) -> Answer {
    let mut bytes = Vec::new();
    let mut chunk = [0; 4096];
    loop {
        match stream.read(&mut chunk) {
            Ok(0) | Err(_) => break,
            Ok(n) => bytes.extend_from_slice(&chunk[..n]),
        }
    }
    let text = String::from_utf8(bytes).expect("text");
    let (head, body) = text.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no answer: {text:?}"));
    let status = head.split(' ').nth(1).and_then(|s| s.parse().ok()).expect("a status");
    Answer { status, head: head.to_string(), body: body.to_string() }
}

/// Serves a world, calls `f`, stops, and checks that the server came to its end.
fn serve(world: &World, f: impl FnOnce(&Client)) {
    let ground = Ground::of_fit(&world.analysis.fit, &world.cohort).expect("constraints that fit");
    let explorer = Explorer::new(&world.cohort, &world.analysis, &world.summary, &ground);
    let server = Server::bind(None).expect("a port");
    let address = server.address();
    let (place, token) =
        address.strip_prefix("http://127.0.0.1:").expect("loopback").split_once("/?token=").expect("a token");
    let client = Client { port: place.parse().expect("a port"), token: token.to_string() };
    let stop = server.stop();
    std::thread::scope(|scope| {
        let served = scope.spawn(|| server.serve(&explorer));
        // A test that fails must not wait for the server for ever.
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| f(&client)));
        let alive = client.get("/api/run").status;
        stop.stop();
        served.join().expect("no panic").expect("no error");
        match outcome {
            Ok(()) => assert_eq!(alive, 200, "the server goes on"),
            Err(e) => std::panic::resume_unwind(e),
        }
    });
}

#[test]
fn only_who_has_the_token_is_let_in() {
    serve(&world(), |client| {
        for target in ["/", "/app.js", "/api/run", "/api/patients", "/api/patient/1", "/nothing"] {
            assert_eq!(client.send("GET", target, &[], "").status, 401, "{target}");
        }
        let wrong = "0".repeat(64);
        assert_eq!(client.send("GET", &format!("/?token={wrong}"), &[], "").status, 401);
        assert_eq!(client.send("GET", &format!("/?token={}", &client.token[..63]), &[], "").status, 401);
        assert_eq!(client.send("GET", "/?token=", &[], "").status, 401);
        assert_eq!(client.send("GET", "/", &[&format!("Authorization: Bearer {wrong}")], "").status, 401);
        assert_eq!(
            client.send("GET", "/", &[&format!("Cookie: dvim-{}={}", client.port, client.token)], "").status,
            401
        );
        let page = client.send("GET", "/", &["Accept: text/html"], "");
        assert!(page.status == 401 && page.body.contains("needs its token") && !page.body.contains("cohort.csv"));

        // The token brings the page and a cookie; from then on the cookie is enough.
        let first = client.send("GET", &format!("/?token={}", client.token), &[], "");
        assert!(first.status == 200 && first.body.contains("<main"), "{}", first.body);
        let cookie = first.head.lines().find_map(|l| l.strip_prefix("Set-Cookie: ")).expect("a cookie");
        assert!(cookie.contains("HttpOnly") && cookie.contains("SameSite=Strict"), "{cookie}");
        assert!(!cookie.contains(&client.token));
        let pair = cookie.split(';').next().expect("a pair");
        let cookie = format!("Cookie: theme=dark; {pair}");
        assert_eq!(client.send("GET", "/api/run", &[&cookie], "").status, 200);

        // Not from another site, cookie or not; not under another name.
        let refused = client.send("GET", "/api/run", &[&cookie, "Origin: http://evil.example"], "");
        assert!(refused.status == 403 && refused.refusal().contains("another site"));
        assert_eq!(client.send("GET", "/api/run", &[&cookie, "Origin: null"], "").status, 403);
        assert_eq!(client.send("GET", "/api/run", &[&cookie, "Sec-Fetch-Site: cross-site"], "").status, 403);
        assert_eq!(client.send("GET", "/api/run", &[&cookie, "Sec-Fetch-Site: same-site"], "").status, 403);
        let own = format!("Origin: http://localhost:{}", client.port);
        assert_eq!(client.send("GET", "/api/run", &[&cookie, &own], "").status, 200);
        for host in ["evil.example", "127.0.0.1", "127.0.0.1:1", "localhost", "[::1]:80", ""] {
            let request = format!("GET /api/run HTTP/1.1\r\nHost: {host}\r\n{cookie}\r\nConnection: close\r\n\r\n");
            let answer = client.raw(request.as_bytes());
            assert!(answer.status == 421 && answer.refusal().contains("Host"), "{host}");
        }
        let none = format!("GET /api/run HTTP/1.1\r\n{cookie}\r\nConnection: close\r\n\r\n");
        assert_eq!(client.raw(none.as_bytes()).status, 421);
        let port = client.port;
        let two = format!(
            "GET /api/run HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nHost: evil\r\n{cookie}\r\nConnection: close\r\n\r\n"
        );
        assert_eq!(client.raw(two.as_bytes()).status, 400);
    });
}

#[test]
fn every_answer_carries_the_policy() {
    serve(&world(), |client| {
        let answers = [
            client.get("/"),
            client.get("/app.js"),
            client.get("/api/run"),
            client.get("/nothing"),
            client.send("GET", "/", &[], ""),
            client.raw(b"nonsense\r\n\r\n"),
        ];
        for answer in answers {
            for header in [
                "Content-Security-Policy: default-src 'none'; script-src 'self'; style-src 'self'",
                "X-Content-Type-Options: nosniff",
                "Referrer-Policy: no-referrer",
                "Cache-Control: no-store",
                "Cross-Origin-Resource-Policy: same-origin",
                "X-Frame-Options: DENY",
            ] {
                assert!(answer.head.contains(header), "{header} is not in {}", answer.head);
            }
            assert!(!answer.head.to_lowercase().contains("access-control-allow"));
        }
        // The page names nothing outside, and has nothing inline that the policy would have to allow.
        let page = client.get("/").body;
        assert!(!page.contains("http://") && !page.contains("https://") && !page.contains("style="));
        assert!(!page.contains("<script>") && !page.contains("onclick"));
    });
}

#[test]
fn hostile_requests_get_a_4xx_and_the_server_goes_on() {
    serve(&world(), |client| {
        let port = client.port;
        let host = format!("Host: 127.0.0.1:{port}\r\nAuthorization: Bearer {}\r\n", client.token);
        let cases: Vec<(Vec<u8>, u16)> = vec![
            (b"\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03\r\n\r\n".to_vec(), 400),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(), 400),
            (b"GET\r\n\r\n".to_vec(), 400),
            (b"GET / HTTP/1.1\r\nno colon\r\n\r\n".to_vec(), 400),
            (b"GET / HTTP/1.1\r\nA: \x00\r\n\r\n".to_vec(), 400),
            (format!("GET /%ff HTTP/1.1\r\n{host}\r\n").into_bytes(), 400),
            (format!("GET /?a=%zz HTTP/1.1\r\n{host}\r\n").into_bytes(), 400),
            (format!("GET http://x/ HTTP/1.1\r\n{host}\r\n").into_bytes(), 400),
            (format!("GET /{} HTTP/1.1\r\n{host}\r\n", "a".repeat(5_000)).into_bytes(), 414),
            (format!("GET /{} HTTP/1.1\r\n{host}\r\n", "a".repeat(1_000_000)).into_bytes(), 414),
            (format!("GET / HTTP/1.1\r\n{host}X: {}\r\n\r\n", "a".repeat(100_000)).into_bytes(), 431),
            (format!("GET / HTTP/1.1\r\n{host}{}\r\n", "X: y\r\n".repeat(100)).into_bytes(), 431),
            (format!("POST /api/new HTTP/1.1\r\n{host}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n").into_bytes(), 411),
            (format!("POST /api/new HTTP/1.1\r\n{host}Content-Length: 1e3\r\n\r\n").into_bytes(), 400),
            (format!("POST /api/new HTTP/1.1\r\n{host}Content-Length: 70000\r\n\r\n").into_bytes(), 413),
            (
                format!("POST /api/new HTTP/1.1\r\n{host}Content-Length: 20000000\r\n\r\n{}", "x".repeat(20_000_000))
                    .into_bytes(),
                413,
            ),
        ];
        for (bytes, status) in cases {
            let bytes =
                String::from_utf8_lossy(&bytes).replacen("\r\n\r\n", "\r\nConnection: close\r\n\r\n", 1).into_bytes();
            let answer = client.raw(&bytes);
            let begin: String = String::from_utf8_lossy(&bytes).chars().take(60).collect();
            assert_eq!(answer.status, status, "{begin}");
            assert!(!answer.refusal().is_empty());
        }
        for path in [
            "/../../etc/passwd",
            "/..%2f..%2fetc/passwd",
            "/%2e%2e/summary.json",
            "/run.dvim",
            "/summary.json",
            "//",
            "/api/patient/../run",
        ] {
            assert_eq!(client.get(path).status, 404, "{path}");
        }
        for method in ["DELETE", "PUT", "OPTIONS", "TRACE", "PATCH", "POST"] {
            let answer = client.send(method, "/api/run", &[&format!("Authorization: Bearer {}", client.token)], "");
            assert!(answer.status == 405 && answer.head.contains("Allow: GET"), "{method}");
        }
        assert_eq!(client.get("/api/new").status, 405);
        let head = client.send("HEAD", "/api/run", &[&format!("Authorization: Bearer {}", client.token)], "");
        assert!(head.status == 200 && head.body.is_empty());
    });
}

#[test]
fn senseless_questions_are_refused_with_the_reason() {
    serve(&world(), |client| {
        for (target, status, words) in [
            ("/api/patient/nobody", 404, "600 units"),
            ("/api/patient/", 404, "600 units"),
            ("/api/patient/1?k=0", 422, "from 2 to"),
            ("/api/patient/1?k=1", 422, "from 2 to"),
            ("/api/patient/1?k=100000", 422, "from 2 to"),
            ("/api/patient/1?k=-5", 422, "from 2 to"),
            ("/api/patient/1?k=NaN", 422, "whole number"),
            ("/api/patient/1?k=20.5", 422, "whole number"),
            ("/api/patient/1?h=-1", 422, "at most 800"),
            ("/api/patient/1?h=0", 422, "at most 800"),
            ("/api/patient/1?h=800.001", 422, "dvim fit"),
            ("/api/patient/1?h=NaN", 422, "at most 800"),
            ("/api/patient/1?h=inf", 422, "at most 800"),
            ("/api/patient/1?h=later", 422, "at most 800"),
            ("/api/patient/1?w=9", 422, "280"),
            ("/api/patient/1?w=NaN", 422, "280"),
            ("/api/patient/1?group=both", 422, "cure-treated"),
            ("/api/patient/1?size=3", 400, "`size`"),
            ("/api/patient/1?k=20&k=30", 400, "twice"),
            ("/api/patients?limit=0", 422, "from 1 to 200"),
            ("/api/patients?limit=1000000", 422, "from 1 to 200"),
            ("/api/patients?offset=-1", 400, "whole number"),
            ("/api/patients?sort=beauty", 422, "beauty"),
            ("/api/patients?desc=maybe", 422, "0 or 1"),
            ("/api/patients?show=everyone", 422, "everyone"),
            ("/api/patients?q=x1%3E%3Dold", 422, "old"),
            ("/api/patients?q=y%3D1", 422, "no column `y`"),
            ("/api/patients?q=%22open", 422, "quotation"),
        ] {
            let answer = client.get(target);
            assert_eq!(answer.status, status, "{target}: {}", answer.body);
            assert!(answer.refusal().contains(words), "{target}: {}", answer.body);
        }
        let whole: String = (1..=20).map(|j| format!("\"x{j}\": 0.5,")).collect::<String>();
        let whole = whole.trim_end_matches(',');
        for (body, status, words) in [
            ("", 400, "JSON"),
            ("{", 400, "JSON"),
            ("[]", 400, "JSON"),
            ("{}", 400, "`values`"),
            ("{\"values\": 3}", 400, "`values`"),
            ("{\"values\": {}}", 422, "x1: 1 missing value"),
            (&format!("{{\"values\": {{{whole}}}, \"path\": \"/etc\"}}"), 400, "`path`"),
            (&format!("{{\"values\": {{{whole}, \"y\": 1}}}}"), 422, "`y`"),
            (&format!("{{\"values\": {{{whole}}}, \"k\": 0}}"), 422, "from 2 to"),
            (&format!("{{\"values\": {{{whole}}}, \"h\": -3}}"), 422, "at most 800"),
            (&format!("{{\"values\": {{{}}}}}", whole.replacen("0.5", "\"NaN\"", 1)), 422, "not a number"),
            (&format!("{{\"values\": {{{}}}}}", whole.replacen("0.5", "\"inf\"", 1)), 422, "infinite"),
            (&format!("{{\"values\": {{{}}}}}", whole.replacen("0.5", "\"old\"", 1)), 422, "not a number"),
            (&format!("{{\"values\": {{{}}}}}", whole.replacen("0.5", "1e300", 1)), 422, "beyond"),
            (&format!("{{\"values\": {{{}}}}}", whole.replacen("0.5", "{}", 1)), 422, "number or a text"),
            (&"[".repeat(60_000), 400, "JSON"),
        ] {
            let answer = client.post("/api/new", body);
            let begin: String = body.chars().take(60).collect();
            assert_eq!(answer.status, status, "{begin}: {}", answer.body);
            assert!(answer.refusal().contains(words), "{begin}: {}", answer.body);
        }
        let plain = client.send(
            "POST",
            "/api/new",
            &[&format!("Authorization: Bearer {}", client.token), "Content-Type: text/plain"],
            "{}",
        );
        assert_eq!(plain.status, 415);
        assert_eq!(client.post("/api/new", &format!("{{\"values\": {{{whole}}}}}")).status, 200);
    });
}

/// Before, idle connections held their places for a minute, and the user's was turned away with 503.
#[test]
fn idle_connections_do_not_lock_the_user_out() {
    serve(&world(), |client| {
        let get = format!(
            "GET /api/run HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\n\r\n",
            client.port, client.token
        );
        // A page that was open before keeps its connection.
        let mut open = client.connect();
        let answered = |stream: &mut TcpStream| {
            stream.write_all(get.as_bytes()).expect("an open connection");
            let mut first = [0; 15];
            stream.read_exact(&mut first).expect("an answer");
            assert_eq!(&first, b"HTTP/1.1 200 OK");
            let mut rest = vec![0; 1 << 20];
            stream.set_read_timeout(Some(Duration::from_millis(300))).expect("a socket");
            while stream.read(&mut rest).is_ok_and(|n| n > 0) {}
            stream.set_read_timeout(Some(Duration::from_secs(30))).expect("a socket");
        };
        answered(&mut open);
        // Some send nothing, some half of a request.
        let idle: Vec<TcpStream> = (0..350)
            .map(|i| {
                let mut stream = client.connect();
                let _ = stream.write_all(if i % 2 == 0 { b"" } else { b"GET / HT" });
                stream
            })
            .collect();
        for _ in 0..5 {
            assert_eq!(client.get("/api/run").status, 200);
        }
        answered(&mut open);
        drop(idle);
    });
}

#[test]
fn two_hundred_at_once_are_served() {
    serve(&world(), |client| {
        let expected = client.get("/api/patient/7?k=30&w=500&group=time-control");
        assert_eq!(expected.status, 200);
        let ready = std::sync::Barrier::new(200);
        std::thread::scope(|scope| {
            let asked: Vec<_> = (0..200)
                .map(|_| {
                    scope.spawn(|| {
                        ready.wait();
                        client.get("/api/patient/7?k=30&w=500&group=time-control")
                    })
                })
                .collect();
            for answer in asked {
                let answer = answer.join().expect("no panic");
                assert!(answer.status == 200 && answer.body == expected.body);
            }
        });
    });
}

#[test]
fn one_connection_serves_many_requests_and_a_silent_one_disturbs_nobody() {
    serve(&world(), |client| {
        let mut silent = client.connect();
        silent.write_all(b"GET / HT").expect("a byte or two");
        let mut stream = client.connect();
        let host = format!("Host: 127.0.0.1:{}\r\nAuthorization: Bearer {}\r\n", client.port, client.token);
        let one = format!("GET /api/patient/1 HTTP/1.1\r\n{host}\r\n");
        let last = format!("GET /api/patient/1 HTTP/1.1\r\n{host}Connection: close\r\n\r\n");
        stream.write_all(format!("{one}{one}{last}").as_bytes()).expect("three requests at once");
        let mut text = String::new();
        stream.read_to_string(&mut text).expect("three answers");
        assert_eq!(text.matches("HTTP/1.1 200 OK").count(), 3);
    });
}

#[test]
fn a_slow_request_is_given_up() {
    serve(&world(), |client| {
        let mut slow = client.connect();
        slow.write_all(b"GET / HTTP/1.1\r\nA: ").expect("a beginning");
        let answer = read(&mut slow);
        assert!(answer.status == 408 && answer.refusal().contains("10 seconds"));
    });
}

#[test]
fn the_table_is_searched_sorted_and_paged() {
    let world = world();
    serve(&world, |client| {
        let ids = |answer: &Value| -> Vec<String> {
            answer["rows"].as_array().expect("rows").iter().map(|r| r["id"].as_str().expect("an id").into()).collect()
        };
        let all = client.ok("/api/patients?show=all&limit=200");
        assert_eq!((all["n"].as_u64(), ids(&all).len()), (Some(600), 200));
        assert_eq!(ids(&client.ok("/api/patients?show=all&offset=598")), ["599", "600"]);
        assert_eq!(client.ok("/api/patients")["n"].as_u64(), Some(world.analysis.units.len() as u64));
        // An id that is met exactly comes first; others that hold it follow.
        let found = ids(&client.ok("/api/patients?show=all&q=55"));
        assert_eq!(found[0], "55");
        assert!(found.len() > 1 && found.iter().all(|id| id.contains("55")));
        let sorted = client.ok("/api/patients?sort=cure_effect&desc=1&limit=200");
        let cure: Vec<f64> = sorted["rows"]
            .as_array()
            .expect("rows")
            .iter()
            .map(|r| r["cure"][0].as_f64().expect("an effect"))
            .collect();
        assert!(cure.is_sorted_by(|a, b| a >= b) && cure[0] > cure[199]);
        let most = world.analysis.effects.iter().map(|e| e.cure()).fold(f64::MIN, f64::max);
        assert_eq!(cure[0], most);
        let some = client.ok("/api/patients?show=all&q=x1%3D1+x15%3E0.5&limit=200&sort=x15");
        let expected =
            (0..600).filter(|&i| world.cohort.covariates(i)[0] == 1.0 && world.cohort.covariates(i)[14] > 0.5);
        assert_eq!(some["n"].as_u64(), Some(expected.count() as u64));
        let plane = client.ok("/api/plane?q=x1%3D1");
        let n = plane["points"].as_array().expect("points").len() as u64;
        assert!(n > 50 && plane["n"].as_u64() == Some(n));
    });
}

#[test]
fn weights_hospitals_late_entries_and_other_causes_are_followed() {
    let world = further_world();
    let (cohort, analysis) = (&world.cohort, &world.analysis);
    serve(&world, |client| {
        let run = client.ok("/api/run");
        assert_eq!(run["n_units"].as_u64(), Some(600), "{run}");
        for (&unit, effect) in analysis.units.iter().zip(&analysis.effects).step_by(37) {
            let id = cohort.ids().text(unit as usize);
            let answer = client.ok(&format!("/api/patient/{id}?w=500&group=cure-treated"));
            // The numbers of the run to the last bit, which are weighted and of the cause of interest.
            assert_eq!(answer["effect"]["cure_effect"].as_f64(), Some(effect.cure()));
            assert_eq!(answer["effect"]["time_effect"].as_f64(), effect.time());
            assert_eq!(answer["as_run"], true);
            for member in answer["members"]["members"].as_array().expect("members") {
                let i = cohort.unit(member["id"].as_str().expect("an id")).expect("a unit");
                let o = cohort.outcome(i);
                let words = match () {
                    () if o.time >= 800.0 => "event-free",
                    () if o.event => "event",
                    () if o.competing => "other cause",
                    () => "censored",
                };
                assert_eq!(member["outcome"], words, "{member}");
            }
            // Who had another event after an earlier horizon was event-free at it.
            let early = client.ok(&format!("/api/patient/{id}?k=60&h=100&group=time-control"));
            for member in early["members"]["members"].as_array().expect("members") {
                let i = cohort.unit(member["id"].as_str().expect("an id")).expect("a unit");
                assert_eq!(member["outcome"] == "event-free", cohort.time(i) >= 100.0);
            }
        }
        // A new patient with the values of one of the run is answered like that one.
        let unit = analysis.units[5] as usize;
        let values: Vec<String> =
            cohort.covariates(unit).iter().enumerate().map(|(j, x)| format!("\"x{}\": {x}", j + 1)).collect();
        let answer = client.post("/api/new", &format!("{{\"values\": {{{}}}}}", values.join(",")));
        assert_eq!(answer.status, 200, "{}", answer.body);
        assert_eq!(answer.json()["effect"]["cure_effect"].as_f64(), Some(analysis.effects[5].cure()));
        let words = client.ok("/api/patients?show=all&limit=200&sort=time").to_string();
        assert!(words.contains("other cause"), "the table says so too");
    });
}

#[test]
fn new_patients_of_an_adjusted_run_are_corrected_as_predict_does() {
    let estimator = Estimator::Adjusted(AdjustedOptions { splits: Some(3), ..AdjustedOptions::default() });
    let cohort = simulate(Scenario::BothOverlap, 600, false, 3).cohort;
    let world = of(cohort, &Options { estimator, ..Options::default() });
    let (cohort, fit) = (&world.cohort, &world.analysis.fit);
    serve(&world, |client| {
        for i in [0, 3, 17] {
            let mut x = cohort.covariates(i).to_vec();
            x[12] += 0.25;
            let predicted = fit.estimate_under_constraints(cohort, &x, &[None], &Unwatched).expect("a prediction");
            let expected = predicted[0].as_ref().expect("served");
            let values: Vec<String> = x.iter().enumerate().map(|(j, x)| format!("\"x{}\": {x}", j + 1)).collect();
            let ask = |more: &str| {
                let answer = client.post("/api/new", &format!("{{\"values\": {{{}}}{more}}}", values.join(",")));
                assert_eq!(answer.status, 200, "{}", answer.body);
                answer.json()
            };
            let own = ask("");
            assert_eq!(own["effect"]["cure_effect"].as_f64(), Some(expected.cure()));
            assert_eq!(own["effect"]["time_effect"].as_f64(), expected.time());
            assert_eq!(own["correction"]["cure_corrected"].as_f64(), Some(expected.cure()));
            assert_ne!(own["correction"]["cure_matched"], own["correction"]["cure_corrected"]);
            assert!(own["notes"].to_string().contains("all models"));
            // Groups of another size are corrected by the same models.
            let moved = ask(", \"k\": 40");
            assert_eq!(moved["effect"]["cure_effect"], moved["correction"]["cure_corrected"]);
            assert_ne!(moved["correction"]["cure_corrected"], own["correction"]["cure_corrected"]);
            // An earlier horizon is read off the same corrected curve.
            let moved = ask(", \"h\": 600");
            assert_eq!(moved["effect"]["cure_effect"], moved["correction"]["cure_corrected"]);
            assert_ne!(moved["correction"]["cure_corrected"], own["correction"]["cure_corrected"]);
            assert!(!moved["notes"].to_string().contains("groups alone"));
        }
        // A patient of the cohort has the numbers of the run.
        let patient = client.ok("/api/patient/4");
        assert_eq!(patient["effect"]["cure_effect"].as_f64(), Some(world.analysis.effects[3].cure()));
        // And a correction at another size, too.
        let moved = client.ok("/api/patient/4?k=40");
        assert_ne!(moved["effect"]["cure_effect"], patient["effect"]["cure_effect"]);
        assert_eq!(moved["effect"]["cure_effect"], moved["correction"]["cure_corrected"]);
        let moved = client.ok("/api/patient/4?h=600");
        assert_eq!(moved["effect"]["cure_effect"], moved["correction"]["cure_corrected"]);
    });
}
