/* What the models of the ring share. */
#include "check.h"

/* Sequence numbers of sub-buffers, modulo 128, starting just below the wrap. 128 laps' worth of commit counts of
 * S = 4 units over N = 2 slots is 256, where a byte wraps: both wrap at the same moment, as in the ring. */
#define SEQ(x) ((x) & 127)
#define ORIGIN 126
/* a is not before b */
#define REACHED(a, b) (SEQ((a) - (b)) < 64)

#define N 2                             /* slots: sub-buffers that writers have */
#ifdef OVERWRITE
#define PHYSICAL 3                      /* and the reader's spare */
#else
#define PHYSICAL 2
#endif
#ifndef S
#define S 4                             /* units of a sub-buffer, the first of which is its header */
#endif
#ifdef FAULT_FIT
#define FITS(at, len) ((at) + (len) <= S)
#else
#define FITS(at, len) ((at) + (len) < S)
#endif

/* A sub-buffer: its header, then what lies in its units. A unit's content is an event's stamp and length, both in every
 * unit of the event, or TORN while it is written. `seq` is the number plus one, so that 0 is no number. */
typedef Sub { byte seq; byte used; byte begin; byte total; byte unit[S - 1] }
/* A word of the table: one atomic word. */
typedef Slot { byte seq; byte physical }

#define TORN 0
#define EVENT(stamp, len) ((stamp) * 2 + (len))
#define LENGTH(unit) ((((unit) - 1) & 1) + 1)
#define STAMP(unit) (((unit) - 1) / 2)
