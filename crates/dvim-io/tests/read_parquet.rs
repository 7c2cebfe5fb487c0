//! Parquet files, written by the parquet crate and read by us.
#![cfg(feature = "parquet")]

use std::path::PathBuf;
use std::sync::Arc;

use dvim::internal::table::{Ids, Values};
use dvim_io::read::{Format, ReadOptions, read_table};
use parquet::basic::Compression;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, FloatType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;

/// Two row groups of three rows each, with nulls.
fn write() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.parquet");
    let schema = "message cohort {
        required int64 id;
        optional double time;
        required boolean event;
        optional int32 age;
        optional byte_array arm (STRING);
        required float dose;
        required int32 born (DATE);
        required int64 big (INTEGER(64, false));
    }";
    let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
    let file = std::fs::File::create(&path).unwrap();
    let mut writer =
        SerializedFileWriter::new(file, Arc::new(parse_message_type(schema).unwrap()), Arc::new(properties)).unwrap();
    for group in 0..2i64 {
        let mut rows = writer.next_row_group().unwrap();
        macro_rules! column {
            ($type:ty, $values:expr, $levels:expr) => {
                let mut column = rows.next_column().unwrap().unwrap();
                column.typed::<$type>().write_batch($values, $levels, None).unwrap();
                column.close().unwrap();
            };
        }
        let first = 3 * group;
        column!(Int64Type, &[first + 1, first + 2, first + 3], None);
        column!(DoubleType, &[0.1 + group as f64, 1e-300], Some(&[1, 0, 1]));
        column!(BoolType, &[true, false, group == 0], None);
        column!(Int32Type, &[-7], Some(&[0, 1, 0]));
        column!(
            ByteArrayType,
            &[ByteArray::from(" 01 "), ByteArray::from(if group == 0 { "NA" } else { "é" })],
            Some(&[1, 1, 0])
        );
        column!(FloatType, &[0.5, 0.1, f32::INFINITY], None);
        column!(Int32Type, &[1, 2, 3], None);
        column!(Int64Type, &[-1, 0, 1], None);
        rows.close().unwrap();
    }
    writer.close().unwrap();
    (folder, path)
}

#[test]
fn types_nulls_and_row_groups() {
    let (_folder, path) = write();
    let columns = ["time", "event", "age", "arm", "dose", "big"].map(str::to_string).to_vec();
    for threads in [1, 2, 4] {
        let options =
            ReadOptions { id: Some("id".into()), columns: Some(columns.clone()), threads, ..Default::default() };
        let read = read_table(&path, &options).unwrap();
        let values = |name: &str| read.table.column(name).unwrap().values.clone();
        let bits = |name: &str| match values(name) {
            Values::Number(v) => {
                v.iter().map(|v| if v.is_nan() { None } else { Some(v.to_bits()) }).collect::<Vec<_>>()
            }
            other => panic!("{other:?}"),
        };
        let expect = |v: &[Option<f64>]| v.iter().map(|v| v.map(f64::to_bits)).collect::<Vec<_>>();
        let texts = |name: &str| match values(name) {
            Values::Text(t) => (0..6).map(|i| t.get(i).map(str::to_string)).collect::<Vec<_>>(),
            other => panic!("{other:?}"),
        };
        let some = |v: &str| Some(v.to_string());
        assert_eq!(values("id"), Values::Id(Ids::Integers((1..=6).collect())));
        assert_eq!(bits("time"), expect(&[Some(0.1), None, Some(1e-300), Some(1.1), None, Some(1e-300)]));
        assert_eq!(
            texts("event"),
            [some("true"), some("false"), some("true"), some("true"), some("false"), some("false")]
        );
        assert_eq!(bits("age"), expect(&[None, Some(-7.0), None, None, Some(-7.0), None]));
        assert_eq!(texts("arm"), [some("01"), None, None, some("01"), some("é"), None]);
        assert_eq!(bits("dose")[1..3], expect(&[Some(f64::from(0.1f32)), Some(f64::INFINITY)]));
        assert_eq!(bits("big")[0], Some(18446744073709551615f64.to_bits()));
        assert_eq!((read.format, read.n_bytes), (Format::Parquet, std::fs::metadata(&path).unwrap().len()));
        assert_eq!(read.sha256.len(), 64);
    }
    let options = ReadOptions {
        id: Some("arm".into()),
        columns: Some(vec!["id".into(), "dose".into()]),
        text: vec!["dose".into()],
        ..Default::default()
    };
    let read = read_table(&path, &options).unwrap();
    let Values::Id(ids) = &read.table.column("arm").unwrap().values else { panic!() };
    assert_eq!((0..6).map(|i| ids.text(i).into_owned()).collect::<Vec<_>>(), ["01", "", "", "01", "é", ""]);
    let Values::Text(dose) = &read.table.column("dose").unwrap().values else { panic!() };
    assert_eq!(dose.levels, ["0.5", "0.1", "inf"]);
}

#[test]
fn refusals() {
    let (folder, path) = write();
    let said = |path: &PathBuf, options: &ReadOptions| {
        let error = read_table(path, options).unwrap_err();
        error.to_string().replace(path.to_str().unwrap(), "t.parquet")
    };
    assert_eq!(
        said(&path, &ReadOptions::default()),
        "t.parquet: column `born` has type Date, which is neither number nor text; convert it, or leave it out with --drop"
    );
    let absent = ReadOptions { id: Some("idd".into()), ..Default::default() };
    assert_eq!(
        said(&path, &absent),
        "t.parquet: there is no column `idd`; did you mean `id`? The columns are: id, time, event, age, arm, dose, born, big"
    );
    // Wherever it is cut or changed: a table or a refusal.
    let whole = std::fs::read(&path).unwrap();
    let broken = folder.path().join("broken.parquet");
    let time = ReadOptions { columns: Some(vec!["time".into(), "arm".into()]), threads: 1, ..Default::default() };
    for length in (4..whole.len()).step_by(7) {
        std::fs::write(&broken, &whole[..length]).unwrap();
        assert!(said(&broken, &time).starts_with("t.parquet: cannot be read: "));
    }
    for place in (4..whole.len()).step_by(2) {
        let mut changed = whole.clone();
        changed[place] ^= 0x55;
        std::fs::write(&broken, &changed).unwrap();
        let _ = read_table(&broken, &time);
    }
}

/// `DVIM_PYARROW=folder cargo test … -- --ignored`, where the folder holds a `t.csv` and Parquet files of the same
/// table, all written by pyarrow: the columns must be equal, value by value.
#[test]
#[ignore = "needs files written by pyarrow"]
fn files_of_pyarrow_equal_their_csv() {
    let folder = PathBuf::from(std::env::var("DVIM_PYARROW").unwrap());
    let options = ReadOptions { id: Some("id".into()), ..Default::default() };
    let expected = read_table(&folder.join("t.csv"), &options).unwrap().table;
    let mut n = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|e| e == "parquet") {
            let found = read_table(&path, &options).unwrap().table;
            for (a, b) in expected.columns().iter().zip(found.columns()) {
                assert!(format!("{a:?}") == format!("{b:?}"), "column {} of {}", a.name, path.display());
            }
            n += 1;
        }
    }
    assert!(n > 0);
}
