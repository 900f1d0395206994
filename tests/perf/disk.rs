//! How large the index grows: N keys whose values flip between two states, over and over, as marks do. Against the
//! payload, keys and values as they stand at the end.
//!
//! `cargo bench --bench disk`; `STALED_BENCH_KEYS=100000 STALED_BENCH_FLIPS=2000000` for the whole size.

#![expect(clippy::print_stdout, reason = "a bench prints")]

#[path = "yard.rs"]
mod yard;

use staled::index::storage::{Storage, Table};
use staled::store::sled_index::SledIndex;
use std::path::Path;

const KEYS: usize = 20_000;
const FLIPS: usize = 400_000;
const VALUE_BYTES: usize = 80;

fn main() {
    let keys = yard::number("STALED_BENCH_KEYS", KEYS);
    let flips = yard::number("STALED_BENCH_FLIPS", FLIPS);
    let temp = tempfile::tempdir().expect("a folder");
    let folder = temp.path().join("index");
    let (mut index, _) = SledIndex::open(&folder, [7; 16]).expect("a new index");
    let mut sizes = Vec::new();
    for n in 0..flips {
        // Not in order: 7,919 is a prime that divides no usual number of keys.
        let key = (n * 7_919 % keys) as u64;
        let value = [(n / keys % 2) as u8; VALUE_BYTES];
        index.put(Table::Marks, &key.to_be_bytes(), &value).expect("it is stored");
        if (n + 1) % (flips / 10) == 0 {
            index.flush().expect("it is flushed");
            sizes.push(bytes_in(&folder) as f64 / (keys * (8 + VALUE_BYTES)) as f64);
        }
    }
    println!("# disk: {keys} keys, {flips} flips; size / payload at each tenth: {sizes:.2?}");
    let last = sizes[sizes.len() - 1];
    yard::judge("index / payload at the end", vec![last], Some(6.0));
    yard::judge("index at the end / half-way", vec![last / sizes[sizes.len() / 2 - 1]], Some(1.1));
}

fn bytes_in(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).expect("it can be listed").flatten();
    entries.fold(0, |sum, entry| {
        let found = entry.metadata().expect("it is there");
        sum + if found.is_dir() { bytes_in(&entry.path()) } else { found.len() }
    })
}
