//! What is read from a file that is not refused.

use std::path::PathBuf;
use std::sync::Mutex;

use dvim::internal::table::{Ids, TextValues, Values};
use dvim_io::read::{Compression, Format, ROW_NAMES, ReadOptions, ReadTable, Sizes, read_in_blocks, read_table};

fn write(name: &str, bytes: &[u8]) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn same(a: &ReadTable, b: &ReadTable) {
    // NaN is not equal to itself, its print-out is.
    assert_eq!(format!("{a:?}"), format!("{b:?}"));
}

/// Reads in blocks of all sizes and on one and two threads: the table is the same.
fn read_as(name: &str, bytes: &[u8], options: &ReadOptions) -> ReadTable {
    let (_folder, path) = write(name, bytes);
    let table = read_table(&path, options).unwrap();
    for block in [1, 2, 3, 5, 8, 13, 64, 200] {
        for threads in [1, 2, 3] {
            let options = ReadOptions { threads, ..options.clone() };
            same(&read_in_blocks(&path, &options, &Sizes { block, ..Sizes::default() }).unwrap(), &table);
        }
    }
    table
}

fn read(bytes: &[u8]) -> ReadTable {
    read_as("t.csv", bytes, &ReadOptions::default())
}

fn numbers(table: &ReadTable, name: &str) -> Vec<f64> {
    match &table.table.column(name).unwrap().values {
        Values::Number(values) => values.to_vec(),
        other => panic!("{name} is {other:?}"),
    }
}

fn texts(table: &ReadTable, name: &str) -> Vec<Option<String>> {
    match &table.table.column(name).unwrap().values {
        Values::Text(text) => (0..text.codes.len()).map(|row| text.get(row).map(str::to_string)).collect(),
        other => panic!("{name} is {other:?}"),
    }
}

fn ids(table: &ReadTable, name: &str) -> Ids {
    match &table.table.column(name).unwrap().values {
        Values::Id(ids) => ids.clone(),
        other => panic!("{name} is {other:?}"),
    }
}

fn some(values: &[&str]) -> Vec<Option<String>> {
    values.iter().map(|v| Some(v.to_string())).collect()
}

#[test]
fn numbers_in_every_form() {
    let written = "1 -1 +1 1e3 1E-3 .5 5. -.5 +5.e1 0 -0 00012 1e308 1e400 -1e400 5e-324 1e-400 inf -inf +Inf INFINITY -infinity \
                   0.1 123456789012345678901234567890 9007199254740993 2.2250738585072011e-308 1.7976931348623157e308";
    let written: Vec<&str> = written.split_whitespace().collect();
    let table = read(format!("x\n{}\n", written.join("\n")).as_bytes());
    let expected: Vec<u64> = written.iter().map(|w| w.parse::<f64>().unwrap().to_bits()).collect();
    assert_eq!(numbers(&table, "x").iter().map(|v| v.to_bits()).collect::<Vec<_>>(), expected);
    for text in [
        "0x10", "1_000", "1,5", "1e", "e5", "+", "-", "--1", "1 2", "TRUE", "NAN", "-nan", "infin", "1d3", "−5",
        "1e5.5", "1.2.3",
    ] {
        let table = read(format!("x\n1\n\"{text}\"\n02\n").as_bytes());
        assert_eq!(texts(&table, "x"), some(&["1", text, "02"]));
    }
}

#[test]
fn blanks_and_missing() {
    let table =
        read(b" x , y,z\n 1 ,\t2\t, a b \n NA,  ,N/A\nNaN,nan,null\nNULL,None,.\n\"NA\",\"\",\" \"\n3,4,\" c \"\n");
    let x = numbers(&table, "x");
    assert_eq!((x[0], x[5], x[1..5].iter().all(|v| v.is_nan())), (1.0, 3.0, true));
    let y = numbers(&table, "y");
    assert_eq!((y[0], y[5], y[1..5].iter().all(|v| v.is_nan())), (2.0, 4.0, true));
    let Values::Text(z) = &table.table.column("z").unwrap().values else { panic!() };
    let m = TextValues::MISSING;
    assert_eq!((z.codes.clone(), z.levels.clone()), (vec![0, m, m, m, m, 1], vec!["a b".to_string(), "c".to_string()]));
    let table = read(b"x,y\nNA,1\n,2\n");
    assert!(numbers(&table, "x").iter().all(|v| v.is_nan()));
}

