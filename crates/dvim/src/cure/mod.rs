//! Mixture cure model of one arm.
