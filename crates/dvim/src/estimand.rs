//! The two questions, and a value for each.

use std::ops::{Index, IndexMut};

/// One of the two questions: whether the event happens before the horizon, and when.
///
/// ```
/// use dvim::Estimand;
///
/// assert_eq!(Estimand::BOTH.map(Estimand::name), ["cure", "time"]);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Estimand {
    /// The probability of being event-free at the horizon, P(T ≥ H).
    Cure,
    /// The mean time of the events before the horizon, E[T | T < H].
    Time,
}

impl Estimand {
    /// Both estimands, cure first.
    pub const BOTH: [Estimand; 2] = [Estimand::Cure, Estimand::Time];

    /// 0 for cure, 1 for time: the order in which files keep the estimands.
    pub fn index(self) -> usize {
        self as usize
    }

    /// The word for this estimand in files and messages: "cure" or "time".
    pub fn name(self) -> &'static str {
        match self {
            Estimand::Cure => "cure",
            Estimand::Time => "time",
        }
    }

    /// The question that its effect answers, for a person.
    pub fn question(self) -> &'static str {
        match self {
            Estimand::Cure => "Whether",
            Estimand::Time => "When",
        }
    }

    /// The name of its effect in files: "cure_effect" or "time_effect".
    pub fn effect(self) -> &'static str {
        match self {
            Estimand::Cure => "cure_effect",
            Estimand::Time => "time_effect",
        }
    }
}

/// A value for each estimand.
///
/// ```
/// use dvim::{ByEstimand, Estimand};
///
/// let group_size = ByEstimand { cure: 250, time: 125 };
/// assert_eq!(group_size[Estimand::Time], 125);
/// ```
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ByEstimand<T> {
    /// The value for the cure effect.
    pub cure: T,
    /// The value for the time effect.
    pub time: T,
}

/// Gives a struct of two fields what an array indexed by an enum of two values would have.
macro_rules! pair {
    ($by:ident, $key:ident, $first:ident: $First:ident, $second:ident: $Second:ident) => {
        impl<T> $by<T> {
            /// Makes both values, the first one first.
            pub fn of(mut make: impl FnMut($key) -> T) -> $by<T> {
                let $first = make($key::$First);
                $by { $first, $second: make($key::$Second) }
            }

            /// Makes both values, at the same time where a thread is free.
            pub fn join(make: impl Fn($key) -> T + Sync) -> $by<T>
            where
                T: Send,
            {
                let ($first, $second) = rayon::join(|| make($key::$First), || make($key::$Second));
                $by { $first, $second }
            }

            /// Turns each value into another.
            pub fn map<U>(self, mut f: impl FnMut(T) -> U) -> $by<U> {
                $by { $first: f(self.$first), $second: f(self.$second) }
            }

            /// Pairs each value with that of another.
            pub fn zip<U>(self, other: $by<U>) -> $by<(T, U)> {
                $by { $first: (self.$first, other.$first), $second: (self.$second, other.$second) }
            }

            /// References to both values.
            pub fn each_ref(&self) -> $by<&T> {
                $by { $first: &self.$first, $second: &self.$second }
            }

            /// Mutable references to both values.
            pub fn each_mut(&mut self) -> $by<&mut T> {
                $by { $first: &mut self.$first, $second: &mut self.$second }
            }

            /// Both values, in the order of the enum.
            pub fn iter(&self) -> impl Iterator<Item = &T> {
                [&self.$first, &self.$second].into_iter()
            }

            /// Both values as an array, in the order of the enum.
            pub fn into_array(self) -> [T; 2] {
                [self.$first, self.$second]
            }
        }

        impl<T> From<[T; 2]> for $by<T> {
            fn from([$first, $second]: [T; 2]) -> $by<T> {
                $by { $first, $second }
            }
        }

        impl<T> IntoIterator for $by<T> {
            type Item = T;
            type IntoIter = std::array::IntoIter<T, 2>;

            fn into_iter(self) -> Self::IntoIter {
                self.into_array().into_iter()
            }
        }

        impl<'a, T> IntoIterator for &'a $by<T> {
            type Item = &'a T;
            type IntoIter = std::array::IntoIter<&'a T, 2>;

            fn into_iter(self) -> Self::IntoIter {
                self.each_ref().into_iter()
            }
        }

        impl<T> Index<$key> for $by<T> {
            type Output = T;

            fn index(&self, key: $key) -> &T {
                match key {
                    $key::$First => &self.$first,
                    $key::$Second => &self.$second,
                }
            }
        }

        impl<T> IndexMut<$key> for $by<T> {
            fn index_mut(&mut self, key: $key) -> &mut T {
                match key {
                    $key::$First => &mut self.$first,
                    $key::$Second => &mut self.$second,
                }
            }
        }
    };
}
pub(crate) use pair;

pair!(ByEstimand, Estimand, cure: Cure, time: Time);
