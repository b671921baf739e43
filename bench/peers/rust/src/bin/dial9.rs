//! dial9's telemetry of tokio, written to a file: tasks as reported by tokio's hooks (`hooked`), and tasks
//! that its own `spawn` wraps, which also reports their wakes (`told`); and the same trees without it.

use dial9_tokio_telemetry::telemetry::{Dial9HandleTokioExt, DiskBuffer, TokioAttachOptions, recorder};
use std::process::ExitCode;
use tokio::runtime::Builder;

#[path = "../../../../src/tasks/tree.rs"]
mod tree;

tree::tree!(plain, tokio::spawn);
tree::tree!(told, dial9_tokio_telemetry::spawn);

fn main() -> ExitCode {
    match obey() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peer-dial9: {error}");
            ExitCode::FAILURE
        }
    }
}

fn obey() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::temp_dir().join(format!("peer-dial9-{}", std::process::id()));
    std::fs::create_dir(&folder)?;
    let recorder = recorder(DiskBuffer::single_file(folder.join("trace.bin"))?).build();
    let attached = recorder
        .handle()
        .attach_tokio_runtime(Builder::new_current_thread(), TokioAttachOptions::default())?;
    let bare = Builder::new_current_thread().build()?;
    let outcome = orders::obey(|variant, count| {
        match variant {
            "plain" => plain::grow(&bare, count),
            "hooked" => plain::grow(&attached, count),
            "told" => told::grow(&attached, count),
            _ => return false,
        }
        true
    });
    drop(attached);
    drop(recorder);
    let written = std::fs::read_dir(&folder)?.try_fold(0, |sum, file| Ok(sum + file?.metadata()?.len()));
    let written: u64 = written.map_err(|error: std::io::Error| error)?;
    std::fs::remove_dir_all(&folder)?;
    if written < 10_000 {
        return Err("it has recorded nothing".into());
    }
    Ok(outcome?)
}
