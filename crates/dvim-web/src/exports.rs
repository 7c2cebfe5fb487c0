//! What JavaScript calls. Bytes go in through [`dvim_take`], answers come out of [`dvim_answer`] and its length.
//!
//! The page and this file agree on the order of the arguments; nothing else calls it.

use crate::session::{Refusal, Session};
use dvim::internal::watch::Watch;
use std::cell::RefCell;

#[link(wasm_import_module = "dvim")]
unsafe extern "C" {
    /// A stage of the work, the steps done and their number.
    fn progress(stage: *const u8, length: usize, done: usize, total: usize);
    /// What a panic says before the program stops.
    fn broken(words: *const u8, length: usize);
}

thread_local! {
    static SESSION: RefCell<Session> = RefCell::default();
    static ANSWER: RefCell<Vec<u8>> = RefCell::default();
    /// What the page handed over and no function took yet, in order.
    static GIVEN: RefCell<Vec<Vec<u8>>> = RefCell::default();
}

struct Page;

impl Watch for Page {
    fn progress(&self, stage: &'static str, done: usize, total: usize) {
        // SAFETY: the page reads these bytes before it returns.
        unsafe { progress(stage.as_ptr(), stage.len(), done, total) }
    }
}

/// Says what a panic says, before it stops the program. To be called first.
#[unsafe(no_mangle)]
pub extern "C" fn dvim_start() {
    std::panic::set_hook(Box::new(|info| {
        let words = info.to_string();
        // SAFETY: as above.
        unsafe { broken(words.as_ptr(), words.len()) }
    }));
}

/// Makes room for the next argument, and says where.
#[unsafe(no_mangle)]
pub extern "C" fn dvim_take(length: usize) -> *mut u8 {
    GIVEN.with_borrow_mut(|given| {
        given.push(vec![0; length]);
        given.last_mut().map_or(std::ptr::null_mut(), |bytes| bytes.as_mut_ptr())
    })
}

/// Where the last answer is.
#[unsafe(no_mangle)]
pub extern "C" fn dvim_answer() -> *const u8 {
    ANSWER.with_borrow(|a| a.as_ptr())
}

/// The length of the last answer.
#[unsafe(no_mangle)]
pub extern "C" fn dvim_answer_length() -> usize {
    ANSWER.with_borrow(Vec::len)
}

/// Keeps an answer. 0 where it is one, 1 where it is a refusal.
fn keep(found: Result<Vec<u8>, Refusal>) -> u32 {
    let (code, answer) = match found {
        Ok(answer) => (0, answer),
        Err(Refusal(words)) => (1, words.into_bytes()),
    };
    ANSWER.set(answer);
    code
}

/// Calls `f` with the session and the arguments that were handed over.
fn call<const N: usize>(f: impl FnOnce(&mut Session, [Vec<u8>; N]) -> Result<Vec<u8>, Refusal>) -> u32 {
    let given: Result<[Vec<u8>; N], _> = GIVEN.take().try_into();
    match given {
        Ok(given) => keep(SESSION.with_borrow_mut(|session| f(session, given))),
        Err(_) => keep(Err(Refusal("error: the page and the program do not fit each other".into()))),
    }
}

fn text(bytes: &[u8]) -> std::borrow::Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// [`Session::demo`].
#[unsafe(no_mangle)]
pub extern "C" fn dvim_demo() -> u32 {
    call(|_, []| Ok(Session::demo()))
}

/// [`Session::open`]: name, bytes.
#[unsafe(no_mangle)]
pub extern "C" fn dvim_open() -> u32 {
    call(|session, [name, bytes]| session.open(&text(&name), bytes).map(String::into_bytes))
}

/// [`Session::check`]: the question.
#[unsafe(no_mangle)]
pub extern "C" fn dvim_check() -> u32 {
    call(|session, [question]| session.check(&text(&question)).map(String::into_bytes))
}

/// [`Session::fit`]: the question.
#[unsafe(no_mangle)]
pub extern "C" fn dvim_fit() -> u32 {
    call(|session, [question]| session.fit(&text(&question), &Page).map(String::into_bytes))
}

/// [`Session::file`]: the name.
#[unsafe(no_mangle)]
pub extern "C" fn dvim_file() -> u32 {
    call(|session, [name]| session.file(&text(&name)))
}

/// [`Session::explore`]: method, target, body.
#[unsafe(no_mangle)]
pub extern "C" fn dvim_explore() -> u32 {
    call(|session, [method, target, body]| session.explore(&text(&method), &text(&target), &body))
}
