//! Tables on their way out, by column.

use dvim_report::tables::{Cell, ColumnKind, EffectRow, EffectTable};

/// A column: numbers with NaN where undefined, whole numbers with the rows that have none, or text.
pub enum Out {
    /// Numbers; NaN where undefined.
    Number(Vec<f64>),
    /// Whole numbers, and the rows that have none.
    Count(Vec<i64>, Vec<bool>),
    /// Texts; none where undefined.
    Text(Vec<Option<String>>),
}

/// Named columns.
pub type Columns = Vec<(String, Out)>;

/// The columns of effects: the cells that `effects.csv` has.
pub fn of_effects<'a>(table: &EffectTable<'a, impl Fn(usize) -> EffectRow<'a> + Sync>) -> Columns {
    let names = table.columns();
    let mut out: Vec<Option<Out>> = names.iter().map(|_| None).collect();
    for i in 0..table.n {
        for (column, cell) in out.iter_mut().zip((table.row)(i).cells(&table.layout)) {
            push(column, cell, i, table.n);
        }
    }
    let filled = |c: Option<Out>| c.unwrap_or_else(|| Out::undefined(ColumnKind::Number, table.n));
    names.into_iter().map(String::from).zip(out.into_iter().map(filled)).collect()
}

/// Adds a cell to a column whose kind is that of its first value; those before it were undefined.
fn push(column: &mut Option<Out>, cell: Cell<'_>, i: usize, n: usize) {
    let column = match column {
        Some(column) => column,
        None => column.insert(match cell {
            Cell::Nothing => return,
            Cell::Number(_) => Out::undefined(ColumnKind::Number, n),
            Cell::Count(_) => Out::undefined(ColumnKind::Count, n),
            Cell::Text(_) => Out::undefined(ColumnKind::Text, n),
        }),
    };
    column.set(i, cell);
}

impl Out {
    /// A column of `n` rows in which nothing is defined yet.
    fn undefined(kind: ColumnKind, n: usize) -> Out {
        match kind {
            ColumnKind::Text => Out::Text(vec![None; n]),
            ColumnKind::Number => Out::Number(vec![f64::NAN; n]),
            ColumnKind::Count => Out::Count(vec![0; n], vec![true; n]),
        }
    }

    /// Defines the value of a row.
    fn set(&mut self, i: usize, cell: Cell<'_>) {
        match (self, cell) {
            (Out::Number(v), Cell::Number(x)) => v[i] = x,
            (Out::Count(v, gaps), Cell::Count(x)) => (v[i], gaps[i]) = (x as i64, false),
            (Out::Text(v), Cell::Text(x)) => v[i] = Some(x.into_owned()),
            (_, Cell::Nothing) => {}
            (_, other) => unreachable!("a column has values of one kind, not {other:?}"),
        }
    }
}

/// The columns of a table whose rows are known cell by cell.
pub fn of_rows<'a, const N: usize>(
    columns: &[(&str, ColumnKind); N],
    rows: impl Iterator<Item = [Cell<'a>; N]>,
) -> Columns {
    let rows: Vec<[Cell<'a>; N]> = rows.collect();
    let mut out: Vec<Out> = columns.iter().map(|(_, kind)| Out::undefined(*kind, rows.len())).collect();
    for (i, row) in rows.into_iter().enumerate() {
        out.iter_mut().zip(row).for_each(|(column, cell)| column.set(i, cell));
    }
    columns.iter().map(|(name, _)| name.to_string()).zip(out).collect()
}

/// For [`of_csv`]: what each column of a table of results holds. Those that are not named hold numbers, also where
/// every one of them happens to be whole.
pub fn results(texts: &'static [&str], counts: &'static [&str]) -> impl Fn(&str) -> Option<ColumnKind> {
    move |name| {
        Some(if texts.contains(&name) {
            ColumnKind::Text
        } else if counts.contains(&name) {
            ColumnKind::Count
        } else {
            ColumnKind::Number
        })
    }
}

/// The columns of a table that is written as CSV, whose numbers have digits that read back as the same number. `kind`
/// says what a column holds; where it says nothing, the column holds what all its values can be read as.
pub fn of_csv(
    kind: impl Fn(&str) -> Option<ColumnKind>,
    write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>,
) -> Columns {
    let mut bytes = Vec::new();
    write(&mut bytes).expect("memory takes it");
    let mut reader = csv::Reader::from_reader(bytes.as_slice());
    let names: Vec<String> = reader.headers().expect("a header").iter().map(String::from).collect();
    let mut cells: Vec<Vec<String>> = names.iter().map(|_| Vec::new()).collect();
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).expect("rows of equal length") {
        cells.iter_mut().zip(&record).for_each(|(column, cell)| column.push(cell.to_string()));
    }
    let column = |(name, cells): (String, Vec<String>)| {
        let kind = kind(&name).unwrap_or_else(|| kind_of(&cells));
        let mut out = Out::undefined(kind, cells.len());
        for (i, cell) in cells.into_iter().enumerate().filter(|(_, c)| !c.is_empty()) {
            out.set(
                i,
                match kind {
                    ColumnKind::Text => Cell::Text(cell.into()),
                    ColumnKind::Number => Cell::Number(cell.parse().expect("a number")),
                    ColumnKind::Count => Cell::Count(cell.parse().expect("a count")),
                },
            );
        }
        (name, out)
    };
    names.into_iter().zip(cells).map(column).collect()
}

/// What all of these texts can be read as; gaps are left to columns of numbers and of texts.
fn kind_of(cells: &[String]) -> ColumnKind {
    let there = || cells.iter().filter(|c| !c.is_empty());
    if there().any(|c| c.parse::<f64>().is_err()) {
        ColumnKind::Text
    } else if cells.iter().all(|c| c.parse::<usize>().is_ok()) {
        ColumnKind::Count
    } else {
        ColumnKind::Number
    }
}
