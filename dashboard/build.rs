//! Compresses the script of the editor, which `dashboard/editor` is built into.

use std::{
    env, fs,
    io::Write as _,
    path::{Path, PathBuf},
};

use flate2::{Compression, write::GzEncoder};

const SCRIPT: &str = "assets/editor.js";

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("cargo::rerun-if-changed={SCRIPT}");
    let target = PathBuf::from(env::var("OUT_DIR")?).join("editor.js.gz");
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&fs::read(Path::new(SCRIPT))?)?;
    fs::write(target, encoder.finish()?)?;
    Ok(())
}
