/* Protocols Smp and Local: LTTng's scheme, reserve by compare-and-swap, commit by adding.
 *
 * Modelled: crates/ring/src/lttng.rs and what it leads to, after Desnoyers and Dagenais, "Lockless Multi-Core ...", sections
 * 4.2 and 4.3: the write count (head), commit count and commit seq of each slot, Equations 1 to 4, TRYRESERVESLOT,
 * RESERVESLOT, COMMITSLOT, FORCESWITCH, SWITCHOLDSUBBUF, SWITCHNEWSUBBUF, READGETSUBBUF, READPUTSUBBUF. Slots are reserved
 * in order and committed in any order. One buffer: with locked instructions it does not matter which CPU a thread is on
 * (it may have migrated), so Smp is two threads that interleave freely on it.
 *   LOCAL      protocol Local: three contexts of one CPU (or THREADS), each of which interrupts those below it at any step
 *              and ends before they go on. Else protocol Smp.
 *   OVERWRITE  overwrite mode: slots are claimed, the reader exchanges sub-buffers with its spare. Else discard mode.
 *   EVEN       all events have 2 units; with S=8, three of them fill a sub-buffer.
 *   FORCE      one more writer forces a switch.
 *   DEATHS     so many writers are killed, each anywhere, also between reserving and committing. When no writer is left the
 *              reader finalises: what the commit seq vouches for is read, the rest is reported as unfinished.
 *   BOUND      a writer gives up after ATTEMPTS failures of its compare-and-swap, as in the source; else it never does.
 *
 * Events of 1 and 2 units in sub-buffers of S - 1 = 3: some fit exactly, some leave a rest to commit. Sequence numbers and
 * commit counts start just below their wrap.
 *
 * Time: made counts the events reserved. It serves as clock: an event's stamp is its number if and only if no other was
 * reserved between the reading of the clock and the compare-and-swap.
 *
 * Proved:
 *   no event is read before it is complete; none is read twice; order and time stamps are kept, with gaps only where
 *     sub-buffers were overwritten, or are reported as unfinished by killed writers;
 *   none is lost uncounted; no sub-buffer is given up before writers need its slot; reader and writer are never in one
 *     sub-buffer, except that writers write behind what is read;
 *   two writers never have one slot;
 *   a sub-buffer says how much was written before it;
 *   with BOUND, every run ends.
 *
 * Left out: extended stamps, weak memory (weak.pml).
 */
#include "common.h"
#ifdef THREADS
#elif defined(LOCAL)
#define THREADS 3
#elif defined(FORCE)
#define THREADS 3
#else
#define THREADS 2
#endif
#ifndef EMITS
#define EMITS 3                         /* events of each writer */
#endif
#ifndef DEATHS
#define DEATHS 0
#endif
#ifndef ATTEMPTS
#define ATTEMPTS 2
#endif

typedef Head { byte seq; byte physical; byte at }       /* one atomic word: the write count */
Head head;
Sub sub[PHYSICAL];
byte commit_count[N], commit_seq[N];
#ifdef OVERWRITE
Slot table[N];
byte spare = N;
#else
byte consumed = ORIGIN;                 /* the read count */
#endif
byte lost;

/* What nobody but the properties looks at. */
byte made;                              /* events reserved */
byte units;                             /* and their units */
byte emitted, dropped;                  /* dropped: not reserved by killed writers */
byte deaths = DEATHS;
byte running = THREADS;
byte held, held_end;                    /* what the reader reads now: physical + 1, up to this offset */
bit busy[3];                            /* LOCAL: contexts that run or are interrupted */

/* Bytes that a commit count says are committed in the lap of q. */
#define COMMITTED(count, q) (((count) - (q) / N * S) & 255)

#define WORTHLESS(p) \
    sub[p].seq = 0; sub[p].used = 0; sub[p].begin = 0; sub[p].total = 0; \
    sub[p].unit[0] = TORN; sub[p].unit[1] = TORN; sub[p].unit[2] = TORN MORE_UNITS(p)
#if S == 8
#define MORE_UNITS(p) ; sub[p].unit[3] = TORN; sub[p].unit[4] = TORN; sub[p].unit[5] = TORN; sub[p].unit[6] = TORN
#else
#define MORE_UNITS(p)
#endif
#define APART(p, from) CHECK(held != (p) + 1 || (from) >= held_end, reader and writer are never in one sub-buffer)

