//! What the faces of dvim in other languages share, so that Python and R differ in conversion alone: what is asked for,
//! as JSON; columns of text on their way in; tables by column on their way out; a run that a program holds; and long
//! work beside an interpreter.

pub mod asked;
pub mod columns;
pub mod executor;
pub mod held;
pub mod several;
pub mod text;
pub mod work;

/// A record as JSON.
pub fn json(record: &impl serde::Serialize) -> String {
    serde_json::to_string(record).expect("records are made of numbers, texts and lists")
}
