/* The orderings between writer and reader, on a machine with weak memory.
 *
 * Modelled: the words by which a sub-buffer changes hands: its data, head, consumed, and in overwrite mode the table's entries.
 * The writer is on one CPU, the reader on another. A store waits in its CPU's store buffer, one entry for each word, and the
 * entries become visible in any order, so two stores are ordered only by what the source does about it:
 *   release store     becomes possible when the older stores are visible, and the older loads done.
 *   acquire load      the younger loads are done after it.
 *   compare-and-swap  sees and changes memory itself. Its store may become visible after younger ones (as a processor does that
 *                     has store-exclusive), but whoever compares and swaps the word next sees it.
 *   membarrier        empties the writer's store buffer, while the caller waits.
 * A load that may be done early or late is done in both orders. Sub-buffers take one event each; its number is its content.
 *   OVERWRITE   claims and exchanges (crates/ring/src/region.rs, reader/exchange.rs). Else discard mode.
 *   MEMBARRIER  the writer stores head without release, and the reader calls membarrier between loading head and reading: the
 *               papers' inter-processor interrupt ("Lockless Multi-Core ...", Algorithm 6 and section 4.4) in today's form.
 *
 * The commit count of Smp and Local stands in the same place as head here: what is written before, read after.
 *
 * Proved: what is read is what was written for it, completely; what is being read is not written. With a weaker ordering
 * (FAULT_...), it is not.
 *
 * Left out: C11's freedom beyond that of processors (values out of thin air, stores before the branch that they depend on). loom
 * checks the source itself with C11's rules; here it is shown which orderings matter and why.
 */
#include "check.h"
#define NONE 255
#define N 2
#define EVENTS 5
#define FIRST 2                         /* number of the first event; those before are as if read */

byte data[N + 1];
byte head = FIRST - 1;                  /* the newest event */
#ifdef OVERWRITE
byte seq[N], physical[N];               /* the table: an entry is one word */
byte spare = N;
#else
byte consumed = FIRST - 1;              /* the newest event that has been read */
#endif

/* The writer's store buffer, and the reader's. */
byte data_waits[N + 1], head_waits = NONE, seq_waits[N], consumed_waits = NONE;
#define DRAIN(word, waiting) waiting != NONE -> word = waiting; waiting = NONE
#define DATA_VISIBLE (data_waits[0] == NONE && data_waits[1] == NONE && data_waits[2] == NONE)

bit over;                               /* the writer has ended */

proctype Memory() {
end:
    do
    :: atomic { DRAIN(data[0], data_waits[0]) }
    :: atomic { DRAIN(data[1], data_waits[1]) }
    :: atomic { DRAIN(head, head_waits) }
#ifdef OVERWRITE
    :: atomic { DRAIN(data[2], data_waits[2]) }
    :: atomic { DRAIN(seq[0], seq_waits[0]) }
    :: atomic { DRAIN(seq[1], seq_waits[1]) }
#else
    :: atomic { DRAIN(consumed, consumed_waits) }
#endif
    od
}

proctype Writer() {
    byte i = FIRST, p;
    do
    :: i == FIRST + EVENTS -> break
    :: i < FIRST + EVENTS ->
#ifdef OVERWRITE
        /* Claim: (i - N, p) becomes (i, p). An older claim of the same entry is visible: this one compares with it. */
        atomic {
            seq_waits[i % N] == NONE;
            p = physical[i % N]; seq_waits[i % N] = i
        }
#ifndef FAULT_CLAIM
        seq_waits[i % N] == NONE;       /* release fence, or release stores: what is stored from now on is visible later */
#endif
#else
        /* Nothing is stored before the branch is decided: the condition waits. */
        consumed + N >= i;
        p = i % N;
#endif
        atomic { data_waits[p] == NONE -> data_waits[p] = i }
#if defined(FAULT_RELEASE) || defined(MEMBARRIER)
        atomic { head_waits == NONE -> head_waits = i }
#else
        atomic { DATA_VISIBLE && head_waits == NONE -> head_waits = i }
#endif
        i++
    od;
    over = 1
}

#define RIGHT(value, number) CHECK(value == number, what is read is what was written for it)

/* The loads of the sub-buffer that is the reader's: done before it is exchanged again. */
#define FINISH if :: late != NONE -> atomic { RIGHT(data[late], late_number); late = NONE; late_number = 0 } :: else fi;

proctype Reader() {
    byte got = FIRST - 1, h, v;
#ifdef OVERWRITE
    byte s, p, late = NONE, late_number;
#endif
    do
    :: got == FIRST + EVENTS - 1 -> break
    :: got < FIRST + EVENTS - 1 ->
#ifndef OVERWRITE
#ifdef FAULT_ACQUIRE
        v = data[(got + 1) % N];
        atomic { head > got -> h = head }
#else
        atomic { head > got -> h = head }
#if defined(MEMBARRIER) && !defined(FAULT_MEMBARRIER)
        /* The writer's CPU runs the barrier at some moment of the call: what waits becomes visible. */
        DATA_VISIBLE && head_waits == NONE;
#endif
#ifdef FAULT_CONSUMED
        atomic { consumed_waits == NONE -> consumed_waits = got + 1 }
#endif
        v = data[(got + 1) % N];
#endif
#ifndef FAULT_CONSUMED
        /* Release: the load is done. */
        atomic { consumed_waits == NONE -> consumed_waits = got + 1 }
#endif
        atomic { RIGHT(v, got + 1); got++; h = 0; v = 0 }
#else
        atomic { head > got || over -> h = head }
        if
        :: h == got -> break
        :: h == got + 1 ->
            /* The current one: copied, then the entry looked at again. */
            atomic { s = seq[h % N]; p = physical[h % N] }
            if
            :: s != h -> skip
            :: else ->
#ifdef FAULT_COPY
                s = seq[h % N];
                v = data[p];
#else
                v = data[p];
                s = seq[h % N];         /* behind an acquire fence */
#endif
                atomic { if :: s == h -> RIGHT(v, h) :: else fi }
            fi;
            got++
        :: h > got + 1 ->
#ifndef FAULT_EXCHANGE
            FINISH
#endif
            /* A full one: exchanged. Compare-and-swap sees a claim that waits. */
            atomic {
                got++;
                if
                :: seq[got % N] == got && seq_waits[got % N] == NONE ->
                    p = physical[got % N]; physical[got % N] = spare; spare = p; s = got
                :: else -> p = NONE
                fi
            }
#ifdef FAULT_EXCHANGE
            FINISH
#endif
            if :: p != NONE -> atomic { late = p; late_number = s } :: else fi
        fi;
        atomic { h = 0; v = 0; s = 0; p = 0 }
#endif
    od
}

init {
    atomic {
        byte i;
        for (i : 0 .. N) { data_waits[i] = NONE }
        for (i : 0 .. N - 1) {
            seq_waits[i] = NONE;
#ifdef OVERWRITE
            physical[i] = i
#endif
        }
#ifdef OVERWRITE
        seq[0] = FIRST - N; seq[1] = FIRST - 1;
#endif
        run Memory();
        run Writer();
        run Reader()
    }
}
