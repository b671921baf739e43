/* The one file that defines the tracepoints of kinds-tp.h and their probes. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "kinds-tp.h"
