/* Protocol Publish: an event is one restartable sequence that ends with the store of `head`.
 *
 * Modelled: crates/ring/src/publish.rs and what it leads to. Threads run on CPUs, migrate, preempt one another (or are hit by
 * a signal) at every step, and are killed at every step; one reader takes sub-buffers meanwhile. Events of 1 and 2 units fill
 * sub-buffers of S - 1 = 3 units, so that some fit exactly, some leave a rest; sequence numbers start below their wrap.
 *   CPUS       1 or 2. With 2, every restart of a sequence may find the thread on the other CPU.
 *   OVERWRITE  overwrite mode: the next slot is claimed, the reader exchanges sub-buffers with its spare. Else discard mode.
 *   SNAPSHOTS  overwrite mode, and the reader takes that many snapshots: rewinds, reads all, gives everything back.
 *   DEATHS     so many threads are killed, each anywhere.
 *   BOUND      a thread gives up after ATTEMPTS aborts or retries of one event, as in the source; else it never does, which
 *              allows more interleavings, not fewer.
 *
 * A sequence: owner[cpu] is the thread whose sequence runs there. Entering one makes the CPU's others restart, since the
 * kernel restarts what it preempts; a restart may also happen without a reason that we know (a signal, a debugger).
 * Every step of a sequence is one access to shared memory.
 *
 * Time: made[cpu] counts the events committed on a CPU. It serves as clock, so an event's stamp is its number if and only
 * if no other was committed between the reading of the clock and the commit; and the reader knows which stamp is next.
 *
 * Proved:
 *   no event is read before it is complete; none is read twice; order and time stamps are kept (the stamps read are
 *     0, 1, 2 ... with gaps only where sub-buffers were overwritten);
 *   none is lost uncounted: committed + counted lost + in the hands of killed threads = emitted, and at the end
 *     read + overwritten = committed, in events and in units;
 *   no sub-buffer is given up before writers need its slot;
 *   reader and writer are never in one sub-buffer, except that writers append behind what is read;
 *   with BOUND, every run ends (no cycle in the state space).
 *
 * Left out: time stamps wider or narrower than the count, event content beyond a unit, weak memory (weak.pml), attaching and
 * detaching (detach.pml), the loss reasons (one count).
 */
#include "common.h"
#ifndef CPUS
#define CPUS 1
#endif
#define THREADS 2
#ifndef EMITS
#define EMITS 3                         /* events of each thread */
#endif
#ifndef FEWER
#define FEWER 0                         /* the second thread emits so many less */
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 2
#endif

typedef Head { byte seq; byte physical; byte at }       /* one atomic word */
Head head[CPUS];
Sub sub[CPUS * PHYSICAL];
#ifdef OVERWRITE
Slot table[CPUS * N];
byte spare[CPUS];                       /* the reader's */
#else
byte consumed[CPUS];
#endif
byte lost[CPUS];
byte owner[CPUS];                       /* thread + 1, or 0 */

/* What nobody but the properties looks at. */
byte made[CPUS];                        /* events committed */
byte units[CPUS];                       /* and their units */
byte emitted, dropped;                  /* dropped: in the hands of killed threads */
byte deaths = DEATHS;
byte running = THREADS;
typedef Hold { byte physical; byte end }
Hold hold[CPUS];                        /* what the reader reads now: physical + 1, up to this offset */

#define SUB(c, p) sub[(c) * PHYSICAL + (p)]
#define TABLE(c, q) table[(c) * N + (q) % N]

/* What is handed over is worth nothing to its new owner: kept, it would only be more states. */
#define WORTHLESS(c, p) \
    SUB(c, p).seq = 0; SUB(c, p).used = 0; SUB(c, p).begin = 0; SUB(c, p).total = 0; \
    SUB(c, p).unit[0] = TORN; SUB(c, p).unit[1] = TORN; SUB(c, p).unit[2] = TORN

/* Writers may not write where the reader reads. */
#define APART(c, p, from) CHECK(hold[c].physical != (p) + 1 || (from) >= hold[c].end, reader and writer are never in one sub-buffer)

/* A thread that enters a sequence makes the one whose sequence it interrupts restart: the kernel does that when it switches
 * back to it, and nothing that happens until then depends on it. */
chan restart[THREADS] = [0] of { bit };
#ifdef FAULT_ABORT
#define INTERRUPTED owner[on] = me + 1
#define MINE true
#else
#define INTERRUPTED owner[on] = me + 1; restart[1 - me] ! 1
#define MINE owner[on] == me + 1
#endif
/* Enters a sequence; the thread is on whichever CPU. The rendezvous comes last, since it ends the atomic block. */
#define ENTER \
    if :: on = 0 :: CPUS > 1 -> on = 1 fi; \
    if :: owner[on] == 2 - me -> INTERRUPTED :: else -> owner[on] = me + 1 fi
