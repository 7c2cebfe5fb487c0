//! What is estimated, in the five parts of ICH E9(R1).

use super::Builder;
use crate::record::Summary;
use crate::text::{decimals_between, grouped, percent, signed_fixed};
use dvim::internal::cohort::Arm;

pub(super) fn section(b: &mut Builder, s: &Summary) {
    let names = b.look.names.clone();
    b.section("estimand", "What is estimated");
    let (treated, control) = (names.arm(Arm::Treated), names.arm(Arm::Control));
    let n = s.counts.treated.n_units + s.counts.control.n_units;
    let row = |name: &str, words: String| vec![name.to_string(), words];
    let population = names.patients().map_or("the patients of the table".to_string(), str::to_string);
    let asked = &s.roles.asked;
    let mut intercurrent = vec![match &asked.cause {
        Some(_) => format!(
            "Events of other causes compete with {}: they end follow-up for it and count as {} (cumulative incidence; not as lost).",
            names.event(),
            names.free()
        ),
        None => {
            "None is told apart in the table: an event counts whatever happened before it (treatment policy).".into()
        }
    }];
    intercurrent.push(
        "Loss to follow-up is no intercurrent event: it is taken to depend on covariates and treatment alone.".into(),
    );
    let stratum = s.audit.as_ref().and_then(|a| {
        let x = &a.sensitivity;
        let ([low, high], share) = (x.always_uncured?, x.always_uncured_share?);
        let d = decimals_between(low, high);
        Some(format!(
            "Time to {} is compared between patients who have it with one treatment and those who have it with the other. In the principal stratum of those who would have it with either ({} of all, if treatment changes whether in one direction only) the difference lies between {} and {}.",
            names.event(),
            percent(share),
            signed_fixed(low, d),
            names.time(&signed_fixed(high, d))
        ))
    });
    intercurrent.extend(stratum);
    let rows = vec![
        row("Population", format!("{population} ({} patients); averages are over all of them", grouped(n))),
        row("Treatments", format!("{treated} against {control}, as given at the start of follow-up")),
        row("Endpoint", format!("{}, counted from the start of follow-up {}", names.event(), names.up_to())),
        row("Intercurrent events", intercurrent.join(" ")),
        row(
            "Summary measures",
            format!(
                "Whether: the difference in the probability of being {}. When: the mean difference in time to {} among those who have it {}. Both are adjusted for the covariates.",
                names.state(),
                names.event(),
                names.within()
            ),
        ),
    ];
    b.table("The estimand, in the attributes of ICH E9(R1).", &["Attribute", "Here"], rows, &[1]);
}
