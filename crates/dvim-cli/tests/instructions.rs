//! The same bits with every set of instructions that this processor has, under both estimators.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn dvim(folder: &Path, set: Option<&str>, words: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dvim"));
    command.args(words.split_whitespace()).current_dir(folder).env_remove("DVIM_ISA");
    set.map(|set| command.env("DVIM_ISA", set));
    command.output().expect("dvim runs")
}

#[test]
fn every_set_of_instructions_gives_the_same_bits() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path();
    let good = |set: Option<&str>, words: &str| {
        let done = dvim(folder, set, words);
        assert!(done.status.success(), "{set:?} {words}: {}", String::from_utf8_lossy(&done.stderr));
    };
    good(None, "simulate --scenario both-overlap --n 900 --seed 4 -o cohort.csv");
    let roles = "--time time --event event --treatment treatment --horizon 800";
    let fits = [("paper", "--estimator paper -k 20"), ("adjusted", "--splits 4 --folds 2")];
    let wrong = dvim(folder, Some("sse9"), &format!("check cohort.csv {roles}"));
    let said = String::from_utf8_lossy(&wrong.stderr).into_owned();
    assert_eq!(wrong.status.code(), Some(2), "{said}");
    assert!(said.contains("DVIM_ISA is `sse9`") && said.contains("portable"), "{said}");
    // The message names the sets that there are.
    let sets: Vec<&str> = ["portable", "avx2", "avx512"].into_iter().filter(|s| said.contains(s)).collect();
    assert!(sets.contains(&"portable"));
    for (name, flags) in fits {
        good(None, &format!("fit cohort.csv {roles} {flags} -o {name}"));
        for set in &sets {
            let run = format!("{name}-{set}");
            good(Some(set), &format!("fit cohort.csv {roles} {flags} -o {run}"));
            for file in ["effects.csv", "weights.csv", "summary.json", "run.dvim"] {
                let read = |run: &str| fs::read(folder.join(run).join(file)).expect("a file");
                assert!(read(name) == read(&run), "{file} of {name} differs with {set}");
            }
        }
    }
}
