//! Records and tables between the engine and R: lists, vectors and data frames.

use dvim_bind::columns::{Columns, Out};
use savvy::{
    savvy_err, ListSexp, NotAvailableValue, NullSexp, OwnedIntegerSexp, OwnedListSexp, OwnedLogicalSexp, OwnedRealSexp,
    OwnedStringSexp, Sexp, TypedSexp,
};
use serde_json::{Map, Value};

/// R's missing real. It is a NaN, so an undefined number needs no more than this.
fn na_real() -> f64 {
    f64::na()
}

/// Puts a named value into a list. The value comes first: nothing else keeps it alive while R makes room for the name.
pub fn put(list: &mut OwnedListSexp, i: usize, name: &str, value: Sexp) -> savvy::Result<()> {
    list.set_value(i, value)?;
    list.set_name(i, name)
}

/// A record as R has it: objects are named lists; arrays of numbers, of texts or of truths are vectors, with NA where a
/// value is null; other arrays are lists.
pub fn to_r(value: &Value) -> savvy::Result<Sexp> {
    match value {
        Value::Null => NullSexp.into(),
        Value::Bool(b) => OwnedLogicalSexp::try_from_scalar(*b)?.into(),
        Value::Number(n) => OwnedRealSexp::try_from_scalar(n.as_f64().unwrap_or_else(na_real))?.into(),
        Value::String(s) => OwnedStringSexp::try_from_scalar(s.as_str())?.into(),
        Value::Object(fields) => {
            let mut out = OwnedListSexp::new(fields.len(), true)?;
            for (i, (name, value)) in fields.iter().enumerate() {
                put(&mut out, i, name, to_r(value)?)?;
            }
            out.into()
        }
        Value::Array(values) => array_to_r(values),
    }
}

fn array_to_r(values: &[Value]) -> savvy::Result<Sexp> {
    let all = |is: fn(&Value) -> bool| values.iter().any(is) && values.iter().all(|v| v.is_null() || is(v));
    if all(Value::is_number) {
        let number = |v: &Value| v.as_f64().unwrap_or_else(na_real);
        return OwnedRealSexp::try_from_iter(values.iter().map(number))?.into();
    }
    if all(Value::is_string) {
        return texts_to_r(values.len(), |i| values[i].as_str())?.into();
    }
    if all(Value::is_boolean) {
        let mut out = OwnedLogicalSexp::new(values.len())?;
        for (i, v) in values.iter().enumerate() {
            match v.as_bool() {
                Some(b) => out.set_elt(i, b)?,
                None => out.set_na(i)?,
            }
        }
        return out.into();
    }
    let mut out = OwnedListSexp::new(values.len(), false)?;
    for (i, v) in values.iter().enumerate() {
        out.set_value(i, to_r(v)?)?;
    }
    out.into()
}

fn texts_to_r<'a>(n: usize, text: impl Fn(usize) -> Option<&'a str>) -> savvy::Result<OwnedStringSexp> {
    let mut out = OwnedStringSexp::new(n)?;
    for i in 0..n {
        match text(i) {
            Some(t) => out.set_elt(i, t)?,
            None => out.set_na(i)?,
        }
    }
    Ok(out)
}

/// Columns as a named list of vectors, which R makes a data frame of.
pub fn columns_to_r(columns: &Columns) -> savvy::Result<Sexp> {
    let mut out = OwnedListSexp::new(columns.len(), true)?;
    for (i, (name, column)) in columns.iter().enumerate() {
        let values: Sexp = match column {
            Out::Number(v) => {
                let mut out = OwnedRealSexp::new(v.len())?;
                let defined = |x: &f64| if x.is_nan() { na_real() } else { *x };
                out.as_mut_slice().iter_mut().zip(v).for_each(|(out, x)| *out = defined(x));
                Sexp::from(out)
            }
            Out::Count(v, gaps) => match whole(v, gaps) {
                Some(whole) => Sexp::from(OwnedIntegerSexp::try_from_slice(whole)?),
                None => {
                    let numbers = v.iter().zip(gaps).map(|(x, gap)| if *gap { na_real() } else { *x as f64 });
                    Sexp::from(OwnedRealSexp::try_from_iter(numbers)?)
                }
            },
            Out::Text(v) => Sexp::from(texts_to_r(v.len(), |i| v[i].as_deref())?),
        };
        put(&mut out, i, name, values)?;
    }
    out.into()
}

