//! The documents and examples are compiled in; `include_dir` does not notice new files.

fn main() {
    println!("cargo:rerun-if-changed=../docs");
    println!("cargo:rerun-if-changed=../examples");
}
