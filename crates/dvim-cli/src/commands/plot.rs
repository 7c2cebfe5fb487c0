//! `dvim plot`: one figure of a run, for a paper.

use super::{open_run, paths, use_threads};
use crate::args::PlotArgs;
use crate::progress::Progress;
use crate::{Failure, say};
use dvim::internal::analysis::Analysis;
use dvim_io::atomic::{Access, NewFile};
use dvim_report::figures::{Look, draw};
use dvim_report::report::Page;

/// Pixels in a millimetre at 96 to the inch.
const PIXELS: f64 = 96.0 / 25.4;

/// The formats, by the ending of a file.
#[derive(Clone, Copy, PartialEq)]
enum Format {
    Svg,
    Pdf,
    Png,
}

pub fn run(args: &PlotArgs) -> Result<(), Failure> {
    use_threads(&args.threads)?;
    let ending = args.output.extension().map_or(String::new(), |e| e.to_string_lossy().to_ascii_lowercase());
    let format = match ending.as_str() {
        "svg" => Format::Svg,
        "pdf" => Format::Pdf,
        "png" => Format::Png,
        _ => {
            return Err(Failure::Input(format!(
                "error: `{}` does not end in .svg, .pdf or .png\n  rule:   the ending of the file decides its format\n  remedy: use -o figure.svg",
                args.output.display()
            )));
        }
    };
    if format != Format::Svg && !cfg!(feature = "print") {
        return Err(Failure::Input(format!(
            "error: this dvim was built without {}\n  rule:   PDF and PNG need the cargo feature `print`, which is on unless a build turns it off\n  remedy: use -o figure.svg, which browsers and Inkscape turn into PDF, or build with cargo build --release",
            ending.to_uppercase()
        )));
    }
    if !(74.0..=600.0).contains(&args.width) {
        return Err(Failure::Input(format!(
            "error: --width is {}\n  rule:   figures are 74 to 600 mm wide; letters keep their size, 9 points\n  remedy: use --width 85 for one column, --width 180 for two",
            args.width
        )));
    }
    let own = dvim_io::run::files_of(&args.run);
    let file = NewFile::plan(&args.output, args.force, Access::Owner, &paths(&own))?;
    let progress = Progress::new();
    let run = open_run(&args.run)?;
    let page = Page { time_unit: args.time_unit.clone(), ..Page::default() };
    let look = Look { width: args.width * PIXELS, names: page.names(&run.summary) };
    let analysis = if args.kind.needs_effects() {
        Some(Analysis::reopened(run.fit.clone(), &run.corrected, run.stored.clone(), &run.cohort, &progress)?)
    } else {
        None
    };
    let svg = draw(&args.kind, &run.cohort, &run.fit, &run.corrected, analysis.as_ref(), &run.summary, &look)
        .map_err(|why| Failure::Input(if why.starts_with("error") { why } else { format!("error: {why}") }))?;
    let bytes = match format {
        Format::Svg => svg.into_bytes(),
        _ => printed(&svg, format, args.dpi)?,
    };
    file.write(|out| out.write_all(&bytes))?;
    say(&format!("written to {}", args.output.display()));
    Ok(())
}

#[cfg(feature = "print")]
fn printed(svg: &str, format: Format, dpi: f64) -> Result<Vec<u8>, Failure> {
    use dvim_report::plot::print;
    if !(36.0..=1200.0).contains(&dpi) {
        return Err(Failure::Input(format!(
            "error: --dpi is {dpi}\n  rule:   36 to 1200 dots in an inch\n  remedy: use --dpi 300"
        )));
    }
    let unknown = print::unknown_characters(svg);
    if !unknown.is_empty() {
        say(&format!(
            "warning: the font of PDF and PNG has no sign for `{unknown}`\n  rule:   it has Latin, Greek and Cyrillic letters\n  remedy: use -o figure.svg, which is shown in the fonts of the reader"
        ));
    }
    let made = if format == Format::Pdf { print::pdf(svg) } else { print::png(svg, dpi) };
    made.map_err(|e| Failure::Other(format!("error: {e}")))
}

#[cfg(not(feature = "print"))]
fn printed(_: &str, _: Format, _: f64) -> Result<Vec<u8>, Failure> {
    Err(Failure::Other("error: built without the feature `print`".into()))
}