#[test]
fn line_ends_quotes_and_marks() {
    let plain = read(b"a,b\n1,x\n2,y\n");
    for other in [
        &b"a,b\r\n1,x\r\n2,y\r\n"[..],
        b"\xEF\xBB\xBFa,b\n1,x\n2,y",
        b"\n\na,b\n\n1,x\n \n2,y\n\n\n\r\n",
        b"\"a\",\"b\"\n\"1\",\"x\"\n\"2\",\"y\"\n",
        b"\xEF\xBB\xBF\"a\" , \"b\"\r\n 1, \"x\" \r\n\"2\"\t,\"y\"\r\n\r\n",
    ] {
        assert_eq!(read(other).table, plain.table, "{}", String::from_utf8_lossy(other));
    }
    let table = read(b"a,b\n1,\"x, \"\"y\"\"\nz\"\n2,\"\"\"\"\n3,5\" pipe\n4,\"a\r\nb\"\n5,a\"\"b\n");
    assert_eq!(texts(&table, "b"), some(&["x, \"y\"\nz", "\"", "5\" pipe", "a\r\nb", "a\"\"b"]));
}

#[test]
fn delimiters() {
    let tab = Format::Delimited { delimiter: b'\t', compression: Compression::None };
    let semicolon = Format::Delimited { delimiter: b';', compression: Compression::None };
    let table = read_as("t.tsv", b"a,1,2\tb\n1\t2\n", &ReadOptions::default());
    assert_eq!((table.format, table.names), (tab, vec!["a,1,2".to_string(), "b".to_string()]));
    assert_eq!(read(b"a\tb\n1\t\n").format, tab);
    let table = read(b"a;b;c (x,y)\n1,5;2;3\n");
    assert_eq!((table.format, texts(&table, "a")), (semicolon, some(&["1,5"])));
    assert_eq!(read(b"\"a;b;c\",d\n1,2\n").names, ["a;b;c", "d"]);
    assert_eq!(read(b"sep=;\r\na;b\r\n1;2\r\n").table, read(b"a,b\n1,2\n").table);
    assert_eq!(read(b"a\n1\n2\n").table.n_rows(), 2);
    let table = read(b"a\tb\n\t\n \t1\n");
    assert_eq!(table.table.n_rows(), 2);
}

#[test]
fn late_text_is_read_as_it_was_written() {
    let mut bytes = String::from("x,y,z\n");
    for i in 0..2000 {
        bytes.push_str(&format!("{i},{:03}, 1.50\n", i % 5));
    }
    bytes.push_str("7,old,2\n8,001,unknown\n");
    let (_folder, path) = write("t.csv", bytes.as_bytes());
    for (block, threads) in [(64, 1), (64, 2), (1000, 2), (1 << 20, 2)] {
        let calls = Mutex::new(Vec::new());
        let progress = |n: u64| calls.lock().unwrap().push(n);
        let options = ReadOptions { threads, progress: Some(&progress), ..Default::default() };
        let table = read_in_blocks(&path, &options, &Sizes { block, ..Sizes::default() }).unwrap();
        let Values::Text(y) = &table.table.column("y").unwrap().values else { panic!() };
        assert_eq!(y.levels, ["000", "001", "002", "003", "004", "old"]);
        assert_eq!((y.codes[2000], y.codes[2001], y.codes[3]), (5, 1, 3));
        let Values::Text(z) = &table.table.column("z").unwrap().values else { panic!() };
        assert_eq!(z.levels, ["1.50", "2", "unknown"]);
        assert_eq!(numbers(&table, "x")[2001], 8.0);
        assert_eq!(calls.lock().unwrap().last(), Some(&(bytes.len() as u64)));
    }
}

#[test]
fn identifiers_lose_nothing() {
    let options = ReadOptions { id: Some("id".into()), ..Default::default() };
    let read = |values: &[&str]| {
        let bytes = format!("id,x\n{}\n", values.iter().map(|v| format!("{v},1")).collect::<Vec<_>>().join("\n"));
        ids(&read_as("t.csv", bytes.as_bytes(), &options), "id")
    };
    assert_eq!(
        read(&["1", "-5", "0", " 9223372036854775807", "-9223372036854775808"]),
        Ids::Integers(vec![1, -5, 0, i64::MAX, i64::MIN])
    );
    for odd in ["007", "+1", "-0", "1.0", "1e3", "9223372036854775808", "a", "12345678901234567890123", "-", "é"] {
        let read = read(&["10", "11", odd, "12"]);
        assert!(matches!(read, Ids::Texts { .. }), "{odd}");
        assert_eq!((0..4).map(|i| read.text(i).into_owned()).collect::<Vec<_>>(), ["10", "11", odd, "12"]);
    }
    let gap = read(&["10", "NA", "", "12"]);
    assert_eq!((0..4).map(|i| gap.text(i).into_owned()).collect::<Vec<_>>(), ["10", "", "", "12"]);
}

