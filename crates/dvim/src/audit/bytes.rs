//! Numbers as bytes, little-endian, one after the other: how what averages need travels between machines.

/// What is written.
#[derive(Default)]
pub(super) struct Out(pub(super) Vec<u8>);

impl Out {
    pub(super) fn number(&mut self, x: f64) {
        self.0.extend_from_slice(&x.to_le_bytes());
    }

    pub(super) fn count(&mut self, n: usize) {
        self.0.extend_from_slice(&(n as u64).to_le_bytes());
    }

    pub(super) fn numbers(&mut self, all: &[f64]) {
        self.count(all.len());
        all.iter().for_each(|x| self.number(*x));
    }

    pub(super) fn text(&mut self, text: &str) {
        self.count(text.len());
        self.0.extend_from_slice(text.as_bytes());
    }

    /// A list.
    pub(super) fn each<T>(&mut self, all: &[T], mut one: impl FnMut(&mut Out, &T)) {
        self.count(all.len());
        all.iter().for_each(|x| one(self, x));
    }

    /// Something that may not be there.
    pub(super) fn maybe<T>(&mut self, of: Option<&T>, one: impl FnOnce(&mut Out, &T)) {
        self.count(usize::from(of.is_some()));
        if let Some(x) = of {
            one(self, x);
        }
    }
}

/// What is left to read. Every part is `None` where the bytes end too early or make no sense.
pub(super) struct In<'a>(pub(super) &'a [u8]);

impl<'a> In<'a> {
    pub(super) fn take(&mut self, n: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(n)?;
        self.0 = rest;
        Some(taken)
    }

    pub(super) fn number(&mut self) -> Option<f64> {
        Some(f64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }

    pub(super) fn count(&mut self) -> Option<usize> {
        usize::try_from(u64::from_le_bytes(self.take(8)?.try_into().ok()?)).ok()
    }

    pub(super) fn numbers(&mut self) -> Option<Vec<f64>> {
        self.each(8, In::number)
    }

    pub(super) fn text(&mut self) -> Option<String> {
        let n = self.count()?;
        String::from_utf8(self.take(n)?.to_vec()).ok()
    }

    /// A list of things of this many bytes at least.
    pub(super) fn each<T>(&mut self, least: usize, mut one: impl FnMut(&mut In<'a>) -> Option<T>) -> Option<Vec<T>> {
        let n = self.count()?;
        // A length that the bytes cannot hold must not ask for memory.
        if n.checked_mul(least.max(1))? > self.0.len() {
            return None;
        }
        (0..n).map(|_| one(self)).collect()
    }

    pub(super) fn maybe<T>(&mut self, one: impl FnOnce(&mut In<'a>) -> Option<T>) -> Option<Option<T>> {
        match self.count()? {
            0 => Some(None),
            1 => one(self).map(Some),
            _ => None,
        }
    }
}