#ifdef LOCAL
#define TURN ((me != 0 || !busy[1] && !busy[2]) && (me != 1 || !busy[2]))
#else
#define TURN true
#endif
#define FORGET s = 0; p = 0; at = 0; next = 0; old = 0; new = 0; stamp = 0; count = 0; end = 0
#define DIE deaths > 0 -> deaths--; busy[me] = 0
#define BEFORE(...) atomic { if :: TURN -> __VA_ARGS__ :: TURN && DIE; dropped++; goto finished fi }
/* A forced switch is no event. */
#define AFTER(...) atomic { if :: TURN -> __VA_ARGS__ :: TURN && DIE; if :: FORCES -> emitted-- :: else fi; goto finished fi }

/* COMMITSLOT: `units` that end at offset `last` of sub-buffer q. */
#ifdef FAULT_UNLOCKED_COMMIT
#define ADD(q, units) AFTER(count = commit_count[(q) % N]) AFTER(count = (count + units) & 255; commit_count[(q) % N] = count)
#else
#define ADD(q, units) AFTER(commit_count[(q) % N] = (commit_count[(q) % N] + units) & 255; count = commit_count[(q) % N])
#endif
/* The commit seq follows when nothing that was reserved is uncommitted. */
#ifdef FAULT_SEQ
#define NO_GAP(q, last) COMMITTED(count, q) == last
#else
#define NO_GAP(q, last) COMMITTED(count, q) == S || (head.seq == q && head.at == COMMITTED(count, q))
#endif
#define COMMIT(q, units, last) \
    ADD(q, units) \
    AFTER(if :: NO_GAP(q, last) -> end = 1 :: else -> end = 0 fi) \
    if :: end == 1 -> AFTER(commit_seq[(q) % N] = count) :: else fi

proctype Writer(byte me) {
    byte left = EMITS;
    byte s, p, at;                      /* the head that was found; then the event's place */
    byte next, old, new;                /* the sub-buffer to open; the word of its slot */
    byte stamp, count, end, tries;
#ifdef EVEN
#define FORCES false
#define LEN 2
#elif defined(FORCE)
#define FORCES (me == 2)
#define LEN (me == 2 -> 0 : me % 2 + 1)
#else
#define FORCES false
#define LEN (me % 2 + 1)
#endif

event:
    atomic {
        TURN -> if :: left == 0 -> goto finished :: else -> left--; emitted++; busy[me] = 1 fi
    }
again:
#ifdef BOUND
    atomic { if :: TURN && tries == ATTEMPTS -> goto count_lost :: TURN && tries != ATTEMPTS -> tries++ fi }
#endif
    /* TRYRESERVESLOT */
#ifdef FAULT_STAMP
    BEFORE(stamp = made)
    BEFORE(s = head.seq; p = head.physical; at = head.at)
#else
    BEFORE(s = head.seq; p = head.physical; at = head.at)
    BEFORE(stamp = made)
#endif
    if
    :: at != 0 && FITS(at, LEN) && !FORCES ->
        atomic { next = s; new = p; end = at + LEN }
    :: (at == 0 || !FITS(at, LEN)) && !FORCES ->
        atomic { next = (at == 0 -> s : SEQ(s + 1)); end = 1 + LEN }
#ifdef FORCE
    :: FORCES && at > 1 -> atomic { next = SEQ(s + 1); end = 1 }
    :: FORCES && at <= 1 -> atomic { FORGET; tries = 0; emitted--; goto event }
#endif
    fi;
    if
    :: next == s && at != 0 -> skip
    :: else ->
#ifndef FAULT_OPENED
        /* The current sub-buffer is reserved and not opened: what its header says is not there yet. */
        BEFORE(if :: at != 0 && sub[p].seq != SEQ(s) + 1 -> goto count_lost :: else fi)
#endif
#ifdef OVERWRITE
#ifndef FAULT_EQUATION_3
        BEFORE(if :: COMMITTED(commit_count[next % N], next) > S -> goto count_lost :: else fi)
#endif
claim:
        BEFORE(old = table[next % N].seq; new = table[next % N].physical;
               if
               :: old == next -> goto replace
               :: old == SEQ(next - N)
               :: else -> FORGET; goto again
               fi)
#ifdef FAULT_UNLOCKED_CLAIM
        BEFORE(if :: table[next % N].seq == old && table[next % N].physical == new -> end = end + 100 :: else -> goto claim fi)
        BEFORE(end = end - 100; table[next % N].seq = next; table[next % N].physical = new; WORTHLESS(new))
#else
        BEFORE(if
               :: table[next % N].seq == old && table[next % N].physical == new ->
                  table[next % N].seq = next; WORTHLESS(new)
               :: else -> goto claim
               fi)
#endif
#else
#ifndef FAULT_EQUATION_1
        BEFORE(if :: REACHED(next, consumed + N) -> goto count_lost :: else fi)
#endif
        new = next % N
#endif
    fi;
replace:
#ifdef FAULT_UNLOCKED_RESERVE
    BEFORE(if :: head.seq == s && head.physical == p && head.at == at -> skip :: else -> FORGET; goto again fi)
#endif
    BEFORE(
        if
#ifdef FAULT_UNLOCKED_RESERVE
        :: true ->
#else
        :: head.seq == s && head.physical == p && head.at == at ->
            CHECK(stamp == made, order and time stamps are kept);
#endif
            head.seq = next; head.physical = new; head.at = end;
#ifdef FAULT_FIT
            if :: end == S -> head.at = 0; head.physical = (new + 1) % PHYSICAL :: else fi;
#endif
            CHECK(next == s || at == 0 || sub[p].total + at - 1 == units, a sub-buffer says how much was written before it);
            if :: FORCES :: else -> made++; units = units + LEN fi
        :: else -> FORGET; goto again
        fi)

    if
    :: next == s && at != 0 -> skip
    :: else ->
        if
        :: at != 0 ->
            /* SWITCHOLDSUBBUF */
#ifdef FAULT_CLOSE
            COMMIT(s, (S - at), S);
#endif
            AFTER(APART(p, at); sub[p].used = at; old = sub[p].total + at - 1)
#ifndef FAULT_CLOSE
            COMMIT(s, (S - at), S)
#endif
        :: else
        fi;
        /* SWITCHNEWSUBBUF */
        AFTER(APART(new, 0); sub[new].begin = stamp; sub[new].total = (at == 0 -> 0 : old); sub[new].seq = SEQ(next) + 1)
#ifdef FAULT_USED
        AFTER(APART(new, 0); sub[new].used = 0)
#endif
        COMMIT(next, 1, 1);
        AFTER(at = 1)
    fi;
    if
    :: FORCES -> atomic { TURN -> FORGET; tries = 0; emitted--; busy[me] = 0; goto event }
    :: else
    fi;
#ifdef FAULT_COMMIT_FIRST
    COMMIT(next, LEN, at + LEN);
#endif
    AFTER(APART(new, at); CHECK(sub[new].unit[at - 1] == TORN, two writers never have one slot);
          sub[new].unit[at - 1] = EVENT(stamp, LEN); if :: LEN == 2 -> sub[new].unit[at] = EVENT(stamp, LEN) :: else fi)
#ifndef FAULT_COMMIT_FIRST
    COMMIT(next, LEN, at + LEN);
#endif
    atomic { TURN -> FORGET; tries = 0; busy[me] = 0; goto event }

count_lost:
    BEFORE(if :: FORCES -> emitted-- :: else -> lost++ fi; FORGET; tries = 0; busy[me] = 0; goto event)

finished:
    atomic { FORGET; tries = 0; left = 0; running-- }
}

