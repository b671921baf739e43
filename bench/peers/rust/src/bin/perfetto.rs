//! Perfetto's SDK, in process: an instant event with two arguments into a ring of 4 MiB. At the end the trace
//! is read back, and the program fails if it holds next to nothing.

use perfetto_sdk::heap_buffer::HeapBuffer;
use perfetto_sdk::pb_msg::{PbMsg, PbMsgWriter};
use perfetto_sdk::producer::{Backends, Producer, ProducerInitArgsBuilder};
use perfetto_sdk::protos::config::data_source_config::DataSourceConfig;
use perfetto_sdk::protos::config::trace_config::{
    TraceConfig, TraceConfigBufferConfig, TraceConfigDataSource,
};
use perfetto_sdk::protos::config::track_event::track_event_config::TrackEventConfig;
use perfetto_sdk::tracing_session::TracingSession;
use perfetto_sdk::track_event::{EventContext, TrackEvent, TrackEventDebugArg};
use perfetto_sdk::{track_event_categories, track_event_instant};
use std::error::Error;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

track_event_categories! {
    pub mod categories {
        ("bench", "The benchmark's events", []),
    }
}
use categories as perfetto_te_ns;

/// Size of the session's buffer.
const BUFFER_KIB: u32 = 4096;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("peer-perfetto: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    Producer::init(ProducerInitArgsBuilder::new().backends(Backends::IN_PROCESS).build());
    TrackEvent::init();
    categories::register()?;
    let mut session = TracingSession::in_process()?;
    session.setup(&configuration()?);
    session.start_blocking();
    let mut emitted = 0;
    orders::obey(|variant, count| {
        for i in 0..count {
            track_event_instant!("bench", "two", |context: &mut EventContext| {
                context.add_debug_arg("first", TrackEventDebugArg::Uint64(i));
                context.add_debug_arg("second", TrackEventDebugArg::Uint64(i ^ count));
            });
        }
        emitted += count;
        variant == "two_u64"
    })?;
    session.stop_blocking();
    let bytes = Arc::new(AtomicUsize::new(0));
    let sum = bytes.clone();
    session.read_trace_blocking(move |data, _| {
        sum.fetch_add(data.len(), Relaxed);
    });
    let bytes = bytes.load(Relaxed);
    if bytes < 10 * emitted.min(10_000) as usize {
        return Err(format!("{emitted} events were emitted, and the trace has {bytes} bytes").into());
    }
    Ok(())
}

/// A recording of track events into a ring, as the library wants it encoded.
fn configuration() -> Result<Vec<u8>, Box<dyn Error>> {
    let writer = PbMsgWriter::new();
    let buffer = HeapBuffer::new(writer.stream_writer());
    let mut message = PbMsg::new(&writer)?;
    {
        let mut trace = TraceConfig { msg: &mut message };
        trace.set_buffers(|config: &mut TraceConfigBufferConfig| {
            config.set_size_kb(BUFFER_KIB);
        });
        trace.set_data_sources(|sources: &mut TraceConfigDataSource| {
            sources.set_config(|source: &mut DataSourceConfig| {
                source.set_name("track_event");
                source.set_track_event_config(|events: &mut TrackEventConfig| {
                    events.set_enabled_categories("bench");
                });
            });
        });
    }
    message.finalize();
    let mut bytes = vec![0; writer.stream_writer().get_written_size()];
    buffer.copy_into(&mut bytes);
    Ok(bytes)
}
