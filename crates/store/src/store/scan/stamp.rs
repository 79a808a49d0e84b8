//! The stamp of a file: what the file system reports without reading the file, and what changes with it.

use std::fs::Metadata;
use std::os::unix::fs::MetadataExt;

/// A file that changed this shortly before it was looked at may have changed again with the same times (their steps are up to 2 s
/// wide on some file systems), so what was recorded of it is not believed. In nanoseconds.
const TOO_YOUNG: i64 = 2_000_000_000;

/// The same where the file system's times show that their steps are the kernel's: 10 ms at most.
const TOO_YOUNG_BY_FINE_TIMES: i64 = 100_000_000;

/// Steps of a file system that are as wide as this, or wider, leave nothing below it. In nanoseconds.
const COARSE: i64 = 1_000_000;

/// The stamp of a file: device, inode, size in bytes, mtime and ctime in nanoseconds since 1970.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FileStamp {
    pub(crate) device: u64,
    pub(crate) inode: u64,
    /// Bytes.
    pub(crate) size: u64,
    /// When the content changed.
    pub(crate) mtime: i64,
    /// When anything changed.
    pub(crate) ctime: i64,
}

impl FileStamp {
    pub fn of(data: &Metadata) -> Self {
        Self {
            device: data.dev(),
            inode: data.ino(),
            size: data.size(),
            mtime: nanoseconds(data.mtime(), data.mtime_nsec()),
            ctime: nanoseconds(data.ctime(), data.ctime_nsec()),
        }
    }

    /// Inode, size and times. Caches hold devices elsewhere.
    pub(crate) fn bytes(&self) -> [u8; 32] {
        let times = [self.mtime, self.ctime].map(i64::cast_unsigned);
        let numbers = [self.inode, self.size, times[0], times[1]];
        let mut bytes = [0; 32];
        for (place, number) in bytes.chunks_exact_mut(8).zip(numbers) {
            place.copy_from_slice(&number.to_le_bytes());
        }
        bytes
    }

    /// The stamp with these [`FileStamp::bytes`].
    pub(crate) fn of_bytes(device: u64, bytes: &[u8; 32]) -> Self {
        let mut numbers = [0; 4];
        for (number, bytes) in numbers.iter_mut().zip(bytes.as_chunks().0) {
            *number = u64::from_le_bytes(*bytes);
        }
        Self {
            device,
            inode: numbers[0],
            size: numbers[1],
            mtime: numbers[2].cast_signed(),
            ctime: numbers[3].cast_signed(),
        }
    }

    /// Returns true if the file had been unchanged for long enough at a time, in nanoseconds since 1970, so that every later change
    /// of the content changes the stamp. False for a file with a time in the future.
    pub fn was_settled(&self, at: i64) -> bool {
        let too_young = if self.has_fine_times() {
            TOO_YOUNG_BY_FINE_TIMES
        } else {
            TOO_YOUNG
        };
        self.mtime.max(self.ctime).saturating_add(too_young) < at
    }

    /// Returns true if it proves the content of a file that was hashed while it was written and had the stamp `written` when it was
    /// finished: only its name changed since, and later than its content, so every other change of the content changes the stamp.
    pub fn proves(&self, written: &Self) -> bool {
        let content = |stamp: &Self| (stamp.device, stamp.inode, stamp.size, stamp.mtime);
        self.has_fine_times() && content(self) == content(written) && self.ctime > self.mtime
    }

    /// Returns true if its times come from this machine's clock in the kernel's steps: the file system is on a device of its own,
    /// not on another machine, and the last change has a time of parts of a millisecond. Only the kernel sets the `ctime`.
    fn has_fine_times(&self) -> bool {
        rustix::fs::major(self.device) != 0 && self.ctime % COARSE != 0
    }
}

/// Nanoseconds since 1970, from 1677 to 2262; beyond, the nearest.
pub(crate) fn nanoseconds(seconds: i64, rest: i64) -> i64 {
    seconds.saturating_mul(1_000_000_000).saturating_add(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_later_name_proves_the_content() {
        let written = FileStamp {
            device: rustix::fs::makedev(8, 1),
            inode: 2,
            size: 3,
            mtime: 1_000_000_001,
            ctime: 1_000_000_001,
        };
        let renamed = FileStamp {
            ctime: 1_004_000_001,
            ..written
        };
        assert!(renamed.proves(&written));
        let others = [
            // In the same step of the clock, it may have been written again.
            written,
            FileStamp {
                inode: 3,
                ..renamed
            },
            FileStamp { size: 4, ..renamed },
            FileStamp {
                mtime: renamed.ctime,
                ..renamed
            },
            FileStamp {
                ctime: written.ctime - 1,
                ..renamed
            },
            // Coarse times, and a file system without a device of its own.
            FileStamp {
                ctime: 3_000_000_000,
                ..renamed
            },
            FileStamp {
                device: 5,
                ..renamed
            },
        ];
        for other in others {
            assert!(!other.proves(&written), "{other:?}");
        }
        assert!(
            !FileStamp {
                device: 5,
                ..renamed
            }
            .proves(&FileStamp {
                device: 5,
                ..written
            })
        );
    }

    #[test]
    fn only_what_was_left_alone_is_settled() {
        let stamp = |mtime, ctime| FileStamp {
            device: 1,
            inode: 2,
            size: 3,
            mtime,
            ctime,
        };
        let second = 1_000_000_000;
        for (mtime, ctime, at, settled) in [
            (0, 0, 2 * second, false),
            (0, 0, 2 * second + 1, true),
            (0, second, 3 * second, false),
            (second, 0, 3 * second, false),
            (9 * second, 0, 3 * second, false),
            (i64::MAX, 0, i64::MAX, false),
        ] {
            assert_eq!(
                stamp(mtime, ctime).was_settled(at),
                settled,
                "{mtime} {ctime} {at}"
            );
        }
    }

    #[test]
    fn where_times_are_fine_less_is_enough() {
        let (disk, elsewhere) = (rustix::fs::makedev(8, 1), rustix::fs::makedev(0, 40));
        let (fine, coarse) = (5_123_456_789, 5_123_000_000);
        for (device, ctime, settled) in [
            (disk, fine, true),
            (disk, coarse, false),
            (elsewhere, fine, false),
        ] {
            let stamp = FileStamp {
                device,
                inode: 2,
                size: 3,
                mtime: 4,
                ctime,
            };
            let later = ctime + TOO_YOUNG_BY_FINE_TIMES + 1;
            assert_eq!(stamp.was_settled(later), settled, "{device} {ctime}");
            assert!(!stamp.was_settled(later - 1), "{device} {ctime}");
            assert!(stamp.was_settled(ctime + TOO_YOUNG + 1), "{device} {ctime}");
        }
    }
}
