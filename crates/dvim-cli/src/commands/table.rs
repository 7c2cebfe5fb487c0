//! `dvim table`: one table of a run, for a paper.

use super::paths;
use crate::args::TableArgs;
use crate::{Failure, say};
use dvim_io::atomic::{Access, NewFile};
use dvim_io::office::zipped;
use dvim_io::run::read_summary;
use dvim_report::journal::{Journal, table};
use dvim_report::names::Names;

pub fn run(args: &TableArgs) -> Result<(), Failure> {
    let ending = args.output.extension().map_or(String::new(), |e| e.to_string_lossy().to_ascii_lowercase());
    let write: fn(&Journal) -> Vec<u8> = match ending.as_str() {
        "docx" => |t| zipped(&t.docx()),
        "xlsx" => |t| zipped(&t.xlsx()),
        "tex" => |t| t.tex().into_bytes(),
        "html" => |t| t.html().into_bytes(),
        "csv" => |t| t.csv().into_bytes(),
        _ => {
            return Err(Failure::Input(format!(
                "error: `{}` does not end in .docx, .xlsx, .tex, .html or .csv\n  rule:   the ending of the file decides its format\n  remedy: use -o table.docx",
                args.output.display()
            )));
        }
    };
    let own = dvim_io::run::files_of(&args.run);
    let file = NewFile::plan(&args.output, args.force, Access::Owner, &paths(&own))?;
    let summary = read_summary(&args.run)?;
    let names = Names::of(&summary, args.time_unit.as_deref());
    let made = table(&args.kind, &summary, &names).map_err(|why| {
        Failure::Input(format!(
            "error: {why}\n  rule:   a table is written from what summary.json holds\n  remedy: fit again with what is missing"
        ))
    })?;
    file.write(|out| out.write_all(&write(&made)))?;
    say(&format!("written to {}", args.output.display()));
    Ok(())
}