#define LEAVE if :: owner[on] == me + 1 -> owner[on] = 0 :: else fi
#define FORGET c = 0; on = 0; s = 0; p = 0; at = 0; next = 0; old = 0; new = 0; stamp = 0
#define AGAIN FORGET; goto again
#define DIE deaths > 0 -> deaths--; LEAVE; dropped++; goto finished
/* A step of a sequence, and one outside of it. */
#define STEP(...) atomic { if :: restart[me] ? _ -> AGAIN :: MINE -> __VA_ARGS__ :: MINE -> LEAVE; AGAIN :: MINE && DIE fi }
#define PLAIN(...) atomic { if :: __VA_ARGS__ :: DIE fi }

proctype Writer(byte me) {
    byte left = (me == 0 -> EMITS : EMITS - FEWER);
    byte c, on;                         /* whose buffer is written, whose sequence it is */
    byte s, p, at;                      /* the head that was found */
    byte next, old, new;                /* the sub-buffer to open; the word of its slot */
    byte stamp, tries;
#define LEN (me % 2 + 1)
#define VALUE EVENT(stamp, LEN)

event:
    atomic {
        if :: left == 0 -> goto finished :: else -> left--; emitted++ fi
    }
again:
    atomic {
#ifdef BOUND
        if :: tries == ATTEMPTS -> goto count_lost :: else -> tries++ fi;
#endif
        ENTER
    }
    STEP(c = on; s = head[c].seq; p = head[c].physical; at = head[c].at;
         if :: at != 0 && FITS(at, LEN) :: else -> LEAVE; next = (at == 0 -> s : SEQ(s + 1)); goto open fi)
#ifdef FAULT_COMMIT_FIRST
    STEP(stamp = made[c]; SUB(c, p).unit[at - 1] = TORN; head[c].at = at + LEN; made[c]++; units[c] = units[c] + LEN)
    STEP(SUB(c, p).unit[at - 1] = VALUE; if :: LEN == 2 -> SUB(c, p).unit[at] = VALUE :: else fi; LEAVE; FORGET; tries = 0; goto event)
#else
    STEP(stamp = made[c]; APART(c, p, at);
         SUB(c, p).unit[at - 1] = TORN; if :: LEN == 2 -> SUB(c, p).unit[at] = TORN :: else fi)
    STEP(APART(c, p, at);
         SUB(c, p).unit[at - 1] = VALUE; if :: LEN == 2 -> SUB(c, p).unit[at] = VALUE :: else fi)
    STEP(CHECK(stamp == made[c], order and time stamps are kept);
         head[c].seq = s; head[c].at = at + LEN;
#ifdef FAULT_FIT
         /* The addition carries into the index. */
         if :: at + LEN == S -> head[c].at = 0; head[c].physical = (p + 1) % PHYSICAL :: else -> head[c].physical = p fi;
#else
         head[c].physical = p;
#endif
         made[c]++; units[c] = units[c] + LEN; LEAVE; FORGET; tries = 0; goto event)
#endif

open:
#ifdef OVERWRITE
claim:
    PLAIN(true -> old = TABLE(c, next).seq; new = TABLE(c, next).physical;
          if
          :: old == next -> goto sequence       /* claimed already, by whoever was interrupted behind it */
#ifdef FAULT_LATE_CLAIM
          :: else
#else
          :: old == SEQ(next - N)
          :: else -> AGAIN                      /* a later lap: the head that was found is an old one */
#endif
          fi)
#if defined(FAULT_CLAIM)
    /* The number is stored with the header. */
#elif defined(FAULT_BLIND_CLAIM)
    PLAIN(true -> TABLE(c, next).seq = next; TABLE(c, next).physical = new)
#else
    PLAIN(true ->
          if
          :: TABLE(c, next).seq == old && TABLE(c, next).physical == new -> TABLE(c, next).seq = next; WORTHLESS(c, new)
          :: else -> goto claim                 /* the reader has exchanged it, or another thread has claimed it */
          fi)
#endif
#else
    PLAIN(true ->
#ifndef FAULT_FULL
          if :: REACHED(next, consumed[c] + N) -> s = 0; p = 0; at = 0; next = 0; goto count_lost :: else fi;
#endif
          new = next % N)
#endif

sequence:
    atomic { ENTER }
#ifndef FAULT_CPU
    STEP(if :: on == c :: else -> LEAVE; AGAIN fi)
#endif
#ifndef FAULT_HEAD
    STEP(if :: head[c].seq == s && head[c].at == at && head[c].physical == p :: else -> LEAVE; AGAIN fi)
#endif
    STEP(if :: at != 0 -> APART(c, p, at); SUB(c, p).used = at :: else fi)
    STEP(APART(c, new, 0);
#ifdef FAULT_CLAIM
         TABLE(c, next).seq = next;
#endif
         SUB(c, new).seq = SEQ(next) + 1; SUB(c, new).begin = made[c];
         SUB(c, new).total = (at == 0 -> 0 : SUB(c, p).total + at - 1))
    STEP(CHECK(SUB(c, new).total == units[c], a sub-buffer says how much was written before it);
         CHECK(SUB(c, new).begin == made[c], order and time stamps are kept);
         head[c].seq = next; head[c].physical = new; head[c].at = 1; LEAVE; AGAIN)

count_lost:
#ifdef FAULT_COUNT
    atomic { FORGET; tries = 0; goto event }
#else
    PLAIN(true -> lost[c]++; FORGET; tries = 0; goto event)
#endif

finished:
    atomic { FORGET; tries = 0; left = 0; running-- }
}

