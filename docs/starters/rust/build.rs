//! Makes the client from the protos, without protoc.

use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let root = Path::new("../../../proto");
    println!("cargo:rerun-if-changed={}", root.display());
    let files = ["lobby_service", "play_service", "error"].map(|name| root.join(format!("seatwise/v1/{name}.proto")));
    let descriptors = protox::compile(files, [PathBuf::from(root)])?;
    tonic_prost_build::configure().build_server(false).compile_fds(descriptors)?;
    Ok(())
}
