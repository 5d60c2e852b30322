//! Builds the crate again when the built page changes, which the embedding alone would not notice for new files.

fn main() {
    // A folder that is not there counts as changed each time, so that a page that is built later is found.
    println!("cargo:rerun-if-changed=../../ui/dist");
    println!("cargo:rerun-if-changed=build.rs");
}
