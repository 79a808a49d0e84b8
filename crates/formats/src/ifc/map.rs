//! The bytes of a model file: the only module that may use `unsafe`.

use std::fs::File;
use std::io::{self, Read};
use std::ops::Deref;

use memmap2::{Advice, Mmap};

/// Files up to this size are read.
const READ: u64 = 256 << 20;

/// The bytes of a model.
pub(super) enum Bytes {
    /// The file itself.
    Mapped(Mmap),
    /// A copy of the file, or what an archive held.
    Read(Vec<u8>),
}

impl Bytes {
    /// Reads or maps `file`, which has `size` bytes and must not be empty.
    ///
    /// A file that is read may change meanwhile: what was read is a whole model or an incomplete one. Copying takes a few
    /// hundredths of the time that the model takes. Only a larger model, whose copy may not fit into memory, is mapped: if
    /// another program cuts it short meanwhile, the process ends with a bus error.
    #[allow(unsafe_code)]
    pub(super) fn of(file: &File, size: u64) -> io::Result<Self> {
        if size <= READ {
            let mut bytes = Vec::with_capacity(size as usize + 1);
            file.take(READ).read_to_end(&mut bytes)?;
            return Ok(Self::Read(bytes));
        }
        // SAFETY: the map is read-only and private, and no reference into it outlives the value that is returned. That
        // nobody writes to the file meanwhile cannot be guaranteed on Unix; every reader of the bytes takes arbitrary
        // input, so that a change leads to wrong values or an error, never to undefined indices.
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

    /// Advice only makes reading faster, so that a kernel which refuses it is no error.
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
            Self::Read(bytes) => bytes,
        }
    }
}
