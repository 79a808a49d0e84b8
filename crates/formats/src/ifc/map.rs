//! The mapped model file: the only module that may use `unsafe`.

use std::fs::File;
use std::io;
use std::ops::Deref;

use memmap2::{Advice, Mmap};

/// The bytes of a model, mapped from its file, inflated from an archive or converted to UTF-8.
pub(super) enum Bytes {
    /// The file itself.
    Mapped(Mmap),
    /// The content of an archive, or the converted text.
    Copied(Vec<u8>),
}

impl Bytes {
    /// Maps `file`, which must not be empty.
    ///
    /// Mapped rather than read because records refer to each other all over the file and a model may be larger than
    /// the memory: a copy would count as memory of the reader, and a limit of memory would limit the size of models. A model that
    /// another program cuts short meanwhile ends the process with a bus error. So run the reader in a process of its own, as
    /// Milepost does: the bus error is an outcome there.
    #[allow(unsafe_code)]
    pub(super) fn map(file: &File) -> io::Result<Self> {
        // SAFETY: the map is read-only and private, and no reference into it outlives the returned value. Unix cannot prevent
        // another process from writing to the file meanwhile; every reader of the bytes takes arbitrary input, so that a change
        // leads to wrong values or an error, never to undefined indices.
        let map = unsafe { Mmap::map(file)? };
        Ok(Self::Mapped(map))
    }

    /// Tells the kernel that the bytes are about to be read from start to end.
    pub(super) fn read_through(&self) {
        self.advise(Advice::Sequential);
    }

    /// Tells the kernel that reading goes back and forth from here on.
    pub(super) fn read_about(&self) {
        self.advise(Advice::Normal);
    }

    /// Advice only makes reading faster, so a refusal is ignored.
    fn advise(&self, advice: Advice) {
        if let Self::Mapped(map) = self {
            let _ = map.advise(advice);
        }
    }
}

impl Deref for Bytes {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Mapped(map) => map,
            Self::Copied(bytes) => bytes,
        }
    }
}