/// Whole numbers as R's integers, where they are small enough.
fn whole(values: &[i64], gaps: &[bool]) -> Option<Vec<i32>> {
    let one = |(x, gap): (&i64, &bool)| if *gap { Some(i32::na()) } else { i32::try_from(*x).ok() };
    values.iter().zip(gaps).map(one).collect()
}

/// What R asks for, as a record: named lists are objects, other lists are arrays, and a vector of one value is that
/// value.
pub fn from_r(value: Sexp) -> savvy::Result<Value> {
    let number = |x: f64| match x {
        x if x.is_nan() => Value::Null,
        // Counts of the engine are whole numbers; R's are doubles.
        x if x.fract() == 0.0 && x.abs() < 9e15 => Value::from(x as i64),
        x => Value::from(x),
    };
    let one = |values: Vec<Value>| match <[Value; 1]>::try_from(values) {
        Ok([one]) => Ok(one),
        Err(several) => Ok(Value::Array(several)),
    };
    match value.into_typed() {
        TypedSexp::Null(_) => Ok(Value::Null),
        TypedSexp::Real(v) => one(v.iter().map(|x| number(*x)).collect()),
        TypedSexp::Integer(v) => one(v.iter().map(|x| if x.is_na() { Value::Null } else { (*x).into() }).collect()),
        TypedSexp::Logical(v) => one(v.iter().map(Value::from).collect()),
        TypedSexp::String(v) => one(v.iter().map(|x| if x.is_na() { Value::Null } else { x.into() }).collect()),
        TypedSexp::List(v) => list_from_r(&v),
        other => Err(savvy_err!("a record has no {}", Sexp(other.into()).get_human_readable_type_name())),
    }
}

fn list_from_r(list: &ListSexp) -> savvy::Result<Value> {
    // A list without names has empty ones.
    if list.iter().all(|(name, _)| name.is_empty()) {
        return Ok(Value::Array(list.values_iter().map(from_r).collect::<savvy::Result<_>>()?));
    }
    let field = |(name, value): (&str, Sexp)| Ok((name.to_string(), from_r(value)?));
    Ok(Value::Object(list.iter().map(field).collect::<savvy::Result<Map<_, _>>>()?))
}

/// Texts of a character vector.
pub fn texts(value: Sexp) -> savvy::Result<Vec<String>> {
    match value.into_typed() {
        TypedSexp::Null(_) => Ok(Vec::new()),
        TypedSexp::String(v) => Ok(v.iter().map(String::from).collect()),
        other => Err(savvy_err!("not text but {}", Sexp(other.into()).get_human_readable_type_name())),
    }
}

/// One text, or none.
pub fn text(value: Sexp) -> savvy::Result<Option<String>> {
    Ok(texts(value)?.into_iter().next())
}

/// Numbers of a numeric vector.
pub fn numbers(value: Sexp) -> savvy::Result<Option<Vec<f64>>> {
    match value.into_typed() {
        TypedSexp::Null(_) => Ok(None),
        TypedSexp::Real(v) => Ok(Some(v.to_vec())),
        TypedSexp::Integer(v) => Ok(Some(v.iter().map(|x| f64::from(*x)).collect())),
        other => Err(savvy_err!("no numbers but {}", Sexp(other.into()).get_human_readable_type_name())),
    }
}

/// One number, or none.
pub fn number(value: Sexp) -> savvy::Result<Option<f64>> {
    Ok(numbers(value)?.and_then(|v| v.first().copied()))
}

/// One count, or none.
pub fn count(value: Sexp) -> savvy::Result<Option<usize>> {
    Ok(number(value)?.map(|x| x as usize))
}
