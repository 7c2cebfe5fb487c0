//! The two arms, and a value for each.

use std::ops::{Index, IndexMut};

/// Which treatment a unit received.
///
/// ```
/// use dvim::Arm;
///
/// assert_eq!(Arm::BOTH.map(Arm::name), ["control", "treated"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Arm {
    /// Not treated.
    Control,
    /// Treated.
    Treated,
}

impl Arm {
    /// Both arms, control first.
    pub const BOTH: [Arm; 2] = [Arm::Control, Arm::Treated];

    /// 0 for control, 1 for treated: the order in which files keep the arms.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The word for this arm in files and messages: "control" or "treated".
    pub fn name(self) -> &'static str {
        match self {
            Arm::Control => "control",
            Arm::Treated => "treated",
        }
    }

    /// The arm that this one is compared with.
    pub fn other(self) -> Arm {
        match self {
            Arm::Control => Arm::Treated,
            Arm::Treated => Arm::Control,
        }
    }
}

/// A value for each arm.
///
/// ```
/// use dvim::{Arm, ByArm};
///
/// let events = ByArm { control: 12, treated: 7 };
/// assert_eq!(events[Arm::Treated], 7);
/// assert_eq!(events.map(|n| n * 2), ByArm::of(|arm| 2 * events[arm]));
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByArm<T> {
    /// The value for the control arm.
    pub control: T,
    /// The value for the treated arm.
    pub treated: T,
}

crate::estimand::pair!(ByArm, Arm, control: Control, treated: Treated);
