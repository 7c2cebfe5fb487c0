//! The order in which a search reads the axes of a point.

/// A permutation of the axes 0 to n − 1.
///
/// Kernels read points at these positions without a check of their own: whoever holds an `AxisOrder` knows that each
/// position lies inside a point of [`AxisOrder::len`] axes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct AxisOrder(Box<[u32]>);

impl AxisOrder {
    /// Checks that `axes` names each of 0 to n − 1 once.
    ///
    /// # Panics
    /// Panics where it does not.
    pub(super) fn new(axes: Vec<u32>) -> AxisOrder {
        let mut seen = vec![false; axes.len()];
        for &axis in &axes {
            let seen = seen.get_mut(axis as usize).expect("an axis of the points");
            assert!(!*seen, "each axis comes once");
            *seen = true;
        }
        // Gathering instructions take positions with a sign.
        assert!(i32::try_from(axes.len()).is_ok(), "no more axes than i32 counts");
        AxisOrder(axes.into())
    }

    /// The number of axes. Every position in the order is below it.
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// The axes, the one to read first at the front.
    pub(super) fn as_slice(&self) -> &[u32] {
        &self.0
    }
}

#[cfg(test)]
mod tests {
    use super::AxisOrder;

    #[test]
    fn a_permutation_is_taken_as_it_is() {
        assert_eq!(AxisOrder::new(vec![2, 0, 1]).as_slice(), [2, 0, 1]);
        assert_eq!(AxisOrder::new(Vec::new()).len(), 0);
    }

    #[test]
    #[should_panic(expected = "an axis of the points")]
    fn an_axis_beyond_the_last_is_refused() {
        AxisOrder::new(vec![0, 3, 1]);
    }

    #[test]
    #[should_panic(expected = "each axis comes once")]
    fn an_axis_that_comes_twice_is_refused() {
        AxisOrder::new(vec![0, 1, 1]);
    }
}
