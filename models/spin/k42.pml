/* K42's buffers: the race that the LTTng paper describes, found by Spin.
 *
 * Modelled: Wisniewski and Rosenburg, "Efficient, Unified, and Scalable Performance Monitoring ...", Figure 2
 * (traceReserve, traceLog, traceCommit), with the counters as Desnoyers and Dagenais, "Lockless Multi-Core ...",
 * section 2, describe them: `buffersProduced` counts at the reservation that crosses into the next buffer,
 * `buffersConsumed` counts what the daemon has taken, `bufferCount` is the amount committed in each buffer.
 * Three contexts of one CPU log events and may interrupt each other at every step. A buffer takes two events.
 *
 * The daemon takes a buffer that has been produced and whose `bufferCount` says that all of it is committed. Two readings
 * of the papers:
 *   default      section 2 of the LTTng paper: the counts run freely, and a multiple of the buffer's size is "full".
 *   ZEROED       section 3.1 of the K42 paper: a count is zeroed when its buffer is started, and the size is "full".
 *
 * Found: the daemon reads a slot that was reserved and not yet written, in both readings. In the first, a buffer of
 * which nothing is committed has a count of 0, a multiple of its size. In the second, a commit that comes a lap late
 * stands in for one of this lap.
 * Proved: with ALONE (contexts do not interrupt each other) no such thing happens, so it is the interleaving that does it.
 *
 * Left out: the filler event (both events of a buffer fit it exactly), time stamps, and the daemon's pace: K42's writers
 * do not wait for it, so an overwritten buffer is skipped by the daemon and not an error.
 *
 * The printf lines tell the interleaving; `spin -t` replays a trail with them.
 */
#define BUFFERS 2
#define SLOTS 2                 /* events that a buffer holds */
#define CONTEXTS 3
#define EVENTS 3                /* events of each context */
#define STALE 0                 /* a slot's content before it is written in this lap */

byte idx;                       /* trcCtlPtr->index, in events */
byte produced, consumed;        /* buffersProduced, buffersConsumed */
byte count[BUFFERS];            /* bufferCount */
byte slot[BUFFERS * SLOTS];     /* which lap's event it holds: lap + 1 */
bit busy;                       /* ALONE: a context logs */

#define BUFFER(i) (((i) / SLOTS) % BUFFERS)
#define LAP(i) ((i) / (SLOTS * BUFFERS))

proctype Context(byte me) {
    byte left = EVENTS, old;
    do
    :: left > 0 ->
#ifdef ALONE
        atomic { busy == 0 -> busy = 1 }
#endif
        do /* traceReserve */
        :: old = idx;
           if
           :: atomic { idx == old ->
                idx = idx + 1;
                printf("context %d: reserves slot %d of buffer %d in lap %d\n", me, old % SLOTS, BUFFER(old), LAP(old));
                if
                :: old % SLOTS == 0 && old > 0 ->
                    /* the event that crosses into this buffer: the one before is "produced" */
                    produced++;
                    printf("context %d: so buffer %d is full of reservations: buffersProduced = %d\n",
                           me, BUFFER(old - 1), produced);
#ifdef ZEROED
                    count[BUFFER(old)] = 0;
                    printf("context %d: starts buffer %d: its bufferCount = 0\n", me, BUFFER(old))
#endif
                :: else
                fi }
              break
           :: atomic { idx != old -> printf("context %d: was interrupted; tries again\n", me) }
           fi
        od;
        atomic { /* the data */
            slot[old % (SLOTS * BUFFERS)] = LAP(old) + 1;
            printf("context %d: writes slot %d of buffer %d\n", me, old % SLOTS, BUFFER(old))
        }
        atomic { /* traceCommit */
            count[BUFFER(old)]++;
            printf("context %d: commits it: bufferCount of buffer %d = %d\n", me, BUFFER(old), count[BUFFER(old)]);
            left--;
            old = 0;
            busy = 0
        }
    :: left == 0 -> break
    od
}

#ifdef ZEROED
#define FULL(b) (count[b] == SLOTS)
#else
#define FULL(b) (count[b] % SLOTS == 0)
#endif
/* Still this lap's: no writer has gone round and started it again. */
#define CURRENT (idx <= (consumed + BUFFERS) * SLOTS)

active proctype Daemon() {
    byte i, b;
end:
    do
    :: atomic { consumed < produced && FULL(consumed % BUFFERS) ->
        b = consumed % BUFFERS;
        printf("daemon:    buffersConsumed = %d < buffersProduced = %d, and bufferCount of buffer %d = %d: takes it\n",
               consumed, produced, b, count[b]) }
       i = 0;
       do
       :: i < SLOTS ->
            atomic {
                if
                :: CURRENT && slot[b * SLOTS + i] != consumed / BUFFERS + 1 ->
                    printf("daemon:    reads slot %d of buffer %d, reserved and NOT YET WRITTEN\n", i, b);
                    printf("violated: no event is read before it is complete\n");
                    assert(false)
                :: else
                fi;
                i++
            }
       :: i == SLOTS -> break
       od;
       atomic { consumed++; i = 0; b = 0 }
    :: atomic { consumed < produced && idx > (consumed + BUFFERS) * SLOTS -> consumed++ } /* overwritten: skipped */
    od
}

init { atomic { run Context(0); run Context(1); run Context(2) } }
