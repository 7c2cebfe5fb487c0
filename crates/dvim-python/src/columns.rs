//! Tables on their way out: columns as bytes of an array, or as lists of text.

use dvim_report::tables::{Cell, EffectRow, EffectTable};
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyList, PyTuple};

/// A column: numbers with NaN where undefined, whole numbers with the rows that have none, or text.
pub enum Out {
    Number(Vec<f64>),
    Count(Vec<i64>, Vec<bool>),
    Text(Vec<Option<String>>),
}

/// Named columns.
pub type Columns = Vec<(String, Out)>;

fn bytes<'py, T>(py: Python<'py>, values: &[T], one: impl Fn(&T) -> [u8; 8]) -> PyResult<Bound<'py, PyByteArray>> {
    PyByteArray::new_with(py, 8 * values.len(), |out| {
        out.chunks_exact_mut(8).zip(values).for_each(|(out, v)| out.copy_from_slice(&one(v)));
        Ok(())
    })
}

/// For Python: tuples of name, kind, values and, where some are missing, marks.
pub fn to_python(py: Python<'_>, columns: Columns) -> PyResult<Bound<'_, PyList>> {
    let out = PyList::empty(py);
    for (name, column) in columns {
        let tuple = match column {
            Out::Number(v) => (name, "f8", bytes(py, &v, |x| x.to_ne_bytes())?, py.None()).into_pyobject(py)?,
            Out::Count(v, gaps) => {
                let marks: Py<PyAny> = if gaps.contains(&true) {
                    let marks: Vec<u8> = gaps.into_iter().map(u8::from).collect();
                    PyByteArray::new(py, &marks).into_any().unbind()
                } else {
                    py.None()
                };
                (name, "i8", bytes(py, &v, |x| x.to_ne_bytes())?, marks).into_pyobject(py)?
            }
            Out::Text(v) => (name, "text", PyList::new(py, v)?, py.None()).into_pyobject(py)?,
        };
        out.append(tuple.cast_into::<PyTuple>()?)?;
    }
    Ok(out)
}

/// The columns of effects: the cells that `effects.csv` has.
pub fn of_effects<'a>(table: &EffectTable<'a, impl Fn(usize) -> EffectRow<'a> + Sync>) -> Columns {
    let names = table.columns();
    let mut out: Vec<Option<Out>> = names.iter().map(|_| None).collect();
    for i in 0..table.n {
        for (column, cell) in out.iter_mut().zip((table.row)(i).cells(&table.layout)) {
            push(column, cell, i, table.n);
        }
    }
    let filled = |c: Option<Out>| c.unwrap_or_else(|| Out::Number(vec![f64::NAN; table.n]));
    names.into_iter().map(String::from).zip(out.into_iter().map(filled)).collect()
}

/// Adds a cell to a column whose kind is that of its first value; those before it were undefined.
fn push(column: &mut Option<Out>, cell: Cell<'_>, i: usize, n: usize) {
    let column = match column {
        Some(column) => column,
        None => column.insert(match cell {
            Cell::Nothing => return,
            Cell::Number(_) => Out::Number(vec![f64::NAN; n]),
            Cell::Count(_) => Out::Count(vec![0; n], vec![true; n]),
            Cell::Text(_) => Out::Text(vec![None; n]),
        }),
    };
    match (column, cell) {
        (Out::Number(v), Cell::Number(x)) => v[i] = x,
        (Out::Count(v, gaps), Cell::Count(x)) => (v[i], gaps[i]) = (x as i64, false),
        (Out::Text(v), Cell::Text(x)) => v[i] = Some(x.into_owned()),
        _ => {}
    }
}

/// The columns of a table that is written as CSV. Numbers were written with digits that read back as the same number; a
/// column is of numbers if every value that is there is one. `texts` names columns that are text whatever they look like.
pub fn of_csv(texts: &[&str], write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> Columns {
    let mut bytes = Vec::new();
    write(&mut bytes).expect("memory takes it");
    let mut reader = csv::Reader::from_reader(bytes.as_slice());
    let names: Vec<String> = reader.headers().expect("a header").iter().map(String::from).collect();
    let mut cells: Vec<Vec<String>> = names.iter().map(|_| Vec::new()).collect();
    let mut record = csv::StringRecord::new();
    while reader.read_record(&mut record).expect("rows of equal length") {
        cells.iter_mut().zip(&record).for_each(|(column, cell)| column.push(cell.to_string()));
    }
    names
        .into_iter()
        .zip(cells)
        .map(|(name, cells)| {
            let keep = texts.contains(&name.as_str());
            (name, column_of(cells, keep))
        })
        .collect()
}

fn column_of(cells: Vec<String>, keep: bool) -> Out {
    let there = || cells.iter().filter(|c| !c.is_empty());
    let n_there = there().count();
    if keep || there().any(|c| c.parse::<f64>().is_err()) {
        return Out::Text(cells.into_iter().map(|c| Some(c).filter(|c| !c.is_empty())).collect());
    }
    let whole: Option<Vec<i64>> = there().map(|c| c.parse().ok()).collect();
    match whole {
        Some(whole) if n_there == cells.len() => Out::Count(whole, vec![false; n_there]),
        _ => Out::Number(cells.iter().map(|c| c.parse().unwrap_or(f64::NAN)).collect()),
    }
}
