//! Every way in which a file is refused, with the words that a person sees.

use std::io::Write;
use std::path::Path;

use dvim_io::read::{ReadError, ReadErrorKind, ReadOptions, RowLengthCause, Sizes, read_in_blocks, read_table};

fn write(name: &str, bytes: &[u8]) -> (tempfile::TempDir, std::path::PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join(name);
    std::fs::write(&path, bytes).unwrap();
    (folder, path)
}

fn small() -> Sizes {
    Sizes { block: 16, record: 4096, levels: 5, level_bytes: 100 }
}

/// Reads in small and in large blocks, on one and on two threads: the refusal is the same.
fn refusal_with(name: &str, bytes: &[u8], options: &ReadOptions) -> ReadError {
    let (_folder, path) = write(name, bytes);
    let error = read_in_blocks(&path, options, &small()).unwrap_err();
    for block in [1, 7, 64, 1 << 20] {
        for threads in [1, 2] {
            let again = read_in_blocks(&path, &ReadOptions { threads, ..options.clone() }, &Sizes { block, ..small() });
            assert_eq!(again.unwrap_err(), error, "blocks of {block} on {threads} threads");
        }
    }
    error
}

fn message(error: &ReadError) -> String {
    let file = error.path.file_name().unwrap().to_str().unwrap();
    error.to_string().replace(error.path.to_str().unwrap(), file)
}

fn refusal(bytes: &[u8]) -> String {
    message(&refusal_with("t.csv", bytes, &ReadOptions::default()))
}

#[test]
fn no_file_and_directory() {
    let folder = tempfile::tempdir().unwrap();
    let error = read_table(&folder.path().join("none.csv"), &ReadOptions::default()).unwrap_err();
    assert_eq!(message(&error), "none.csv: there is no such file");
    let error = read_table(folder.path(), &ReadOptions::default()).unwrap_err();
    assert_eq!(error.kind, ReadErrorKind::Directory);
    assert!(error.to_string().ends_with(": this is a directory; name a file in it"));
}

#[test]
fn nothing_in_it() {
    let empty = "t.csv: the file is empty; a table needs a header and at least one row";
    for bytes in [&b""[..], b"\n", b"\r\n\r\n", b"  \n\t\n", b"\xEF\xBB\xBF", b"\xEF\xBB\xBF\n"] {
        assert_eq!(refusal(bytes), empty, "{bytes:?}");
    }
    assert_eq!(refusal(b"a,b"), "t.csv: there is a header with 2 columns and no row below it");
    assert_eq!(refusal(b"a,b\n\n \n"), "t.csv: there is a header with 2 columns and no row below it");
    assert_eq!(refusal(b"a\n"), "t.csv: there is a header with 1 column and no row below it");
}

#[test]
fn unequal_rows() {
    assert_eq!(
        refusal(b"a,b,c\n1,2,3\n1,2,3,4\n"),
        "t.csv, row 2 (line 3): expected 3 fields, as in the header, found 4; a value that holds a comma must stand in quotes, and decimals take a point"
    );
    assert_eq!(
        refusal(b"a;b\n1;2\n1;2;3;4\n"),
        "t.csv, row 2 (line 3): expected 2 fields, as in the header, found 4; a value that holds a semicolon must stand in quotes"
    );
    assert_eq!(
        refusal(b"a,b,c\n1,2,3\n\n1,\"x\ny\"\n4,5,6\n"),
        "t.csv, row 2 (line 5): expected 3 fields, as in the header, found 2; an empty value still needs its comma, and a value that holds a line end must stand in quotes"
    );
    assert_eq!(
        refusal(b"a,b,c\n1,2,3\n1,2"),
        "t.csv, row 2 (line 3): expected 3 fields, as in the header, found 2; it is the last line and has no line end: the file may be cut off"
    );
    assert_eq!(
        refusal(b"a,b,c\n1,2,3,\n"),
        "t.csv, row 1 (line 2): expected 3 fields, as in the header, found 4; remove the comma at the end of the line"
    );
    assert_eq!(
        refusal(b"a\tb\n1\t2\t3\n"),
        "t.csv, row 1 (line 2): expected 2 fields, as in the header, found 3; the header seems to lack a name for the first column: R's `write.table` does that, `write.csv` does not"
    );
    let error = refusal_with("t.csv", b"a,b\n1\n", &ReadOptions::default());
    let kind = ReadErrorKind::RowLength { expected: 2, found: 1, delimiter: b',', cause: RowLengthCause::Fewer };
    assert_eq!((error.row, error.line, error.kind), (Some(1), Some(2), kind));
}