/* Where the reader is: events are read up to `at` of sub-buffer q; `got` is the next event's stamp. */
byte q = ORIGIN, tail = 1, got;
bit gap;                                /* sub-buffers were overwritten, or left unfinished, since the last event */

#define ALL_COMMITTED (COMMITTED(commit_count[q % N], q) == (head.seq == q -> head.at : S))
#ifdef OVERWRITE
#define TAKEN_AWAY (table[q % N].seq != q)
#else
#define TAKEN_AWAY false
#endif
#define MORE (head.seq != q || head.at > tail)

/* When the reader looks. With BOUND only when it is worth it, since looking in vain again and again is no progress; as the
 * commit count is loaded first, looking earlier finds nothing. */
#ifdef BOUND
#define POLL (MORE && ALL_COMMITTED)
#else
#define POLL MORE
#endif

#define HEADER(number, begins) \
    if \
    :: tail == 1 -> \
        CHECK((number) == q + 1, a sub-buffer is the one that was looked for); \
        CHECK((begins) == got || (gap && (begins) > got), events are lost only where that is counted); \
        got = begins; \
        gap = 0 \
    :: else \
    fi
#define READ(first, second) \
    CHECK(first != TORN && (LENGTH(first) == 1 || second == first), no event is read before it is complete); \
    CHECK(STAMP(first) == got, each event is read once and in order); \
    at = at + LENGTH(first); \
    got++