/* Where the reader is in a buffer: events are read up to `at` of sub-buffer `seq`; `got` is the next event's stamp, and
 * `gap` says that sub-buffers were overwritten since the last event. */
typedef Tail { byte seq; byte at; byte got; bit gap }
Tail tail[CPUS];
#define MORE(c) (head[c].at != 0 && (head[c].seq != tail[c].seq || head[c].at > tail[c].at))

/* The header of sub-buffer q, on entering it. */
#define HEADER(c, number, begins) \
    if \
    :: tail[c].at == 1 -> \
        CHECK((number) == q + 1, a sub-buffer is the one that was looked for); \
        CHECK((begins) == tail[c].got || (tail[c].gap && (begins) > tail[c].got), events are lost only where that is counted); \
        tail[c].got = begins; \
        tail[c].gap = 0 \
    :: else \
    fi
/* The event whose first unit is `first` and whose last one, if it has two, is `second`. */
#define READ(c, first, second) \
    CHECK(first != TORN && (LENGTH(first) == 1 || second == first), no event is read before it is complete); \
    CHECK(STAMP(first) == tail[c].got, each event is read once and in order); \
    at = at + LENGTH(first); \
    tail[c].got++

proctype Reader() {
    byte c, q, p, end, at;
    bit whole;
#ifdef OVERWRITE
    byte seq, begin, copied[S - 1];     /* what was copied of the current sub-buffer */
#endif
#ifdef SNAPSHOTS
    byte snapshots = SNAPSHOTS;

rewind:
    /* To the oldest sub-buffer that there may be. */
    atomic {
        if
        :: snapshots == 0 -> goto stop
        :: else -> snapshots--
        fi;
        tail[0].seq = SEQ(head[0].seq - (N - 1));
        if :: REACHED(tail[0].seq, ORIGIN) :: else -> tail[0].seq = ORIGIN fi;
        tail[0].at = 1; tail[0].got = 0; tail[0].gap = 1
    }
#endif

round:
    /* Waits for something to read; loads the head. */
    atomic {
        c = 0; q = 0; p = 0; end = 0; at = 0; whole = 0;
        if
        :: MORE(0) -> c = 0
#if CPUS > 1
        :: MORE(1) -> c = 1
        :: !MORE(0) && !MORE(1) && running == 0 -> goto drained
#elif defined(SNAPSHOTS)
        :: !MORE(0) -> goto rewind
#else
        :: !MORE(0) && running == 0 -> goto drained
#endif
        fi;
        q = tail[c].seq; at = tail[c].at;
        if :: head[c].seq == q -> p = head[c].physical; end = head[c].at :: else fi
    }
#ifndef OVERWRITE
    /* Everything up to the head is stable until it is released. */
#ifdef FAULT_RELEASE_FIRST
    atomic { if :: end == 0 -> consumed[c] = SEQ(q + 1) :: else fi }
#endif
    atomic {
        if :: end == 0 -> p = q % N; end = SUB(c, p).used; whole = 1 :: else fi;
        HEADER(c, SUB(c, p).seq, SUB(c, p).begin);
        CHECK(end >= at && end < S, a closed sub-buffer says how much it holds);
        hold[c].physical = p + 1; hold[c].end = end
    }
#else
    if
    :: end != 0 -> goto copy
    :: else
    fi;
    /* A full one: exchanged for the spare, unless a writer was faster. */
    atomic {
        p = TABLE(c, q).physical;
        if
        :: TABLE(c, q).seq != q ->
            CHECK(REACHED(head[c].seq + 1, q + N), no sub-buffer is given up before its slot is needed);
            tail[c].seq = SEQ(q + 1); tail[c].at = 1; tail[c].gap = 1;
            goto round
        :: else
        fi
    }
    atomic {
#ifndef FAULT_EXCHANGE
        if
        :: TABLE(c, q).seq == q && TABLE(c, q).physical == p ->
#else
        if
        :: true ->
#endif
            TABLE(c, q).physical = spare[c];
            hold[c].physical = p + 1; hold[c].end = S;
            end = SUB(c, p).used; whole = 1
        :: else -> goto round
        fi
    }
    atomic { HEADER(c, SUB(c, p).seq, SUB(c, p).begin); CHECK(end >= at && end < S, a closed sub-buffer says how much it holds) }
#endif
    do
    :: at < end ->
        atomic {
            READ(c, SUB(c, p).unit[at - 1], SUB(c, p).unit[at])
        }
    :: at >= end -> break
    od;
    atomic { hold[c].physical = 0; hold[c].end = 0; tail[c].at = at }
    if
    :: whole ->                         /* nothing more will come */
#ifndef OVERWRITE
        atomic { WORTHLESS(c, p); consumed[c] = SEQ(q + 1); tail[c].seq = SEQ(q + 1); tail[c].at = 1 }
#elif defined(SNAPSHOTS)
        atomic {                        /* give_back: the reverse exchange */
#ifdef FAULT_GIVE_BACK
            TABLE(c, q).physical = p;
#else
            if
            :: TABLE(c, q).seq == q && TABLE(c, q).physical == spare[c] -> TABLE(c, q).physical = p
            :: else -> spare[c] = p; WORTHLESS(c, p)     /* the spare has been claimed */
            fi;
#endif
            tail[c].seq = SEQ(q + 1); tail[c].at = 1
        }
#else
#ifdef FAULT_SPARE
        atomic { tail[c].seq = SEQ(q + 1); tail[c].at = 1 }
#else
        atomic { spare[c] = p; WORTHLESS(c, p); tail[c].seq = SEQ(q + 1); tail[c].at = 1 }
#endif
#endif
    :: else
    fi;
    goto round;

#ifdef OVERWRITE
copy:
    /* The current one: copied while writers append, and believed if its slot was not claimed meanwhile. */
    atomic { seq = SUB(c, p).seq; begin = SUB(c, p).begin }
    do
    :: at < end -> atomic { copied[at - 1] = SUB(c, p).unit[at - 1]; at++ }
    :: at == end -> break
    od;
    atomic {
        at = tail[c].at;
        if
#ifndef FAULT_COPY
        :: TABLE(c, q).seq == q ->
#else
        :: true ->
#endif
            HEADER(c, seq, begin);
            do
            :: at < end -> READ(c, copied[at - 1], copied[at])
            :: else -> break
            od;
            tail[c].at = at
        :: else                         /* `round` finds it overwritten */
        fi;
        seq = 0; begin = 0; at = 1;
        do
        :: at < S -> copied[at - 1] = 0; at++
        :: else -> break
        od;
        goto round
    }
#endif

#ifdef SNAPSHOTS
stop:
    skip
#else
drained:
    atomic {
        CHECK(tail[0].got == made[0], what was committed has been read or counted as overwritten);
#if CPUS > 1
        CHECK(tail[1].got == made[1], what was committed has been read or counted as overwritten);
        CHECK(made[0] + lost[0] + made[1] + lost[1] + dropped == emitted, no event is lost uncounted)
#else
        CHECK(made[0] + lost[0] + dropped == emitted, no event is lost uncounted)
#endif
    }
#endif
}

init {
    atomic {
        byte i;
        for (i : 0 .. CPUS - 1) {
            head[i].seq = ORIGIN; head[i].physical = ORIGIN % N;
            tail[i].seq = ORIGIN; tail[i].at = 1;
#ifdef OVERWRITE
            TABLE(i, 0).seq = SEQ(ORIGIN - N); TABLE(i, 0).physical = 0;
            TABLE(i, 1).seq = SEQ(ORIGIN - N + 1); TABLE(i, 1).physical = 1;
            spare[i] = N
#else
            consumed[i] = ORIGIN
#endif
        }
        for (i : 0 .. THREADS - 1) { run Writer(i) }
        run Reader()
    }
}