#[test]
fn headers() {
    assert_eq!(refusal(b"a,b, a \n1,2,3\n"), "t.csv, line 1: columns 1 and 3 are both named `a`; rename or remove one");
    assert_eq!(
        refusal(b"a,b,\n1,2,3\n"),
        "t.csv, line 1: column 3 of 3 has no name; name it in the header, or remove it (a delimiter at the end of the header makes an empty column)"
    );
    assert_eq!(
        refusal(b"\na,,c\n1,2,3\n"),
        "t.csv, line 2: column 2 of 3 has no name; name it in the header, or remove it"
    );
    assert_eq!(refusal(b"\"\"\n1\n"), "t.csv, line 1: column 1 of 1 has no name; name it in the header, or remove it");
    assert_eq!(
        refusal(b"1,2.5,0\n3,4,1\n"),
        "t.csv, line 1: the header holds only numbers (`1`, …); the first line must give each column its name"
    );
    let long = [b"a,\"".as_slice(), &[b'x'; 5000]].concat();
    assert_eq!(
        refusal(&long),
        "t.csv, line 1: the row is longer than 4,096 bytes; is this a table with one row to a line?"
    );
    assert_eq!(
        refusal(b"a,\"b\n1,2\n"),
        "t.csv, line 1: a quote opens here and is never closed; close it, or write a quote that belongs to the value twice and the value in quotes"
    );
}

#[test]
fn quotes() {
    assert_eq!(
        refusal(b"a,b\n1,2\n3,\"x\n5,6\n7,8\n"),
        "t.csv, row 2 (line 3): a quote opens here and is never closed; close it, or write a quote that belongs to the value twice and the value in quotes"
    );
    assert_eq!(
        refusal(b"a,b\n1,\"5 inch\n2,\"6 inch\n"),
        "t.csv, row 1 (line 3): `6 inch` follows the closing quote of a value that opened on line 2; write a quote that belongs to the value twice, or close the one that is open"
    );
    assert_eq!(
        refusal(b"a,b\n1,2\n1,\"x\" y\n"),
        "t.csv, row 2 (line 3): `y` follows the closing quote of a value that opened on line 3; write a quote that belongs to the value twice, or close the one that is open"
    );
    assert_eq!(
        refusal(b"a,\"b\"c\n1,2\n"),
        "t.csv, line 1: `c` follows the closing quote of a value that opened on line 1; write a quote that belongs to the value twice, or close the one that is open"
    );
    let long = [b"a,b\n1,2\n3,\"".as_slice(), &[b'\n'; 5000]].concat();
    assert_eq!(
        refusal(&long),
        "t.csv, row 2 (line 3): a quote opens here and is never closed; close it, or write a quote that belongs to the value twice and the value in quotes"
    );
    let long = [b"a,b\n1,2\n3,".as_slice(), &[b'4'; 5000]].concat();
    let row = "t.csv, row 2 (line 3): the row is longer than 4,096 bytes; is this a table with one row to a line?";
    let (_folder, path) = write("t.csv", &long);
    assert_eq!(message(&read_in_blocks(&path, &ReadOptions::default(), &small()).unwrap_err()), row);
}

#[test]
fn not_text() {
    let utf8 = "byte 0xE9 is not UTF-8; save the file as UTF-8 (in Excel: `CSV UTF-8`; in R: `fileEncoding = \"UTF-8\"`; in a shell: `iconv -f latin1 -t utf-8`)";
    assert_eq!(refusal(b"a,b\n1,2\n3,caf\xE9\n4,5\n"), format!("t.csv, row 2 (line 3): {utf8}"));
    assert_eq!(refusal(b"a,b\n1,2\n3,\"x\ncaf\xE9\"\n4,5\n"), format!("t.csv, row 2 (line 4): {utf8}"));
    assert_eq!(refusal(b"caf\xE9,b\n1,2\n"), format!("t.csv, line 1: {utf8}"));
    let nul = "a byte 0 stands here, which text does not hold; if this is UTF-16, save it as UTF-8, otherwise the file is damaged or not a table";
    assert_eq!(refusal(b"a,b\n1,2\n3,\0\n"), format!("t.csv, row 2 (line 3): {nul}"));
    assert_eq!(refusal(b"a\0,\0b\0\n\x001\0,\x002\0\n\0"), format!("t.csv, line 1: {nul}"));
    let lone = "a carriage return without a line feed stands here; save the file with Unix (LF) or Windows (CRLF) line ends, and quote values that hold line ends";
    assert_eq!(refusal(b"a,b\r1,2\r"), format!("t.csv, line 1: {lone}"));
    assert_eq!(refusal(b"a,b\n1,2\n3,4\r5,6\n"), format!("t.csv, row 2 (line 3): {lone}"));
    assert_eq!(refusal(b"a,b\n1,2\r\r\n"), format!("t.csv, row 1 (line 2): {lone}"));
}

