//! `dvim design`: the power of a study that is still planned.

use super::{refuse_same, use_threads};
use crate::args::DesignArgs;
use crate::progress::Lines;
use crate::{Failure, print, print_data, say};
use dvim_io::atomic::{Access, NewFile};
use dvim_io::journal::{Journal, JournalError};
use dvim_study::design::analysis::Found;
use dvim_study::design::sources::prepare;
use dvim_study::design::{Asked, Design, Memory, Power, page, text};
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::path::Path;

pub fn run(args: &DesignArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    let plan = |path: &Path| NewFile::plan(path, args.force, Access::Usual, &[]);
    let html = args.output.as_deref().map(plan).transpose()?;
    let settings = args.save_settings.as_deref().map(plan).transpose()?;
    refuse_same([&html, &settings], ["--output", "--save-settings"])?;
    let prepared = prepare(given(args)).map_err(|e| Failure::Input(e.spelled(|option| format!("--{option}"))))?;
    let design = &prepared.design;
    if let (Some(file), Some(name)) = (settings, &args.save_settings) {
        file.write(|out| out.write_all(design.to_toml().as_bytes()))?;
        say(&format!("written to {}", name.display()));
    }
    let mut kept = Kept::open(args.journal.as_deref(), design)?;
    let lines = Lines::new();
    let found = Power::of(design, prepared.patients.as_deref(), &mut kept, &lines)?;
    if let Some(e) = kept.failed {
        return Err(e.into());
    }
    let seconds = lines.seconds();
    if let (Some(file), Some(name)) = (html, &args.output) {
        file.write(|out| out.write_all(page::html(&found).as_bytes()))?;
        say(&format!("written to {}", name.display()));
    }
    if args.json {
        let mut text = serde_json::to_string_pretty(&found).map_err(|e| Failure::Other(format!("error: {e}")))?;
        text.push('\n');
        print_data(text.as_bytes())?;
    } else {
        print(&text::text(&found))?;
    }
    say(&format!("{} trials in {seconds:.1} s", found.rows.iter().map(|r| r.trials).sum::<usize>()));
    Ok(())
}

/// What was given, by name.
fn given(args: &DesignArgs) -> Map<String, Value> {
    let parts = [
        serde_json::to_value(&args.arms),
        serde_json::to_value(&args.patients),
        serde_json::to_value(&args.follow_up),
        serde_json::to_value(&args.tests),
        serde_json::to_value(serde_json::json!({
            "horizon": args.horizon, "seed": args.seed, "settings": args.settings,
        })),
    ];
    let mut out = Map::new();
    for part in parts {
        if let Ok(Value::Object(part)) = part {
            out.extend(part);
        }
    }
    out
}

type Key = (bool, usize, usize);

/// What the estimator found before, and a journal for what it finds now.
#[derive(Default)]
struct Kept {
    known: BTreeMap<Key, Found>,
    journal: Option<Journal>,
    failed: Option<std::io::Error>,
}

impl Kept {
    /// Opens the journal: it belongs to designs that differ in nothing that decides what a trial is.
    fn open(path: Option<&Path>, design: &Design) -> Result<Kept, Failure> {
        let Some(path) = path else { return Ok(Kept::default()) };
        let none = Design { sizes: vec![0], ..design.clone() };
        let asked = Asked {
            sizes: None,
            alpha: None,
            multiplicity: None,
            power: None,
            precision: None,
            most_trials: None,
            more_time: None,
            more_patients: None,
            ..none.asked()
        };
        let line = serde_json::to_string(&serde_json::json!({ "dvim": env!("CARGO_PKG_VERSION"), "design": asked }))
            .map_err(|e| Failure::Other(format!("error: {e}")))?;
        let place = path.display();
        let (journal, lines) = Journal::open(path, &line).map_err(|e| match e {
            JournalError::OtherSettings { .. } => Failure::Input(format!(
                "error: `{place}` holds trials of another design\n  rule:   trials of one journal differ in their size and number alone\n  remedy: use the same settings to go on with it, or another file with --journal"
            )),
            JournalError::InUse(_) => Failure::Input(format!(
                "error: `{place}` is in use by another process\n  rule:   one process at a time adds to a journal\n  remedy: wait for it, or use another file with --journal"
            )),
            JournalError::Io(path, e) => Failure::Other(format!("error: `{}`: {e}", path.display())),
        })?;
        let known = lines.iter().filter_map(|line| serde_json::from_str::<(Key, Found)>(line).ok()).collect();
        Ok(Kept { known, journal: Some(journal), failed: None })
    }
}

impl Memory for Kept {
    fn known(&self, key: Key) -> Option<Found> {
        self.known.get(&key).copied()
    }

    fn keep(&mut self, key: Key, found: &Found) {
        if let (Some(journal), None) = (&mut self.journal, &self.failed) {
            let line = serde_json::to_string(&(key, found)).expect("numbers");
            self.failed = journal.append(&line).err();
        }
    }
}
