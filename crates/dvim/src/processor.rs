//! Which instructions of the processor are used. All of them give the same bits, so that a choice changes the time
//! that a run takes and nothing else; tests and users can hold the engine to the plainer ones.

use std::sync::atomic::{AtomicU8, Ordering::Relaxed};

/// A set of instructions, the plainest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum InstructionSet {
    /// What every processor of its kind has.
    Portable,
    /// Registers of 256 bits with fused multiplication: x86-64 since about 2013.
    Avx2,
    /// Registers of 512 bits.
    Avx512,
}

impl InstructionSet {
    /// Every set.
    pub const ALL: [InstructionSet; 3] = [InstructionSet::Portable, InstructionSet::Avx2, InstructionSet::Avx512];

    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            InstructionSet::Portable => "portable",
            InstructionSet::Avx2 => "avx2",
            InstructionSet::Avx512 => "avx512",
        }
    }

    /// Whether this processor has it and this program was compiled with it.
    pub fn is_available(self) -> bool {
        match self {
            InstructionSet::Portable => true,
            // Processors with AVX2 have the others; a virtual machine may hide them.
            #[cfg(target_arch = "x86_64")]
            InstructionSet::Avx2 => {
                is_x86_feature_detected!("avx2")
                    && is_x86_feature_detected!("fma")
                    && is_x86_feature_detected!("popcnt")
                    && is_x86_feature_detected!("bmi1")
                    && is_x86_feature_detected!("bmi2")
                    && is_x86_feature_detected!("lzcnt")
            }
            #[cfg(avx512)]
            InstructionSet::Avx512 => InstructionSet::Avx2.is_available() && is_x86_feature_detected!("avx512f"),
            #[allow(unreachable_patterns, reason = "other processors and older compilers have fewer")]
            _ => false,
        }
    }
}

/// The widest set that may be used. This is the only state of the engine, and no result depends on it.
static WIDEST: AtomicU8 = AtomicU8::new(InstructionSet::Avx512 as u8);

/// Uses no wider set than this one from now on, in the whole process.
pub fn use_at_most(set: InstructionSet) {
    WIDEST.store(set as u8, Relaxed);
}

/// Whether a set is there and may be used.
#[inline]
pub(crate) fn may_use(set: InstructionSet) -> bool {
    WIDEST.load(Relaxed) >= set as u8 && set.is_available()
}
