//! How much is allocated, and how much of it the kernel knows of.

use std::alloc::{GlobalAlloc, Layout, System};
use std::fmt;
use std::sync::atomic::{AtomicIsize, Ordering::Relaxed};

static BYTES: AtomicIsize = AtomicIsize::new(0);
static BLOCKS: AtomicIsize = AtomicIsize::new(0);

/// The system's allocator, counted.
pub struct Counting;

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        note(1, layout.size());
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        note(-1, layout.size());
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        note(-1, layout.size());
        note(1, size);
        unsafe { System.realloc(block, layout, size) }
    }
}

fn note(blocks: isize, bytes: usize) {
    BLOCKS.fetch_add(blocks, Relaxed);
    BYTES.fetch_add(blocks * isize::try_from(bytes).unwrap_or_default(), Relaxed);
}

/// What is in use at one moment.
#[derive(Clone, Copy, Default)]
pub struct Memory {
    pub bytes: isize,
    pub blocks: isize,
    /// Bytes; none where the kernel does not say.
    pub resident: isize,
}

impl Memory {
    pub fn now() -> Self {
        let statm = std::fs::read_to_string("/proc/self/statm").unwrap_or_default();
        let pages: isize = statm.split(' ').nth(1).and_then(|pages| pages.parse().ok()).unwrap_or_default();
        Self { bytes: BYTES.load(Relaxed), blocks: BLOCKS.load(Relaxed), resident: pages * 4096 }
    }

    /// The most of each.
    pub fn most(self, other: Self) -> Self {
        Self {
            bytes: self.bytes.max(other.bytes),
            blocks: self.blocks.max(other.blocks),
            resident: self.resident.max(other.resident),
        }
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kib = |bytes: isize| bytes / 1024;
        write!(f, "{} KiB in {} blocks live, {} KiB resident", kib(self.bytes), self.blocks, kib(self.resident))
    }
}