#[test]
fn other_files_by_their_first_bytes() {
    let cases: &[(&[u8], &str)] = &[
        (
            b"PK\x03\x04....",
            "t.csv: this is an Excel workbook or another zip archive; save the sheet as CSV UTF-8, or unpack the archive",
        ),
        (
            b"\xD0\xCF\x11\xE0\xA1\xB1",
            "t.csv: this is an Excel workbook of the old kind (.xls); save the sheet as CSV UTF-8",
        ),
        (b"BZh9....", "t.csv: this is compressed with bzip2; unpack it first: `bunzip2`"),
        (
            b"\xFD7zXZ\0",
            "t.csv: this is compressed with xz, as are some R data files; unpack it first, or write the table with `write.csv`",
        ),
        (b"RDX3\nX\n", "t.csv: this is an R data file; write the table with `write.csv(x, file, row.names = FALSE)`"),
        #[cfg(not(feature = "arrow"))]
        (
            b"ARROW1\0\0",
            "t.csv: this is an Arrow or Feather file, which this build does not read; build with the feature `arrow`, or write it as CSV",
        ),
        (b"<stata_dta><header>", "t.csv: this is a Stata data file; export it with `export delimited`"),
        (b"$FL2@(#)", "t.csv: this is an SPSS data file; export it as CSV from the program that wrote it"),
        (b"SQLite format 3\0", "t.csv: this is an SQLite database; export the table as CSV"),
        (b"%PDF-1.7", "t.csv: this is a PDF document; a table is needed as CSV"),
        (b"<!DOCTYPE html>", "t.csv: this is a web page; download the table itself, not the page that shows it"),
        (b"\xFF\xFEa\0,\0b\0", "t.csv: this is text in UTF-16; save it as UTF-8 (in Excel: `CSV UTF-8`)"),
        (b"\xFE\xFF\0a", "t.csv: this is text in UTF-16; save it as UTF-8 (in Excel: `CSV UTF-8`)"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(&refusal(bytes), expected);
    }
    #[cfg(not(feature = "parquet"))]
    assert_eq!(
        refusal(b"PAR1...."),
        "t.csv: this is a Parquet file, which this build does not read; build with the feature `parquet`, or write it as CSV"
    );
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn damaged_zstd() {
    // As in read_values.rs, cut off, and with a byte changed.
    let whole =
        b"\x28\xb5\x2f\xfd\x04\x58\x69\x00\x00\x69\x64\x2c\x78\x0a\x31\x2c\x32\x0a\x33\x2c\x34\x0a\x8c\x61\xb2\x95";
    let mut changed = whole.to_vec();
    changed[14] = b'7';
    for bytes in [&whole[..12], &whole[..24], &changed[..]] {
        let words = message(&refusal_with("t.csv.zst", bytes, &ReadOptions::default()));
        assert!(words.starts_with("t.csv.zst: the zstd data is damaged or cut off ("), "{words}");
    }
}

#[test]
fn damaged_gzip() {
    let whole = gzip("a,b\n1,2\n3,4\n".repeat(50).as_bytes());
    let cut = message(&refusal_with("t.csv.gz", &whole[..whole.len() - 12], &ReadOptions::default()));
    assert!(cut.starts_with("t.csv.gz: the gzip data is damaged or cut off ("), "{cut}");
    assert!(cut.ends_with("); copy or compress the file again"), "{cut}");
    let twice = gzip(&whole);
    assert_eq!(
        message(&refusal_with("t.csv.gz", &twice, &ReadOptions::default())),
        "t.csv.gz: this is compressed twice; unpack it once: `gunzip`"
    );
    assert_eq!(
        message(&refusal_with("t.csv.gz", &gzip(b"PK\x03\x04"), &ReadOptions::default())),
        "t.csv.gz: this is an Excel workbook or another zip archive; save the sheet as CSV UTF-8, or unpack the archive"
    );
}

#[test]
fn absent_columns() {
    let bytes = b"id,time,event,treatment,tumor_size\n1,2,3,4,5\n";
    let ask = |columns: &[&str], id: Option<&str>| {
        let columns = Some(columns.iter().map(|c| c.to_string()).collect());
        let options = ReadOptions { columns, id: id.map(str::to_string), ..Default::default() };
        message(&refusal_with("t.csv", bytes, &options))
    };
    assert_eq!(
        ask(&["time", "TumorSize"], None),
        "t.csv: there is no column `TumorSize`; did you mean `tumor_size`? The columns are: id, time, event, treatment, tumor_size"
    );
    assert_eq!(
        ask(&["time"], Some("pid")),
        "t.csv: there is no column `pid`; did you mean `id`? The columns are: id, time, event, treatment, tumor_size"
    );
    assert_eq!(
        ask(&["quality_of_life"], None),
        "t.csv: there is no column `quality_of_life`. The columns are: id, time, event, treatment, tumor_size"
    );
    let names: Vec<String> = (0..50).map(|i| format!("column_number_{i}")).collect();
    let bytes = format!("{}\n{}\n", names.join(","), vec!["1"; 50].join(","));
    let options = ReadOptions { id: Some("x".into()), ..Default::default() };
    let said = message(&refusal_with("t.csv", bytes.as_bytes(), &options));
    assert!(said.ends_with("column_number_39 and 10 more"), "{said}");
}

#[test]
fn too_many_levels() {
    assert_eq!(
        refusal(b"x,age\na,1\nb,2\nc,3\nd,4\ne,5\nf,6\n"),
        "t.csv: column `x` has more than 5 distinct values and is not of numbers (row 1 holds `a`); if it should be numbers, correct what is not; if it identifies the units, name it with --id; if it is not a covariate, leave it out with --drop"
    );
    assert_eq!(
        refusal(b"x,age\n1,1\n2,2\n3,3\n4,4\n5,5\n6,unknown\n7,7\n"),
        "t.csv: column `age` has more than 5 distinct values and is not of numbers (row 6 holds `unknown`); if it should be numbers, correct what is not; if it identifies the units, name it with --id; if it is not a covariate, leave it out with --drop"
    );
    let late = refusal(b"x,age\n1,1\n2,2\n3,3\n4,4\n5,5\n6,6\n7,7\n8,8\n9,unknown\n7,7\n");
    assert!(
        late.contains("`age` has more than 5 distinct values and is not of numbers (row 9 holds `unknown`)"),
        "{late}"
    );
    let options = ReadOptions { text: vec!["x".into()], ..Default::default() };
    assert_eq!(
        message(&refusal_with("t.csv", b"x\n1\n2\n3\n4\n5\n6\n7\n", &options)),
        "t.csv: column `x` has more than 5 distinct values and is not of numbers (it was asked for as text); if it should be numbers, correct what is not; if it identifies the units, name it with --id; if it is not a covariate, leave it out with --drop"
    );
    let notes = format!("note\n{}\n{}\n", "a".repeat(60), "b".repeat(60));
    assert_eq!(
        refusal(notes.as_bytes()),
        format!(
            "t.csv: column `note` has more than 100 bytes of distinct texts (row 1 holds `{}…`); if it should be numbers, correct what is not; if it identifies the units, name it with --id; if it is not a covariate, leave it out with --drop",
            "a".repeat(40)
        )
    );
}

#[cfg(unix)]
#[test]
fn a_pipe_is_read_once() {
    let read = |bytes: String, sizes: Sizes| {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
        let writer = {
            let path = path.clone();
            std::thread::spawn(move || {
                let _ = std::fs::OpenOptions::new().write(true).open(path).unwrap().write_all(bytes.as_bytes());
            })
        };
        let result = read_in_blocks(&path, &ReadOptions::default(), &sizes);
        writer.join().unwrap();
        result
    };
    let numbers = format!("x,y\n{}", "1,2\n".repeat(20));
    assert_eq!(read(numbers.clone(), small()).unwrap().table.n_rows(), 20);
    let error = read(numbers + "1,old\n", small()).unwrap_err();
    assert_eq!(
        error.to_string().replace(error.path.to_str().unwrap(), "pipe"),
        "pipe, row 21: column `y` held only numbers up to here and now `old`; a pipe cannot be read again: declare the column with --categorical, or read from a file"
    );
}

#[test]
fn missing_permission_names_the_reason() {
    let path = Path::new("/proc/self/mem");
    if path.exists() {
        let error = read_table(path, &ReadOptions::default()).unwrap_err();
        assert!(error.to_string().starts_with("/proc/self/mem: cannot be read: "), "{error}");
    }
}
