//! Every way to fail, as data.