proctype Reader() {
    byte count, p, end, at;
    bit whole, unfinished;
#ifdef OVERWRITE
    byte seq, begin, copied[S - 1];
#endif

round:
    atomic {
        count = 0; p = 0; end = 0; at = tail; whole = 0;
        if
        :: POLL
        :: MORE && TAKEN_AWAY
        :: running == 0 && !MORE -> goto drained
        :: running == 0 && MORE && !ALL_COMMITTED && !TAKEN_AWAY -> goto finalise
        fi;
        /* The commit count is loaded before the write count: when they are equal, nothing was reserved in between that is not
         * committed. */
#ifdef FAULT_COUNT_LATE
        if :: head.seq == q -> p = head.physical; end = head.at :: else fi
#else
        count = COMMITTED(commit_count[q % N], q)
#endif
    }
    atomic {
#ifdef FAULT_COUNT_LATE
        count = COMMITTED(commit_count[q % N], q);
#else
        if :: head.seq == q -> p = head.physical; end = head.at :: else fi;
#endif
        if
        :: end != 0 && (count != end || end == tail) -> goto round
        :: end != 0 && count == end && end != tail
#ifndef FAULT_EQUATION_2
        :: end == 0 && count != S && !(count > S && REACHED(head.seq, q + N - 1)) -> goto round
#endif
        :: else
        fi
    }
#ifndef OVERWRITE
    atomic {
        if :: end == 0 -> p = q % N; end = sub[p].used; whole = 1 :: else fi;
        HEADER(sub[p].seq, sub[p].begin);
        CHECK(end >= at && end < S, a closed sub-buffer says how much it holds);
        held = p + 1; held_end = end
    }
#else
    if
    :: end != 0 -> goto copy
    :: else
    fi;
    atomic {
        p = table[q % N].physical;
        if
        :: table[q % N].seq != q ->
            CHECK(REACHED(head.seq + 1, q + N), no sub-buffer is given up before its slot is needed);
            q = SEQ(q + 1); tail = 1; gap = 1;
            goto round
        :: else
        fi
    }
    atomic {
        if
        :: table[q % N].seq == q && table[q % N].physical == p ->
            table[q % N].physical = spare;
            held = p + 1; held_end = S;
            end = sub[p].used; whole = 1
        :: else -> goto round
        fi
    }
    atomic { HEADER(sub[p].seq, sub[p].begin); CHECK(end >= at && end < S, a closed sub-buffer says how much it holds) }
#endif
    do
    :: at < end -> atomic { READ(sub[p].unit[at - 1], sub[p].unit[at]) }
    :: at >= end -> break
    od;
    atomic { held = 0; held_end = 0; tail = at }
    if
    :: whole ->
#ifdef OVERWRITE
        atomic { spare = p; WORTHLESS(p); q = SEQ(q + 1); tail = 1 }
#else
        atomic { WORTHLESS(p); consumed = SEQ(q + 1); q = SEQ(q + 1); tail = 1 }
#endif
    :: else
    fi;
    goto round;

#ifdef OVERWRITE
copy:
    atomic { seq = sub[p].seq; begin = sub[p].begin }
    do
    :: at < end -> atomic { copied[at - 1] = sub[p].unit[at - 1]; at++ }
    :: at == end -> break
    od;
    atomic {
        at = tail;
        if
        :: table[q % N].seq == q ->
            HEADER(seq, begin);
            do
            :: at < end -> READ(copied[at - 1], copied[at])
            :: else -> break
            od;
            tail = at
        :: else
        fi;
        seq = 0; begin = 0; at = 1;
        do
        :: at < S -> copied[at - 1] = 0; at++
        :: else -> break
        od;
        goto round
    }
#endif

finalise:
    /* Nobody writes any more, and this sub-buffer has a gap. What lies in front of it was committed. */
    atomic {
        CHECK(deaths < DEATHS, a sub-buffer is left unfinished only by writers that were killed);
#ifdef OVERWRITE
        p = table[q % N].physical;
#else
        p = q % N;
#endif
        if
        :: sub[p].seq == q + 1 ->
            end = COMMITTED(commit_seq[q % N], q);
            if
            :: end <= S && end > tail ->
                HEADER(sub[p].seq, sub[p].begin);
                if :: end == S -> end = sub[p].used :: else fi;
                do
                :: at < end -> READ(sub[p].unit[at - 1], sub[p].unit[at])
                :: else -> break
                od
            :: else
            fi
        :: else
        fi;
        unfinished = 1; gap = 1;
        if
        :: head.seq == q -> goto drained
        :: else -> q = SEQ(q + 1); tail = 1; goto round
        fi
    }

drained:
    atomic {
        CHECK(got == made || unfinished, what was committed has been read or counted as overwritten);
        CHECK(made + lost + dropped == emitted, no event is lost uncounted)
    }
}

init {
    atomic {
        byte i;
        head.seq = ORIGIN; head.physical = ORIGIN % N;
        for (i : 0 .. N - 1) {
            commit_count[i] = ORIGIN / N * S & 255;
            commit_seq[i] = ORIGIN / N * S & 255;
#ifdef OVERWRITE
            table[i].seq = SEQ(ORIGIN - N + i); table[i].physical = i
#endif
        }
        for (i : 0 .. THREADS - 1) { run Writer(i) }
        run Reader()
    }
}
