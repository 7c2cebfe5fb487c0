//! What holds for every table, and for every sequence of bytes.

use dvim::internal::table::{Ids, Values};
use dvim_io::read::{ReadOptions, ReadTable, Sizes, read_in_blocks};
use proptest::prelude::*;

/// Reads these bytes in blocks of this size.
fn read(bytes: &[u8], block: usize, options: &ReadOptions) -> Result<ReadTable, String> {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), bytes).unwrap();
    let sizes = Sizes { block, record: 1 << 16, ..Sizes::default() };
    read_in_blocks(file.path(), options, &sizes)
        .map_err(|error| error.to_string().replace(file.path().to_str().unwrap(), "file"))
}

fn missing(text: &str) -> bool {
    ["", "NA", "N/A", "NaN", "nan", "null", "NULL", "None", "."].contains(&text)
}

/// Text as awkward as it comes: delimiters, quotes, line ends, blanks, numbers with zeros in front, letters of all
/// lands.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        4 => "[a-c,;\"\n\r\t é€𝄞#-]{0,6}",
        2 => "0?[0-9]{1,3}",
        1 => Just("NA".to_string()),
        1 => "[ ]?[a-z]{1,12}[ ]?",
    ]
}

fn float() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), Just(f64::NAN), Just(f64::INFINITY), -1e3..1e3f64, (0..100i32).prop_map(f64::from)]
}

#[derive(Clone, Debug)]
enum Cells {
    Floats(Vec<f64>),
    Texts(Vec<String>),
}

fn cells() -> impl Strategy<Value = (Vec<Cells>, Vec<i64>)> {
    (1..40usize, 1..6usize).prop_flat_map(|(rows, columns)| {
        let column = prop_oneof![
            prop::collection::vec(float(), rows).prop_map(Cells::Floats),
            prop::collection::vec(text(), rows).prop_map(Cells::Texts),
        ];
        (prop::collection::vec(column, columns), prop::collection::vec(any::<i64>(), rows))
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn what_csv_writes_is_read_back((columns, ids) in cells(), delimiter in prop::sample::select(vec![b',', b'\t', b';']),
                                    crlf in any::<bool>(), block in 1..300usize, always_quote in any::<bool>()) {
        let style = if always_quote { csv::QuoteStyle::Always } else { csv::QuoteStyle::Necessary };
        let terminator = if crlf { csv::Terminator::CRLF } else { csv::Terminator::Any(b'\n') };
        let mut writer = csv::WriterBuilder::new().delimiter(delimiter).terminator(terminator).quote_style(style).from_writer(Vec::new());
        let names: Vec<String> = (0..columns.len()).map(|i| format!("column {i}")).collect();
        writer.write_record(std::iter::once("id").chain(names.iter().map(String::as_str))).unwrap();
        for (row, id) in ids.iter().enumerate() {
            let values = columns.iter().map(|column| match column {
                Cells::Floats(values) => values[row].to_string(),
                Cells::Texts(values) => values[row].clone(),
            });
            writer.write_record(std::iter::once(id.to_string()).chain(values)).unwrap();
        }
        let bytes = writer.into_inner().unwrap();
        let mut printed = None;
        for (threads, block) in [(1, 1 << 20), (1, block), (2, block), (2, 1)] {
            let options = ReadOptions { id: Some("id".into()), threads, ..Default::default() };
            let table = read(&bytes, block, &options).unwrap();
            prop_assert_eq!(&table.table.column("id").unwrap().values, &Values::Id(Ids::Integers(ids.clone())));
            for (name, column) in names.iter().zip(&columns) {
                let found = &table.table.column(name).unwrap().values;
                match (column, found) {
                    (Cells::Floats(values), Values::Number(found)) => {
                        for (a, b) in values.iter().zip(found.iter()) {
                            prop_assert!(a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan()), "{a} became {b}");
                        }
                    }
                    (Cells::Texts(values), Values::Text(found)) => {
                        for (row, value) in values.iter().enumerate() {
                            let value = value.trim_matches([' ', '\t']);
                            prop_assert_eq!(found.get(row), (!missing(value)).then_some(value));
                        }
                    }
                    (Cells::Texts(values), Values::Number(found)) => {
                        for (value, found) in values.iter().zip(found.iter()) {
                            let value = value.trim_matches([' ', '\t']);
                            let same = if missing(value) { found.is_nan() } else { value.parse() == Ok(*found) };
                            prop_assert!(same, "{value} became {found}");
                        }
                    }
                    (column, found) => prop_assert!(false, "{column:?} became {found:?}"),
                }
            }
            let now = format!("{table:?}");
            prop_assert_eq!(printed.get_or_insert_with(|| now.clone()), &now);
        }
    }

    #[test]
    fn numbers_are_those_of_the_standard_library(value in "[+-]?[0-9]{0,25}[.]?[0-9]{0,25}([eE][+-]?[0-9]{1,3})?") {
        let table = read(format!("x,y\n{value},\"{value}\"\n").as_bytes(), 64, &ReadOptions::default()).unwrap();
        for name in ["x", "y"] {
            match (&table.table.column(name).unwrap().values, value.parse::<f64>()) {
                (Values::Number(found), Ok(expected)) => prop_assert_eq!(found[0].to_bits(), expected.to_bits()),
                (Values::Number(found), Err(_)) => prop_assert!(missing(&value) && found[0].is_nan()),
                (found, expected) => prop_assert!(expected.is_err(), "{found:?}"),
            }
        }
    }
}

/// Bytes that resemble a table enough to get far into the reader.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop_oneof![
        6 => prop::sample::select(vec![&b","[..], b"\n", b"\r\n", b"\"", b"\"\"", b"1", b"2.5", b"-", b"e", b"a", b" ", b"\t", b";", b"NA"]),
        1 => prop::sample::select(vec![&b"\r"[..], b"\0", b"\xFF", b"\xC3\xA9", b"\xC3", b"\xEF\xBB\xBF", b"sep=;\n", b"inf", b".", b"\x1F\x8B"]),
    ];
    (any::<bool>(), prop::collection::vec(piece, 0..200), prop::collection::vec(any::<u8>(), 0..40)).prop_map(
        |(header, pieces, noise)| {
            let mut bytes = if header { b"a,b\n".to_vec() } else { Vec::new() };
            bytes.extend(pieces.concat());
            bytes.extend(noise);
            bytes
        },
    )
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1000, ..ProptestConfig::default() })]

    #[test]
    fn any_bytes_give_a_table_or_a_refusal_and_always_the_same(bytes in bytes(), block in 1..40usize) {
        let one = ReadOptions { threads: 1, ..Default::default() };
        let two = ReadOptions { threads: 2, ..Default::default() };
        let whole = format!("{:?}", read(&bytes, 1 << 20, &one));
        prop_assert_eq!(&format!("{:?}", read(&bytes, block, &one)), &whole);
        prop_assert_eq!(&format!("{:?}", read(&bytes, block, &two)), &whole);
    }

    #[test]
    fn noise_is_refused_or_read(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        let _ = read(&bytes, 50, &ReadOptions { threads: 2, ..Default::default() });
    }
}
