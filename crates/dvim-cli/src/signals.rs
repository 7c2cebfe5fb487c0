//! Signals that end the command: Ctrl-C, `kill`, a closed terminal. What is unfinished is removed first.

use std::sync::{Mutex, PoisonError};

/// What a signal calls instead of ending the process, once.
static INSTEAD: Mutex<Option<Box<dyn FnOnce() + Send>>> = Mutex::new(None);

/// Lets the next signal call `stop` instead of ending the process. A second one ends it.
pub(crate) fn instead(stop: impl FnOnce() + Send + 'static) {
    *INSTEAD.lock().unwrap_or_else(PoisonError::into_inner) = Some(Box::new(stop));
}

/// Whether a signal was taken by [`instead`].
fn is_taken() -> bool {
    let stop = INSTEAD.lock().unwrap_or_else(PoisonError::into_inner).take();
    stop.map(|stop| stop()).is_some()
}

/// Removes what is unfinished and ends the process.
fn end(code: i32) -> ! {
    dvim_io::atomic::remove_all();
    crate::say("\nstopped; unfinished files were removed");
    std::process::exit(code)
}

/// Says why where the process has to end at once: Rust ends it so when memory cannot be had. The exit code is 1; files
/// that are being written stay hidden, and the next command names them.
#[cfg(unix)]
pub(crate) fn explain_abort() {
    use nix::libc::{_exit, STDERR_FILENO, c_int, write};
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
    const WORDS: &str = "error: dvim had to stop at once, most likely because memory ran out\n  \
                         rule:   an output appears whole or not at all, so none was written\n  \
                         remedy: take fewer rows, covariates or --threads, or raise the limit of memory (`ulimit -v`)\n";
    extern "C" fn explain(_: c_int) {
        // SAFETY: both calls are allowed in a handler of signals, and the bytes are static.
        unsafe {
            write(STDERR_FILENO, WORDS.as_ptr().cast(), WORDS.len());
            _exit(1)
        }
    }
    let action = SigAction::new(SigHandler::Handler(explain), SaFlags::empty(), SigSet::empty());
    // SAFETY: the handler calls nothing but what is allowed there.
    let _ = unsafe { sigaction(Signal::SIGABRT, &action) };
}

#[cfg(not(unix))]
pub(crate) fn explain_abort() {}

/// Waits for signals on a thread of its own. To be called before any other thread is started: they inherit that
/// signals wait for it. A signal that the parent ignores (`nohup`) stays ignored.
#[cfg(unix)]
pub(crate) fn watch() {
    use nix::sys::signal::{SaFlags, SigAction, SigHandler, SigSet, Signal, sigaction};
    let mut watched = SigSet::empty();
    for signal in [Signal::SIGINT, Signal::SIGTERM, Signal::SIGHUP] {
        let usual = SigAction::new(SigHandler::SigDfl, SaFlags::empty(), SigSet::empty());
        // SAFETY: neither the usual action nor the one from before this process runs code of ours in a handler.
        let before = unsafe { sigaction(signal, &usual) };
        match before {
            Ok(before) if matches!(before.handler(), SigHandler::SigIgn) => {
                // SAFETY: to ignore a signal runs no code.
                let _ = unsafe { sigaction(signal, &before) };
            }
            Ok(_) => watched.add(signal),
            Err(_) => {}
        }
    }
    if watched.thread_block().is_err() {
        return;
    }
    let wait = move || {
        while let Ok(signal) = watched.wait() {
            if !is_taken() {
                // A second signal ends the process at once, should the disk not answer.
                let _ = watched.thread_unblock();
                end(128 + signal as i32);
            }
        }
    };
    if std::thread::Builder::new().name("signals".into()).spawn(wait).is_err() {
        let _ = watched.thread_unblock();
    }
}

/// Waits for Ctrl-C on a thread of its own.
#[cfg(not(unix))]
pub(crate) fn watch() {
    let _ = ctrlc::set_handler(|| {
        if !is_taken() {
            end(130);
        }
    });
}
