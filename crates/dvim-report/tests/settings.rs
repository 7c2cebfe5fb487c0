//! The engine's types and the records of a run say the same as the list of settings.

use dvim::internal::cohort::{Labels, Roles, ZeroTime};
use dvim::internal::compare::cox::Ties;
use dvim::internal::joint::Family;
use dvim::internal::metric::{MetricChoice, Scale};
use dvim::internal::options::{AdjustedOptions, Estimator, Learners, Options};
use dvim::internal::schema::Missing;
use dvim::internal::setting::{Setting, Topic};
use dvim::internal::simulate::{Scenario, simulate};
use dvim_report::record::{OptionsRecord, RolesRecord};
use dvim_report::spell::argument;
use serde_json::Value;
use std::collections::BTreeSet;

fn words(setting: Setting) -> Vec<&'static str> {
    setting.words().iter().map(|(word, _)| *word).collect()
}

#[test]
fn words_are_those_of_the_engine() {
    assert_eq!(words(Setting::Missing), Missing::ALL.map(Missing::name));
    assert_eq!(words(Setting::ZeroTime), ZeroTime::ALL.map(ZeroTime::name));
    assert_eq!(words(Setting::Metric), MetricChoice::ALL.map(MetricChoice::name));
    assert_eq!(words(Setting::Scale), Scale::ALL.map(Scale::name));
    assert_eq!(words(Setting::Ties), Ties::ALL.map(Ties::name));
    assert_eq!(words(Setting::Learners), Learners::ALL.map(Learners::name));
    let estimators = [Estimator::Adjusted(AdjustedOptions::default()), Estimator::Paper];
    assert_eq!(words(Setting::Estimator), estimators.each_ref().map(Estimator::name));
    let families = Family::ALL.into_iter().chain([Family::GeneralisedGamma(0)]);
    let named: Vec<Option<Family>> = words(Setting::Latency)[1..].iter().map(|word| Family::named(word)).collect();
    assert_eq!(named, families.map(Some).collect::<Vec<_>>());
    assert_eq!(Family::named(words(Setting::Latency)[0]), None);
}

#[test]
fn defaults_are_those_of_the_engine() {
    let record = serde_json::to_value(OptionsRecord::from(&Options::default())).expect("a record");
    let adjusted = AdjustedOptions::default();
    for setting in Setting::ALL.iter().filter(|s| s.topic() == Topic::Method) {
        let Some(usual) = setting.default() else { continue };
        match setting {
            Setting::Folds => assert_eq!(usual, adjusted.folds.to_string()),
            Setting::Latency => assert!(usual == "auto" && adjusted.family.is_none()),
            Setting::Learners => assert_eq!(usual, adjusted.learners.name()),
            Setting::Penalty => assert!(usual == "prior" && adjusted.elastic_net.is_none()),
            // The command reproduces the paper; as a library the engine follows R.
            Setting::Ties => assert_eq!(usual, "breslow"),
            _ => {
                let field = &record[argument(*setting)];
                let said = field.as_str().map_or_else(|| field.to_string(), str::to_string);
                assert_eq!(usual, said, "{}", setting.name());
            }
        }
    }
    assert_eq!(Setting::Missing.default(), Some(Missing::default().name()));
    assert_eq!(Setting::ZeroTime.default(), Some(ZeroTime::default().name()));
}

fn keys(record: &Value) -> BTreeSet<String> {
    record.as_object().expect("an object").keys().cloned().collect()
}

/// The settings that a field of a record holds.
fn settings_of(field: &str) -> Vec<Setting> {
    match field {
        "dates" => vec![Setting::Start, Setting::End],
        "filters" => vec![Setting::Where],
        "calipers" => vec![Setting::Caliper],
        "elastic_net" => vec![Setting::Penalty],
        name => Setting::named(&name.replace('_', "-")).into_iter().collect(),
    }
}

#[test]
fn records_hold_every_role() {
    let cohort = simulate(Scenario::BothOverlap, 50, false, 1).cohort;
    let some = || Some("x".to_string());
    let roles = Roles {
        weights: some(),
        cluster: some(),
        entry: some(),
        cause: some(),
        allow: vec!["x".into()],
        censor: true,
        labels: Labels { event: some(), ..Labels::default() },
        ..Roles::default()
    };
    let record = RolesRecord::of(&roles, None, &cohort);
    let json = serde_json::to_value(&record).expect("a record");
    let mut held: BTreeSet<Setting> = keys(&json).iter().flat_map(|k| settings_of(k)).collect();
    for field in keys(&json["asked"]) {
        let settings = settings_of(&field);
        assert!(!settings.is_empty(), "`{field}` is no setting");
        held.extend(settings);
    }
    for setting in Setting::ALL.iter().filter(|s| s.topic() == Topic::Columns) {
        // The horizon stands beside the roles in a summary; data sets are numbered before there are roles.
        let elsewhere = [Setting::Horizon, Setting::Imputation].contains(setting);
        assert_eq!(held.contains(setting), !elsewhere, "{}", setting.name());
    }
    let again: RolesRecord = serde_json::from_value(json).expect("the same record");
    assert_eq!(again, record);
    assert_eq!(again.roles(7.0), Roles { horizon: 7.0, ..roles });
}

#[test]
fn records_hold_every_option() {
    let adjusted = AdjustedOptions { elastic_net: Some(0.5), ..AdjustedOptions::default() };
    let options = Options { estimator: Estimator::Adjusted(adjusted), ..Options::default() };
    let json = serde_json::to_value(OptionsRecord::from(&options)).expect("a record");
    let mut fields = keys(&json);
    assert!(fields.remove("adjusted"));
    let mut nested = keys(&json["adjusted"]);
    // How many splits each deal has follows from splits and folds.
    assert!(nested.remove("deals"));
    let mut held = BTreeSet::new();
    for field in fields.iter().chain(&nested) {
        let settings = settings_of(field);
        assert!(!settings.is_empty(), "`{field}` is no setting");
        held.extend(settings);
    }
    for setting in Setting::ALL.iter().filter(|s| s.topic() == Topic::Method) {
        assert_eq!(held.contains(setting), *setting != Setting::Ties, "{}", setting.name());
    }
}
