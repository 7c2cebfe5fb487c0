//! The comparators of the paper.
