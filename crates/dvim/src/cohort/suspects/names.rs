//! What the name of a column says: an identifier, an outcome, a thing that is measured after treatment.

use super::outcome::{correlation, ranks};
use super::{Finding, Kind, Looked, Seen};

/// Words of identifiers.
const IDENTIFIERS: [&str; 24] = [
    "id", "ids", "pid", "patid", "uid", "usubjid", "subjid", "subject", "patient", "mrn", "record", "row", "rownames",
    "rownum", "rowid", "index", "idx", "case", "caseid", "nr", "no", "number", "seq", "unnamed",
];

/// Words of outcomes. A word that ends in `*` is a beginning.
const OUTCOMES: [&str; 31] = [
    "death*",
    "dead",
    "died",
    "deceased",
    "mortality",
    "relaps*",
    "recur*",
    "progressed",
    "progression",
    "censor*",
    "cens",
    "vital",
    "fustat",
    "futime",
    "survival",
    "surv",
    "survtime",
    "os",
    "pfs",
    "dfs",
    "rfs",
    "efs",
    "ttp",
    "ttr",
    "dod",
    "lastcontact",
    "lfu",
    "alive",
    "status",
    "event",
    "outcome",
];

/// Words of things that are measured after treatment began.
const AFTER: [&str; 24] = [
    "followup",
    "follow",
    "fup",
    "discharge*",
    "response",
    "responder",
    "tox*",
    "adverse",
    "ae",
    "complication*",
    "readmi*",
    "los",
    "stay",
    "post",
    "postop*",
    "posttreatment",
    "after",
    "autopsy",
    "last",
    "final",
    "end",
    "endpoint",
    "compliance",
    "adherence",
];

/// Words that say that it was before.
const BEFORE: [&str; 26] = [
    "prior",
    "previous",
    "prev",
    "history",
    "hist",
    "hx",
    "family",
    "fam",
    "fh",
    "baseline",
    "base",
    "bl",
    "pre",
    "before",
    "past",
    "risk",
    "initial",
    "entry",
    "screening",
    "parent*",
    "mother",
    "father",
    "sibling",
    "first",
    "donor",
    "performance",
];

/// `status` and `event` after these are of something else.
const NOT_OUTCOMES: [&str; 22] = [
    "marital",
    "smoking",
    "menopausal",
    "menopause",
    "hormone",
    "receptor",
    "er",
    "pr",
    "her2",
    "nodal",
    "node",
    "insurance",
    "employment",
    "ecog",
    "who",
    "ps",
    "karnofsky",
    "mutation",
    "cmv",
    "hiv",
    "socioeconomic",
    "remission",
];

/// The words of a name: parts between signs, figures and changes from small to capital letters.
fn words(name: &str) -> Vec<String> {
    let mut out: Vec<String> = vec![String::new()];
    let mut last = ' ';
    for c in name.chars() {
        let is_new = !c.is_alphanumeric()
            || last.is_lowercase() && c.is_uppercase()
            || last.is_numeric() != c.is_numeric() && last.is_alphanumeric();
        if is_new && out.last().is_some_and(|w| !w.is_empty()) {
            out.push(String::new());
        }
        if c.is_alphanumeric() {
            out.last_mut().expect("there is always a word").extend(c.to_lowercase());
        }
        last = c;
    }
    out.retain(|w| !w.is_empty());
    out
}

fn is_in(word: &str, list: &[&str]) -> bool {
    list.iter().any(|w| match w.strip_suffix('*') {
        Some(begin) => word.starts_with(begin),
        None => word == *w,
    })
}

/// Whether a name is that of an identifier.
pub(super) fn is_identifier(name: &str) -> bool {
    let words = words(name);
    words.first().is_some_and(|w| is_in(w, &IDENTIFIERS)) && words.len() <= 3
        || words.last().is_some_and(|w| is_in(w, &["id", "ids", "mrn", "nr", "no"]))
}

/// What a name claims to be.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Claim {
    Outcome,
    After,
}

fn claim(name: &str) -> Option<Claim> {
    let words = words(name);
    let has = |list: &[&str]| words.iter().any(|w| is_in(w, list));
    if words.is_empty() || has(&BEFORE) || has(&NOT_OUTCOMES) {
        return None;
    }
    // Short words mean something only where they begin or end a name.
    let edge = [words.first(), words.last()].into_iter().flatten().any(|w| is_in(w, &OUTCOMES));
    let joined = words.concat();
    let whole = ["fustat", "futime", "vitalstatus", "lastcontact", "followup", "survtime", "timetodeath"];
    if edge || is_in(&joined, &whole) {
        return Some(Claim::Outcome);
    }
    has(&AFTER).then_some(Claim::After)
}

/// z of an association with the outcome from which on an outcome's name is believed.
const ASSOCIATED: f64 = 4.0;

/// An outcome's name on a column that goes with the outcome is plain; a name alone asks for a look.
pub(super) fn of_column(x: &Looked<'_>, seen: &Seen) -> Option<Finding> {
    let claim = claim(x.name)?;
    let known: Vec<usize> = (0..x.values.len()).filter(|&i| x.values[i].is_finite()).collect();
    let take = |f: &dyn Fn(usize) -> f64| ranks(&known.iter().map(|&i| f(i)).collect::<Vec<f64>>());
    let values = take(&|i| x.values[i]);
    let z = |f: &dyn Fn(usize) -> f64| {
        correlation(&values, &take(f)).map_or(0.0, |r| r.abs() * (known.len() as f64).sqrt())
    };
    let with_outcome = z(&|i| f64::from(u8::from(seen.event[i]))).max(z(&|i| seen.time[i]));
    let could_be_codes = x.is_number || !x.is_coded || known.len() >= super::FEWEST_ROWS;
    if claim == Claim::Outcome && could_be_codes && with_outcome >= ASSOCIATED {
        let words = format!("its name is that of an outcome, and it goes with the outcome (z = {with_outcome:.1})");
        return Some(Finding::plain(Kind::LeakedOutcome, words));
    }
    let what = if claim == Claim::Outcome { "an outcome" } else { "something that is measured after treatment began" };
    Some(Finding::look(Kind::AfterTreatment, format!("its name is that of {what}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_in_words() {
        assert_eq!(words("timeToRelapse_2"), ["time", "to", "relapse", "2"]);
        for name in ["death", "os_days", "OS.time", "vital_status", "relapse", "timeToRelapse", "status", "Recurrence"]
        {
            assert_eq!(claim(name), Some(Claim::Outcome), "{name}");
        }
        for name in ["discharge_alive_day", "post_op_ldh", "length_of_stay", "toxicity_grade", "ldh_followup"] {
            assert_eq!(claim(name), Some(Claim::After), "{name}");
        }
        for name in [
            "age",
            "prior_relapse",
            "smoking_status",
            "ER_status",
            "progesterone",
            "ecog",
            "family_history_of_death",
            "performance_status",
            "cost",
            "postcode_income",
        ] {
            assert_ne!(claim(name), Some(Claim::Outcome), "{name}");
        }
    }

    #[test]
    fn identifiers() {
        for name in ["id", "patient_no", "PID", "Subject", "record_id", "rownames", "mrn", "X_id"] {
            assert!(is_identifier(name), "{name}");
        }
        for name in ["age", "nodes", "grade", "number_of_positive_lymph_nodes", "ldh"] {
            assert!(!is_identifier(name), "{name}");
        }
    }
}
