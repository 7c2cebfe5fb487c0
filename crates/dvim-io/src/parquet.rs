//! Effects as Apache Parquet: one row group for every 100,000 units, compressed with snappy.

use dvim_report::tables::{Cell, EffectRow, EffectTable};
use parquet::basic::Compression;
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::parser::parse_message_type;
use std::io::{self, Write};
use std::sync::Arc;

const ROW_GROUP: usize = 100_000;

/// The type of each column: texts, counts and numbers; all but the id may be undefined.
fn schema(columns: &[&str]) -> String {
    let column = |name: &&str| match *name {
        "id" => "required binary id (UTF8);".to_string(),
        "treatment" | "flags" => format!("optional binary {name} (UTF8);"),
        _ if name.contains("at_risk") => format!("optional int64 {name};"),
        _ => format!("optional double {name};"),
    };
    format!("message effects {{ {} }}", columns.iter().map(column).collect::<Vec<_>>().join(" "))
}

/// Writes effects.
pub fn write_effects<'a>(
    out: &mut (impl Write + Send),
    effects: &EffectTable<'a, impl Fn(usize) -> EffectRow<'a> + Sync>,
) -> io::Result<()> {
    let schema = Arc::new(parse_message_type(&schema(&effects.columns())).map_err(io::Error::other)?);
    let properties = Arc::new(WriterProperties::builder().set_compression(Compression::SNAPPY).build());
    let mut file = SerializedFileWriter::new(out, schema, properties).map_err(io::Error::other)?;
    for start in (0..effects.n).step_by(ROW_GROUP) {
        let rows: Vec<_> =
            (start..(start + ROW_GROUP).min(effects.n)).map(|i| (effects.row)(i).cells(&effects.layout)).collect();
        let mut group = file.next_row_group().map_err(io::Error::other)?;
        let mut j = 0;
        while let Some(mut column) = group.next_column().map_err(io::Error::other)? {
            let levels: Vec<i16> = rows.iter().map(|r| i16::from(r[j] != Cell::Nothing)).collect();
            let levels = (j > 0).then_some(levels.as_slice());
            let written = match column.untyped() {
                ColumnWriter::ByteArrayColumnWriter(w) => {
                    let text = |r: &Vec<Cell<'_>>| match &r[j] {
                        Cell::Text(t) => Some(ByteArray::from(t.as_bytes().to_vec())),
                        _ => None,
                    };
                    w.write_batch(&rows.iter().filter_map(text).collect::<Vec<_>>(), levels, None)
                }
                ColumnWriter::Int64ColumnWriter(w) => {
                    let count = |r: &Vec<Cell<'_>>| match r[j] {
                        Cell::Count(n) => Some(n as i64),
                        _ => None,
                    };
                    w.write_batch(&rows.iter().filter_map(count).collect::<Vec<_>>(), levels, None)
                }
                ColumnWriter::DoubleColumnWriter(w) => {
                    let number = |r: &Vec<Cell<'_>>| match r[j] {
                        Cell::Number(v) => Some(v),
                        _ => None,
                    };
                    w.write_batch(&rows.iter().filter_map(number).collect::<Vec<_>>(), levels, None)
                }
                _ => unreachable!("the schema has no other type"),
            };
            written.map_err(io::Error::other)?;
            column.close().map_err(io::Error::other)?;
            j += 1;
        }
        group.close().map_err(io::Error::other)?;
    }
    file.close().map_err(io::Error::other)?;
    Ok(())
}
