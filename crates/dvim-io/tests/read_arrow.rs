//! Arrow files and streams, written by the arrow crates and read by us.
#![cfg(feature = "arrow")]

use std::sync::Arc;

use arrow_array::types::Int8Type;
use arrow_array::{
    ArrayRef, BooleanArray, Date32Array, DictionaryArray, Float64Array, Int64Array, RecordBatch, StringArray,
    UInt8Array,
};
use arrow_ipc::CompressionType;
use arrow_ipc::writer::{FileWriter, IpcWriteOptions, StreamWriter};
use dvim::internal::table::{Ids, Values};
use dvim_io::read::{Format, ReadOptions, read_table};

fn batch(dated: bool) -> RecordBatch {
    let arm: DictionaryArray<Int8Type> = vec![Some("A"), None, Some("B"), Some("A")].into_iter().collect();
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("id", Arc::new(Int64Array::from(vec![7, 9_007_199_254_740_993, 8, 1]))),
        ("time", Arc::new(Float64Array::from(vec![Some(1.5), None, Some(3.0), Some(0.1)]))),
        ("event", Arc::new(BooleanArray::from(vec![true, false, true, false]))),
        ("age", Arc::new(UInt8Array::from(vec![40, 255, 0, 61]))),
        ("arm", Arc::new(arm)),
        ("note", Arc::new(StringArray::from(vec![Some("x"), Some(" NA "), Some("ü"), None]))),
    ];
    if dated {
        columns.push(("born", Arc::new(Date32Array::from(vec![1, 2, 3, 4]))));
    }
    RecordBatch::try_from_iter(columns).unwrap()
}

fn bytes(stream: bool, lz4: bool, dated: bool) -> Vec<u8> {
    let batch = batch(dated);
    let mut out = Vec::new();
    let options = IpcWriteOptions::default().try_with_compression(lz4.then_some(CompressionType::LZ4_FRAME)).unwrap();
    if stream {
        let mut writer = StreamWriter::try_new_with_options(&mut out, &batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        writer.write(&batch.slice(1, 2)).unwrap();
        writer.finish().unwrap();
    } else {
        let mut writer = FileWriter::try_new_with_options(&mut out, &batch.schema(), options).unwrap();
        writer.write(&batch).unwrap();
        writer.write(&batch.slice(1, 2)).unwrap();
        writer.finish().unwrap();
    }
    out
}

#[test]
fn files_and_streams_are_read_as_parquet_is() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.arrow");
    let options = ReadOptions { id: Some("id".into()), ..ReadOptions::default() };
    for (stream, lz4) in [(false, false), (false, true), (true, false), (true, true)] {
        std::fs::write(&path, bytes(stream, lz4, false)).unwrap();
        let read = read_table(&path, &options).unwrap();
        assert_eq!((read.format, read.table.n_rows()), (Format::Arrow, 6), "two batches");
        assert_eq!(read.n_bytes, std::fs::metadata(&path).unwrap().len());
        let values = |name: &str| &read.table.column(name).unwrap().values;
        assert_eq!(
            *values("id"),
            Values::Id(Ids::Integers(vec![7, 9_007_199_254_740_993, 8, 1, 9_007_199_254_740_993, 8]))
        );
        let Values::Number(time) = values("time") else { panic!("numbers") };
        assert!(time[0] == 1.5 && time[1].is_nan() && time[3] == 0.1 && time[4].is_nan());
        assert_eq!(*values("age"), Values::Number(vec![40.0, 255.0, 0.0, 61.0, 255.0, 0.0].into()));
        let texts = |name: &str| -> Vec<Option<String>> {
            let Values::Text(t) = values(name) else { panic!("text") };
            (0..6).map(|i| t.get(i).map(String::from)).collect()
        };
        let some = |words: [&str; 6]| words.map(|w| (!w.is_empty()).then(|| w.to_string())).to_vec();
        assert_eq!(texts("event"), some(["true", "false", "true", "false", "false", "true"]));
        assert_eq!(texts("arm"), some(["A", "", "B", "A", "", "B"]));
        assert_eq!(texts("note"), some(["x", "", "ü", "", "", "ü"]));
    }
}

#[test]
fn what_cannot_be_read_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.arrow");
    std::fs::write(&path, bytes(false, false, true)).unwrap();
    let words = read_table(&path, &ReadOptions::default()).unwrap_err().to_string();
    assert!(words.contains("`born`"), "{words}");
    // Cut at many places, or with a byte changed, it is read or refused, never a panic.
    let whole = bytes(true, true, false);
    for at in (8..whole.len()).step_by(7) {
        std::fs::write(&path, &whole[..at]).unwrap();
        let _ = read_table(&path, &ReadOptions::default());
        let mut changed = whole.clone();
        changed[at] ^= 0x55;
        std::fs::write(&path, &changed).unwrap();
        let _ = read_table(&path, &ReadOptions::default());
    }
}
