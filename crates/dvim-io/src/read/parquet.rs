//! Parquet.
