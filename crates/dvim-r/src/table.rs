//! A data frame as a table of the engine: numbers without loss, text by level, ids without loss.

use dvim::internal::table::{Column, Ids, Numbers, Table, Values};
use dvim_bind::text::TextBuilder;
use dvim_io::read::ids_of_texts;
use savvy::{savvy_err, ListSexp, NotAvailableValue, Sexp, StringSexp, TypedSexp};

/// The table of a named list of vectors. `id` is read as identifiers.
pub fn table(columns: &ListSexp, id: Option<&str>) -> savvy::Result<Result<Table, String>> {
    let mut out = Vec::with_capacity(columns.len());
    for (name, values) in columns.iter() {
        let values = if id == Some(name) { Values::Id(ids(values)?) } else { column(values)? };
        out.push(Column { name: name.trim().to_string(), values });
    }
    Ok(Table::new(out).map_err(|e| e.to_string()))
}

fn column(values: Sexp) -> savvy::Result<Values> {
    if let Some(levels) = levels_of(&values)? {
        return Ok(Values::Text(of_factor(values, &levels)?.finish()));
    }
    Ok(match values.into_typed() {
        TypedSexp::Real(v) => Values::Number(Numbers::from(v.to_vec())),
        TypedSexp::Integer(v) => {
            let number = |x: &i32| if x.is_na() { f64::NAN } else { f64::from(*x) };
            Values::Number(Numbers::from(v.iter().map(number).collect::<Vec<_>>()))
        }
        TypedSexp::Logical(v) => {
            // R's NA is neither 0 nor 1.
            let rows = v.as_slice_raw().iter().map(|x| usize::try_from(*x).ok());
            Values::Text(TextBuilder::of_levels(&["false", "true"], rows).finish())
        }
        TypedSexp::String(v) => {
            let mut builder = TextBuilder::default();
            v.iter().for_each(|t| builder.push((!t.is_na()).then_some(t)));
            Values::Text(builder.finish())
        }
        other => return Err(savvy_err!("a column has no {}", Sexp(other.into()).get_human_readable_type_name())),
    })
}

/// The levels of a factor.
fn levels_of(values: &Sexp) -> savvy::Result<Option<Vec<&'static str>>> {
    if !values.get_class().is_some_and(|c| c.contains(&"factor")) {
        return Ok(None);
    }
    match values.get_attrib("levels")? {
        Some(levels) => Ok(Some(StringSexp::try_from(levels)?.to_vec())),
        None => Ok(None),
    }
}

fn of_factor(values: Sexp, levels: &[&str]) -> savvy::Result<TextBuilder> {
    match values.into_typed() {
        // Codes count from one; NA is negative.
        TypedSexp::Integer(v) => {
            Ok(TextBuilder::of_levels(levels, v.as_slice().iter().map(|c| usize::try_from(i64::from(*c) - 1).ok())))
        }
        _ => Err(savvy_err!("a factor holds the positions of its levels")),
    }
}

fn ids(values: Sexp) -> savvy::Result<Ids> {
    if let Some(levels) = levels_of(&values)? {
        return Ok(of_factor(values, &levels)?.ids());
    }
    let of_texts = |all: Vec<String>| ids_of_texts(all.iter().map(String::as_str));
    Ok(match values.into_typed() {
        TypedSexp::Integer(v) if v.iter().all(|x| !x.is_na()) => {
            Ids::Integers(v.iter().map(|x| i64::from(*x)).collect())
        }
        TypedSexp::Integer(v) => {
            of_texts(v.iter().map(|x| if x.is_na() { String::new() } else { x.to_string() }).collect())
        }
        TypedSexp::Real(v) if v.iter().all(|x| x.fract() == 0.0 && x.abs() < 9e15) => {
            Ids::Integers(v.iter().map(|x| *x as i64).collect())
        }
        TypedSexp::Real(v) => {
            of_texts(v.iter().map(|x| if x.is_nan() { String::new() } else { x.to_string() }).collect())
        }
        TypedSexp::String(v) => of_texts(v.iter().map(|t| if t.is_na() { String::new() } else { t.into() }).collect()),
        other => return Err(savvy_err!("ids are no {}", Sexp(other.into()).get_human_readable_type_name())),
    })
}
