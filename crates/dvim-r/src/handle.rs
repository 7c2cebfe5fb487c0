//! What R holds of the engine's: one type behind every external pointer, so that none can be taken for another.

use crate::answer::{Answer, Failure};
use dvim::internal::error::Error;
use dvim::internal::watch::Watch;
use dvim_bind::held::Held;
use dvim_bind::several::Several;
use dvim_bind::work::Job;
use dvim_explore::Stop;
use dvim_io::tasks::Compared;
use savvy::{savvy_err, ExternalPointerSexp, IntoExtPtrSexp, NullSexp, Sexp};
use std::sync::Arc;

/// Work that was started for R.
pub type Work = Job<Result<Answer, Failure>>;

/// Something that R holds.
pub enum Handle {
    Job(Work),
    Run(Arc<Held>),
    Several(Arc<Several>),
    Comparison(Arc<Compared>),
    Server(Serving),
}

impl IntoExtPtrSexp for Handle {}

/// A server that ends when R lets go of it.
pub struct Serving(pub Stop);

impl Drop for Serving {
    fn drop(&mut self) {
        self.0.stop();
    }
}

/// What an external pointer of R points to.
fn handle(pointer: &Sexp) -> savvy::Result<&Handle> {
    pointer.assert_external_pointer()?;
    // SAFETY: R's code makes no external pointers of its own, and hands this crate no others than those of `Handle`.
    let found: *const Handle = unsafe { ExternalPointerSexp(pointer.0).cast_unchecked() };
    // SAFETY: the pointer is null, or R keeps the value alive while it holds the pointer.
    unsafe { found.as_ref() }.ok_or_else(|| savvy_err!("gone"))
}

macro_rules! of_kind {
    ($name:ident, $kind:ident, $type:ty) => {
        pub fn $name(pointer: &Sexp) -> savvy::Result<&$type> {
            match handle(pointer)? {
                Handle::$kind(found) => Ok(found),
                _ => Err(savvy_err!("not a {}", stringify!($name))),
            }
        }
    };
}

of_kind!(job, Job, Work);
of_kind!(run, Run, Arc<Held>);
of_kind!(several, Several, Arc<Several>);
of_kind!(comparison, Comparison, Arc<Compared>);
of_kind!(serving, Server, Serving);

/// Whether a pointer has lost what it pointed to, as one that was saved with the session has.
pub fn is_gone(pointer: &Sexp) -> bool {
    handle(pointer).is_err()
}

/// Starts work for R; R waits for it.
pub fn start(
    threads: Option<usize>,
    work: impl FnOnce(&dyn Watch) -> Result<Answer, Failure> + Send + 'static,
) -> savvy::Result<Sexp> {
    // What cannot be had is refused by the job, as everything else that is asked for.
    let checked = dvim_io::threads::checked(threads);
    let job = Job::start(Some(*checked.as_ref().unwrap_or(&1)), move |watch| {
        Ok::<_, Error>(checked.map_err(|e| Failure::engine(&e)).and_then(|_| work(watch)))
    });
    match job {
        Ok(job) => Ok(Handle::Job(job).into_external_pointer()),
        Err(words) => Err(savvy_err!("{words}")),
    }
}

/// Nothing, for R.
pub fn nothing() -> savvy::Result<Sexp> {
    NullSexp.into()
}
