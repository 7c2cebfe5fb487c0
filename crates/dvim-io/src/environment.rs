//! What the environment of the process asks for.

use dvim::internal::error::{Error, Problem, ProblemKind};
use dvim::internal::processor::{InstructionSet, use_at_most};

/// Names the widest instructions that may be used: `portable`, `avx2` or `avx512`.
const INSTRUCTIONS: &str = "DVIM_ISA";

/// Holds the engine to the instructions that `DVIM_ISA` names. Results do not depend on it.
pub fn use_instructions() -> Result<(), Error> {
    match std::env::var(INSTRUCTIONS) {
        Ok(name) => named(&name).map(use_at_most),
        Err(_) => Ok(()),
    }
}

fn named(name: &str) -> Result<InstructionSet, Error> {
    let there: Vec<InstructionSet> = InstructionSet::ALL.into_iter().filter(|s| s.is_available()).collect();
    there.iter().copied().find(|s| s.name() == name).ok_or_else(|| {
        let names: Vec<&str> = there.iter().map(|s| s.name()).collect();
        Error::Refused(vec![Problem::error(
            ProblemKind::BadOption,
            format!("{INSTRUCTIONS} is `{name}`"),
            format!("it names instructions that this processor has: {}", names.join(", ")),
            format!("leave {INSTRUCTIONS} out to use the widest; results are the same"),
        )])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_have_names() {
        assert_eq!(named("portable"), Ok(InstructionSet::Portable));
        for set in InstructionSet::ALL {
            assert_eq!(named(set.name()).is_ok(), set.is_available());
        }
        assert!(named("sse9").is_err() && named("").is_err());
    }
}
