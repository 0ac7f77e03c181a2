//! Everything between files on a disk and batches of numbers.
