/* Attaching, detaching, and the membarrier between them.
 *
 * Modelled: crates/ring/src/attachment.rs and the steps of crates/ring/src/publish that read it. A process's attachment is a
 * key (0: detached) and the address of the buffers. A thread on another CPU loads the key and the address inside its
 * sequence, and writes. Another thread detaches: it clears the key, calls membarrier (PRIVATE_EXPEDITED_RSEQ), which makes
 * every thread that is inside a sequence start again, and unmaps the buffers. Then it attaches new ones: the other words,
 * then the key with release.
 *
 * Opening a sub-buffer happens partly outside of sequences. Such a thread sets a mark before it looks at the key, and takes
 * it away when it is done; the detaching thread waits until no mark is left before it unmaps.
 *
 * Weak memory: a store waits in its CPU's store buffer, one entry for each word, and the entries become visible in any
 * order; a store with release waits until the older ones are visible. membarrier empties the store buffers of the CPUs that
 * run the process, and is a full barrier for the caller.
 *
 * Proved: no thread uses buffers that are not mapped, nor an address of another key; and detaching ends.
 */
#include "check.h"
#define NONE 255
#define ROUNDS 2

byte key, address;                      /* the attachment in memory */
byte mark;                              /* the other thread's mark in memory */
bit mapped[ROUNDS + 1];                 /* which buffers are mapped: number = key */
bit inside;                             /* the thread is in a sequence */
bit again;                              /* ... and has to start again */

/* The store buffers: key and address are stored by the detaching thread, the mark by the other. */
byte key_buffered = NONE, address_buffered = NONE, mark_buffered = NONE;

active proctype Memory() {
end:
    do
    :: atomic { key_buffered != NONE -> key = key_buffered; key_buffered = NONE }
    :: atomic { address_buffered != NONE -> address = address_buffered; address_buffered = NONE }
    :: atomic { mark_buffered != NONE -> mark = mark_buffered; mark_buffered = NONE }
    od
}

#define USE(a, k) \
    CHECK(mapped[a], the buffers are used only while they are mapped); \
    CHECK(a == k, the address belongs to the key that was found)

active proctype Thread() {
    byte k, a, events = 3;
    do
    :: events == 0 -> break
    :: events > 0 ->
        events--;
        if
        :: true ->
            /* An event: all in one sequence. */
restart:
            atomic { again = 0; inside = 1 }
#ifndef FAULT_KEY
            atomic { if :: again -> goto restart :: !again -> k = key fi }
            if :: k == 0 -> goto leave :: else fi;
            atomic { if :: again -> goto restart :: !again -> a = address fi }
#else
            atomic { if :: again -> goto restart :: !again -> a = address; k = a fi }
            if :: a == 0 -> goto leave :: else fi;
#endif
            atomic { if :: again -> goto restart :: !again -> USE(a, k) fi }
leave:
            atomic { inside = 0; again = 0; k = 0; a = 0 }
        :: true ->
            /* Opening a sub-buffer: the mark, then the key; no barrier but the compiler's. */
#ifndef FAULT_MARK
            mark_buffered = 1;
#endif
            k = key;
            if
            :: k == 0 -> skip
            :: else ->
                a = address;
                atomic { USE(a, k) }
                atomic { USE(a, k) }
            fi;
            /* A store with release: what was done before it is done. */
            atomic { mark_buffered == NONE -> mark_buffered = 0; k = 0; a = 0 }
        fi
    od
}

/* Every other CPU's store buffer is emptied, its sequences start again; the caller's own stores are visible (that of the
 * address is so already, since a key was stored behind it). */
#define MEMBARRIER \
    atomic { \
        if :: key_buffered != NONE -> key = key_buffered; key_buffered = NONE :: else fi; \
        if :: mark_buffered != NONE -> mark = mark_buffered; mark_buffered = NONE :: else fi; \
        if :: inside -> again = 1 :: else fi \
    }

active proctype Owner() {
    byte k = 1;
    do
    :: k > ROUNDS -> break
    :: k <= ROUNDS ->
        mapped[k] = 1;
        atomic { address_buffered == NONE -> address_buffered = k }
#ifdef FAULT_ATTACH
        atomic { key_buffered == NONE -> key_buffered = k }
#else
        /* Release: the key is visible after the address. */
        atomic { address_buffered == NONE && key_buffered == NONE -> key_buffered = k }
#endif
#ifdef FAULT_BARRIER_FIRST
        MEMBARRIER
#endif
        atomic { key_buffered == NONE -> key_buffered = 0 }
#if !defined(FAULT_BARRIER) && !defined(FAULT_BARRIER_FIRST)
        MEMBARRIER
#endif
#ifndef FAULT_WAIT
        mark == 0;
#endif
        mapped[k] = 0;
        k++
    od
}