#[test]
fn only_what_is_asked_for() {
    let bytes = b"id,a,b,c,d\n1,2,x,\"q,\nr\",5\n2,3,y,z,6\n";
    let options = ReadOptions {
        id: Some("id".into()),
        columns: Some(vec!["d".into(), "a".into()]),
        text: vec!["d".into(), "b".into(), "absent".into()],
        ..Default::default()
    };
    let table = read_as("t.csv", bytes, &options);
    let names: Vec<&str> = table.table.columns().iter().map(|c| c.name.as_str()).collect();
    assert_eq!(names, ["id", "a", "d"]);
    assert_eq!((texts(&table, "d"), numbers(&table, "a")), (some(&["5", "6"]), vec![2.0, 3.0]));
    assert_eq!(table.names, ["id", "a", "b", "c", "d"]);
}

#[test]
fn row_names() {
    let bytes = b"\"\",\"a\",\"b\"\n\"1\",2,x\n\"2\",3,y\n";
    let table = read(bytes);
    assert_eq!((table.unnamed_first, table.names[0].as_str(), table.table.columns().len()), (true, ROW_NAMES, 2));
    let options = ReadOptions { id: Some(ROW_NAMES.into()), ..Default::default() };
    assert_eq!(ids(&read_as("t.csv", bytes, &options), ROW_NAMES), Ids::Integers(vec![1, 2]));
    assert!(!read(b"a,b\n1,2\n").unnamed_first);
}

#[test]
fn gzip_and_digest() {
    use std::io::Write;
    let bytes = "id,x\n1,2\n3,4\n".as_bytes();
    let plain = read(bytes);
    // printf 'id,x\n1,2\n3,4\n' | sha256sum
    assert_eq!(plain.sha256, "717c86a7dcc32a8595fa0241fe876ff7ff2c09c53c05f5efacccba4f6c744d61");
    assert_eq!(plain.n_bytes, bytes.len() as u64);
    let mut packed = Vec::new();
    for part in [&bytes[..7], &bytes[7..]] {
        let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
        encoder.write_all(part).unwrap();
        packed.extend(encoder.finish().unwrap());
    }
    let table = read_as("t.csv.gz", &packed, &ReadOptions::default());
    assert_eq!((&table.table, table.n_bytes), (&plain.table, packed.len() as u64));
    assert_eq!(table.format, Format::Delimited { delimiter: b',', compression: Compression::Gzip });
    // printf 'id,x\n1,2\n3,4\n' | zstd -c | xxd -p, with zstd 1.5.4; then two frames of `a,b` and `1,2`.
    let bytes_of = |hex: &str| -> Vec<u8> {
        (0..hex.len() / 2).map(|i| u8::from_str_radix(&hex[2 * i..2 * i + 2], 16).unwrap()).collect()
    };
    let one = bytes_of("28b52ffd045869000069642c780a312c320a332c340a8c61b295");
    let table = read_as("t.csv.zst", &one, &ReadOptions::default());
    assert_eq!((&table.table, table.n_bytes), (&plain.table, one.len() as u64));
    assert_eq!(table.format, Format::Delimited { delimiter: b',', compression: Compression::Zstd });
    let row = bytes_of("28b52ffd0458410000612c620a312c320a35e7cace");
    let twice = read_as("t.csv.zst", &[row.clone(), row].concat(), &ReadOptions::default());
    assert_eq!(twice.table.n_rows(), 3, "the header and a row, and both again as rows");
    // Skippable frames, before, between and after: those of pzstd, of seekable files and of anybody.
    let skipped = |kind: u8, length: u8| {
        [&[0x50 + kind, 0x2A, 0x4D, 0x18, length, 0, 0, 0][..], &vec![7; length as usize]].concat()
    };
    let framed = [skipped(0, 4), one.clone(), skipped(15, 0), skipped(14, 200)].concat();
    let table = read_as("t.csv.zst", &framed, &ReadOptions::default());
    assert_eq!((&table.table, table.n_bytes), (&plain.table, framed.len() as u64));
    let (_folder, path) = write("t.csv.zst", &framed[..framed.len() - 1]);
    let words = read_table(&path, &ReadOptions::default()).unwrap_err().to_string();
    assert!(words.contains("a skippable frame is cut off"), "{words}");
}

#[test]
fn ten_thousand_columns() {
    let names: Vec<String> = (0..10_000).map(|i| format!("gene_{i}")).collect();
    let mut bytes = names.join(",") + "\n";
    for row in 0..30 {
        bytes.push_str(&(0..10_000).map(|i| format!("{}", i * row)).collect::<Vec<_>>().join(","));
        bytes.push('\n');
    }
    let (_folder, path) = write("t.csv", bytes.as_bytes());
    let table = read_table(&path, &ReadOptions::default()).unwrap();
    assert_eq!((table.table.columns().len(), table.table.n_rows()), (10_000, 30));
    assert_eq!(numbers(&table, "gene_9999")[29], 9999.0 * 29.0);
}
