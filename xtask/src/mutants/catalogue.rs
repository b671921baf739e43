//! The faults: for each ordering, check and compare-and-swap that matters, one that lacks it.

/// A fault in the crate `ring`.
pub struct Mutant {
    /// File, in the crate's folder.
    pub file: &'static str,
    /// What is wrong.
    pub fault: &'static str,
    /// Text that stands there; its first occurrence is replaced.
    pub from: &'static str,
    /// Text to put there.
    pub to: &'static str,
    /// Who finds it.
    pub by: By,
}

/// A test, by (a part of) its name.
#[derive(Clone, Copy)]
pub enum By {
    /// Of the model checker.
    Loom(&'static str),
    /// Of those on the real thing.
    Ring(&'static str),
}

use By::{Loom, Ring};

const fn mutant(
    file: &'static str,
    fault: &'static str,
    from: &'static str,
    to: &'static str,
    by: By,
) -> Mutant {
    Mutant { file, fault, from, to, by }
}

/// All of them.
pub const MUTANTS: &[Mutant] = &[
    // Protocol Publish: the steps' orderings.
    mutant(
        "src/publish/model.rs",
        "the event's commit is no release",
        "cpu.control().head.store(r.new_head, Release)",
        "cpu.control().head.store(r.new_head, Relaxed)",
        Loom("publish::discard"),
    ),
    mutant(
        "src/publish/model.rs",
        "the opening's commit is no release",
        "position.store(request.new_head, Release)",
        "position.store(request.new_head, Relaxed)",
        Loom("publish::"),
    ),
    mutant(
        "src/region/modelled.rs",
        "an event's bytes are not stored with release",
        "self.write_cells(physical, at, bytes, Release)",
        "self.write_cells(physical, at, bytes, Relaxed)",
        Loom("publish::a_copy"),
    ),
    // Its steps.
    mutant(
        "src/publish/steps.rs",
        "an event does not compare the key",
        "$use_them!(Key Buffer Head",
        "$use_them!(Buffer Head",
        Loom("publish::detach"),
    ),
    mutant(
        "src/publish/steps.rs",
        "an event is committed before its payload is written",
        "Payload Advance Armed Commit",
        "Advance Armed Commit Payload",
        Loom("publish::discard"),
    ),
    mutant(
        "src/publish/steps.rs",
        "an event is committed before its header is written",
        "Header Thread Payload Advance Armed Commit",
        "Advance Armed Commit Header Thread Payload",
        Ring("steps::"),
    ),
    mutant(
        "src/publish/steps.rs",
        "an event is committed without a look at rseq_cs",
        "Advance Armed Commit",
        "Advance Commit",
        Ring("stepping::a_sequence_that_the_kernel"),
    ),
    mutant(
        "src/publish/steps.rs",
        "opening does not compare the CPU",
        "Key SameCpu SameHead",
        "Key SameHead",
        Loom("publish::migration"),
    ),
    mutant(
        "src/publish/steps.rs",
        "opening does not compare the position",
        "Key SameCpu SameHead",
        "Key SameCpu",
        Loom("publish::discard"),
    ),
    mutant(
        "src/publish/steps.rs",
        "opening commits before the headers are written",
        "Close Open Armed Commit",
        "Armed Commit Close Open",
        Loom("publish::discard"),
    ),
    // Its instructions.
    mutant(
        "src/publish/event.rs",
        "an event may end on a sub-buffer's last byte",
        "add {t}, {LENGTH} + 1",
        "add {t}, {LENGTH}",
        Ring("sizes::an_event_never"),
    ),
    mutant(
        "src/publish/gather.rs",
        "a gathered event may end on a sub-buffer's last byte",
        "\"inc {t}\"\n            \"mov {status:e}, {FULL}\"",
        "\"mov {status:e}, {FULL}\"",
        Ring("sizes::"),
    ),
    mutant(
        "src/publish/event.rs",
        "the thread id is written elsewhere",
        "\"mov [{t} + {CONTROL} + 8], eax\"",
        "\"mov [{t} + {CONTROL} + 9], eax\"",
        Ring("steps::"),
    ),
    mutant(
        "src/publish/event.rs",
        "a stamp below the begin is taken for one above it",
        "\"jnz 7f\"",
        "\"nop\"",
        Ring("sizes::"),
    ),
    mutant(
        "src/publish/open/sequence.rs",
        "the end of a sub-buffer may lie before its begin",
        "\"cmovb rax, [{t} + {BEGIN}]\"",
        "\"nop\"",
        Ring("sizes::a_clock_that"),
    ),
    mutant(
        "src/publish/open/sequence.rs",
        "opening forgets the losses so far",
        "\"mov [{t} + {LOST}], rdx\"",
        "\"mov [{t} + {LOST}], rax\"",
        Ring(""),
    ),
    // What all protocols share: claiming.
    mutant(
        "src/region.rs",
        "a full buffer is not noticed",
        ">= slots as i64",
        "> slots as i64",
        Loom("discard"),
    ),
    mutant(
        "src/region.rs",
        "a table entry is loaded without acquire",
        "let word = entry.load(Acquire);",
        "let word = entry.load(Relaxed);",
        Loom("overwrite"),
    ),
    mutant(
        "src/region.rs",
        "a claim is neither release nor acquire",
        "compare_exchange(word, new, AcqRel, Relaxed)",
        "compare_exchange(word, new, Relaxed, Relaxed)",
        Loom("overwrite"),
    ),
    mutant(
        "src/region.rs",
        "no fence behind a claim",
        "                fence(Release);\n",
        "",
        Loom("lttng::a_copy"),
    ),
    mutant(
        "src/region.rs",
        "a sub-buffer is overwritten without a claim",
        "if entry.compare_exchange(word, new, AcqRel, Relaxed).is_ok()",
        "if { let _ = new; true }",
        Loom("publish::overwrite"),
    ),
    mutant(
        "src/region.rs",
        "a claim may be an old one's",
        "if old.sequence != geometry.later(next, slots.wrapping_neg())",
        "if false && slots > 0",
        Loom("overwrite"),
    ),
    // The reader.
    mutant(
        "src/reader/check.rs",
        "head is loaded without acquire",
        "let head = self.cpu.control().head.load(Acquire);",
        "let head = self.cpu.control().head.load(Relaxed);",
        Loom("publish::discard"),
    ),
    mutant(
        "src/reader/check.rs",
        "the commit count is loaded without acquire",
        ".committed.load(Acquire); // with the add",
        ".committed.load(Relaxed); // with the add",
        Loom("lttng::smp_discard"),
    ),
    mutant(
        "src/reader/check.rs",
        "a full sub-buffer is read before it is committed",
        "ahead.committed == self.cpu.geometry().sub_buffer_bytes() as u64",
        "ahead.committed > 0",
        Loom("lttng::smp_discard"),
    ),
    mutant(
        "src/reader/check.rs",
        "a part of a sub-buffer is read before it is committed",
        " && ahead.committed == at as u64",
        "",
        Loom("lttng::smp_discard"),
    ),
    mutant(
        "src/reader/exchange.rs",
        "a sub-buffer is read without an exchange",
        "if !self.exchange(reference, lent)",
        "if false && !self.exchange(reference, lent)",
        Loom("overwrite"),
    ),
    mutant(
        "src/reader/exchange.rs",
        "an exchange is neither release nor acquire",
        "compare_exchange(from.pack(), to.pack(), AcqRel, Relaxed)",
        "compare_exchange(from.pack(), to.pack(), Relaxed, Relaxed)",
        Loom("overwrite"),
    ),
    mutant(
        "src/reader/exchange.rs",
        "a copy is not looked at again",
        "if now != reference.pack()",
        "if false && now != reference.pack()",
        Loom("a_copy"),
    ),
    mutant(
        "src/reader/exchange.rs",
        "no fence between a copy and the look at its entry",
        "        fence(Acquire);\n",
        "",
        Loom("a_copy"),
    ),
    mutant(
        "src/reader/exchange.rs",
        "a sub-buffer that was read keeps its number",
        "    pub(super) fn disown(&mut self, physical: usize) {\n",
        "    pub(super) fn disown(&mut self, physical: usize) {\n        if physical < usize::MAX {\n            return;\n        }\n",
        Ring(""),
    ),
    mutant(
        "src/reader/exchange.rs",
        "a sub-buffer is put back though its entry was claimed",
        "if self.exchange(lent, Reference { sequence, physical })",
        "if self.exchange(lent, Reference { sequence, physical }) || true",
        Ring(""),
    ),
    // Protocols Smp and Local.
    mutant(
        "src/lttng/access.rs",
        "reserving is neither release nor acquire",
        "word.compare_exchange(old, new, AcqRel, Relaxed)",
        "word.compare_exchange(old, new, Relaxed, Relaxed)",
        Loom("lttng::smp"),
    ),
    mutant(
        "src/lttng/access.rs",
        "committing is no release",
        "word.fetch_add(by, AcqRel)",
        "word.fetch_add(by, Acquire)",
        Loom("lttng::smp_discard"),
    ),
    mutant(
        "src/lttng/access.rs",
        "committing is no acquire",
        "word.fetch_add(by, AcqRel)",
        "word.fetch_add(by, Release)",
        Loom("lttng::"),
    ),
    mutant(
        "src/lttng/access.rs",
        "reserving does not compare",
        "word.compare_exchange(old, new, AcqRel, Relaxed).is_ok()",
        "word.swap(new, AcqRel) == old || true",
        Loom("lttng::smp_discard"),
    ),
    mutant(
        "src/lttng/reserve.rs",
        "the write count is loaded without acquire",
        "let head = buffer.control().head.load(Acquire);",
        "let head = buffer.control().head.load(Relaxed);",
        Loom("lttng::smp"),
    ),
    mutant(
        "src/lttng/reserve.rs",
        "no fence behind a reservation",
        "    fence(Release);\n    Ok(",
        "    Ok(",
        Loom("lttng::a_copy"),
    ),
    mutant(
        "src/lttng/reserve.rs",
        "a slot is claimed before the last lap is committed (Equation 3)",
        "committed <= buffer.geometry().sub_buffer_bytes() as u64",
        "committed <= u64::MAX",
        Loom("lttng::"),
    ),
    mutant(
        "src/lttng/reserve.rs",
        "the commit count of the last lap is loaded without acquire",
        "buffer.entry(next).committed.load(Acquire)",
        "buffer.entry(next).committed.load(Relaxed)",
        Loom("lttng::"),
    ),
    mutant(
        "src/lttng/reserve.rs",
        "a sub-buffer is left before it was opened",
        "if is_opened && is_free",
        "if (is_opened || true) && is_free",
        Loom("lttng::smp_overwrite"),
    ),
    mutant(
        "src/lttng/reserve.rs",
        "a new sub-buffer's number is stored without release",
        "header.sequence.store(sequence + 1, Release)",
        "header.sequence.store(sequence + 1, Relaxed)",
        Loom("lttng::"),
    ),
    mutant(
        "src/lttng/reserve.rs",
        "the commit seq is stored where something in front is missing",
        "if buffer.geometry().committed(count, sequence) == end as u64",
        "if end > 0",
        Loom("lttng::a_dead_writer"),
    ),
    mutant(
        "src/lttng/reserve.rs",
        "the rest of a closed sub-buffer is not committed",
        "bytes - at, bytes); // its",
        "0, bytes); // its",
        Loom("lttng::smp_discard"),
    ),
    // The slot FIFO.
    mutant(
        "src/slot_fifo.rs",
        "a writer takes a slot without acquire",
        "self.free.fetch_sub(1, Acquire)",
        "self.free.fetch_sub(1, Relaxed)",
        Loom("slot_fifo::a_writer_that_laps"),
    ),
    mutant(
        "src/slot_fifo.rs",
        "a writer that is overtaken does not see what the other saw",
        "self.write.fetch_add(1, AcqRel)",
        "self.write.fetch_add(1, Release)",
        Loom("slot_fifo::a_writer_overtaken"),
    ),
    mutant(
        "src/slot_fifo.rs",
        "a writer that overtakes does not tell what it saw",
        "self.write.fetch_add(1, AcqRel)",
        "self.write.fetch_add(1, Acquire)",
        Loom("slot_fifo::a_writer_overtaken"),
    ),
    mutant(
        "src/slot_fifo.rs",
        "a value's mark is no release",
        "slot.ready.store(true, Release)",
        "slot.ready.store(true, Relaxed)",
        Loom("slot_fifo::a_writer_that_laps"),
    ),
    mutant(
        "src/slot_fifo.rs",
        "the reader looks at the mark without acquire",
        "slot.ready.load(Acquire)",
        "slot.ready.load(Relaxed)",
        Loom("slot_fifo::a_writer_that_laps"),
    ),
    mutant(
        "src/slot_fifo.rs",
        "the reader gives a slot back without release",
        "self.fifo.free.fetch_add(1, Release)",
        "self.fifo.free.fetch_add(1, Relaxed)",
        Loom("slot_fifo::a_writer_that_laps"),
    ),
    mutant(
        "src/slot_fifo.rs",
        "a reader begins without acquire",
        "self.reading.swap(true, Acquire)",
        "self.reading.swap(true, Relaxed)",
        Loom("slot_fifo::a_reader_after_another"),
    ),
    mutant(
        "src/slot_fifo.rs",
        "a reader ends without release",
        "self.fifo.reading.store(false, Release)",
        "self.fifo.reading.store(false, Relaxed)",
        Loom("slot_fifo::a_reader_after_another"),
    ),
    mutant(
        "src/slot_fifo.rs",
        "two readers at once",
        "(!taken).then_some(",
        "Some(",
        Loom("slot_fifo::a_reader_after_another"),
    ),
    mutant(
        "src/slot_fifo.rs",
        "a writer takes a slot where none is free",
        "self.free.fetch_sub(1, Acquire) <= 0",
        "self.free.fetch_sub(1, Acquire) < 0",
        Loom("slot_fifo::writers_that_fail"),
    ),
    mutant(
        "src/slot_fifo.rs",
        "a failing writer keeps what it took",
        "            self.free.fetch_add(1, Relaxed);\n",
        "",
        Loom("slot_fifo::writers_that_fail"),
    ),
    mutant(
        "src/slot_fifo.rs",
        "a failed write is not counted",
        "            self.failed.fetch_add(1, Relaxed);\n",
        "",
        Loom("slot_fifo::writers_that_fail"),
    ),
];
