/* tracewing.h: instruments C and C++ programs.
 *
 *     #include <tracewing.h>
 *
 *     TRACEWING_EVENT(enqueued, "shop:enqueued", (uint64_t, order), (unsigned, depth), (const char *, customer))
 *
 *     TRACEWING_EMIT(enqueued, order->id, queue.length, order->customer);
 *
 * TRACEWING_EVENT, outside of functions, declares an event: its identifier in the program, its name in the trace
 * ("provider:event"), and its fields, at most sixteen: types and names. TRACEWING_EMIT emits one; its arguments are evaluated only
 * while some recording enables the event. Until then a TRACEWING_EMIT is one instruction, a nop, in the path of the program.
 *
 * Types of fields: integers, bool, float, double, enumerations as the integers that they are, pointers to void (shown in
 * hexadecimal), `const char *` (text up to its NUL; NULL is an empty one), struct tracewing_text and struct tracewing_bytes (a
 * pointer and a length). Texts, and the strings in declarations, are UTF-8.
 *
 * Link with `pkg-config --cflags --libs tracewing`. `tracewing record -- PROGRAM` records it; so does the program itself, with
 * tracewing_session_start. Everything here may be called wherever the Rust crate's documentation permits its counterpart:
 * events also in signal handlers, forked children and at exit.
 *
 * x86-64, gcc 9 or clang 9 or later, C11 or C++17. With TRACEWING_DISABLE defined, events and spans compile to nothing.
 */
#ifndef TRACEWING_H
#define TRACEWING_H
#pragma GCC system_header

#if !defined(__x86_64__) || !defined(__linux__)
#error "tracewing.h is for Linux on x86-64 so far"
#endif

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
#include <type_traits>
extern "C" {
#endif

/* ---- Texts and bytes with a length ---------------------------------------------------------------------------------- */

/* Text; it ends at a NUL in it, if there is one. */
struct tracewing_text {
    const char *start;
    size_t length;
};

/* Any bytes, at most 65535. */
struct tracewing_bytes {
    const uint8_t *start;
    size_t length;
};

/* ---- Spans ------------------------------------------------------------------------------------------------------------ */

/* A span that has begun; all 0 while it is not recorded. */
struct tracewing_span {
    uint64_t id;
    uint64_t before;
};

/* The innermost span that the calling thread is in, 0 for none: a parent for TRACEWING_SPAN_BEGIN_IN on another thread. */
uint64_t tracewing_span_innermost(void);

/* ---- User threads: what the program schedules onto threads itself (docs/reference/tasks.md) ------------------------------------- */

/* Why a user thread stops running. */
enum tracewing_cause {
    TRACEWING_NONE = 0,
    TRACEWING_ENDED = 1,
    TRACEWING_BLOCKED = 2,
    TRACEWING_YIELDED = 3,
    TRACEWING_BUDGET = 4,
    TRACEWING_PREEMPTED = 5,
    TRACEWING_NESTED = 6,
    TRACEWING_PENDING = 7 /* it has not ended; whether it is blocked or ready is not known */
};

/* How a user thread ends. */
enum tracewing_outcome {
    TRACEWING_COMPLETED = 0,
    TRACEWING_CANCELLED = 1,
    TRACEWING_PANICKED = 2,
    TRACEWING_UNKNOWN = 3
};

/* Creates a user thread, ready to run; returns its number, never 0. Name and runtime may be NULL. The trace has the source line. */
#define tracewing_user_thread_create(name, runtime) \
    tracewing_user_thread_create_at((name), (runtime), __FILE__, __LINE__)
uint64_t tracewing_user_thread_create_at(const char *name, const char *runtime, const char *file, unsigned line);
/* Renames a user thread. */
void tracewing_user_thread_name(uint64_t thread, const char *name);
/* The calling thread runs `next` from now on; 0 for none. Returns the user thread that it ran before, which stops for `cause`. */
uint64_t tracewing_user_thread_switch(uint64_t next, enum tracewing_cause cause);
/* The user thread that the calling thread runs, 0 for none. */
uint64_t tracewing_user_thread_current(void);
/* A user thread is ready to run. */
void tracewing_user_thread_wake(uint64_t thread);
/* A user thread ends; if it is running, a switch with TRACEWING_ENDED follows. */
void tracewing_user_thread_exit(uint64_t thread, enum tracewing_outcome outcome);

/* ---- Recordings by the program itself --------------------------------------------------------------------------------- */

struct tracewing_session;

/* How to record. Zero means the default. */
struct tracewing_session_options {
    const char *output;        /* the folder, which must not exist or be empty; not with flight_recorder */
    const char *const *events; /* patterns for names of events, NULL-terminated; NULL for all events */
    size_t sub_buffer_bytes;   /* a power of two */
    size_t sub_buffers;        /* for each CPU, a power of two */
    unsigned flush_ms;         /* time after which an event is in the folder */
    bool flight_recorder;      /* keeps the newest events in memory until tracewing_session_snapshot */
};

/* What a session has recorded. */
struct tracewing_session_summary {
    uint64_t events;
    uint64_t lost;
};

/* Begins a recording of this process. NULL on failure; `error`, if not NULL, then holds the reason: a NUL-terminated
 * line of at most `size` bytes. */
struct tracewing_session *tracewing_session_start(const struct tracewing_session_options *options, char *error, size_t size);
/* Ends and frees a session. False if something could not be written; `summary` and `error` may be NULL. */
bool tracewing_session_stop(struct tracewing_session *session, struct tracewing_session_summary *summary, char *error,
                            size_t size);
/* Writes what a flight recorder holds to a new folder. */
bool tracewing_session_snapshot(struct tracewing_session *session, const char *folder, char *error, size_t size);
/* Makes the `tracewing record --flight-recorder` that records this program write a snapshot. */
bool tracewing_snapshot(char *error, size_t size);

/* The calling thread writes no events from now on; enabled ones are counted as lost. Must be called before
 * prctl(PR_SET_SECCOMP, SECCOMP_MODE_STRICT), or PR_SET_TSC with PR_TSC_SIGSEGV: both take the clock away, so that the next event
 * would end the program. Not needed before a seccomp filter: events make no system call. */
void tracewing_before_sandbox(void);

/* report is called, on a thread of tracewing's, whenever a recording begins that the running process joins: what it records belongs
 * to it. For what the process has reported once, before anything recorded it. It must not wait for a thread that records. */
void tracewing_on_attach(void (*report)(void));

/* ---- The rest serves the macros and is not part of the interface --------------------------------------------------- */

/* As crates/abi lays them out: schema::Class, schema::Field. */
struct tracewing_str_ {
    const char *start;
    size_t length;
};

struct tracewing_field_ {
    struct tracewing_str_ name;
    uint8_t shape, scalar;
    uint32_t length;
    uint8_t base;
    struct tracewing_str_ unit;
    const void *labels;
    size_t label_count;
};

struct tracewing_description_ {
    struct tracewing_str_ name;
    uint8_t level, major;
    struct tracewing_str_ description, print, file;
    uint32_t line;
    const struct tracewing_field_ *fields;
    size_t field_count;
};

/* EventClass of crates/tracewing. */
struct tracewing_class_ {
    unsigned char state[56];
    const struct tracewing_description_ *(*describe)(const struct tracewing_class_ *);
} __attribute__((aligned(64)));

struct tracewing_segment_ {
    const void *start;
    size_t length;
};

void tracewing_load_2(void *object);
void tracewing_unload_2(void *object);
void tracewing_record_8_at_2(const struct tracewing_class_ *event, const void *payload, uintptr_t site);
void tracewing_record_16_at_2(const struct tracewing_class_ *event, const void *payload, uintptr_t site);
void tracewing_record_24_at_2(const struct tracewing_class_ *event, const void *payload, uintptr_t site);
void tracewing_record_32_at_2(const struct tracewing_class_ *event, const void *payload, uintptr_t site);
void tracewing_record_at_2(const struct tracewing_class_ *event, const void *payload, size_t length, uintptr_t site);
void tracewing_gather_at_2(const struct tracewing_class_ *event, const struct tracewing_segment_ *segments, size_t count, uintptr_t site);
uint64_t tracewing_span_begin_2(uint64_t *before);
bool tracewing_span_end_2(struct tracewing_span *span);

#ifdef __cplusplus
}
#endif

/* Shape and scalar of a field's type, as crates/abi numbers them. */
#define TRACEWING_ONE_ 0
#define TRACEWING_TEXT_ 1
#define TRACEWING_SLICE_ 3
#define TRACEWING_UNSIGNED_(size) ((size) == 1 ? 0 : (size) == 2 ? 1 : (size) == 4 ? 2 : 3)
#define TRACEWING_SIGNED_(size) ((size) == 1 ? 4 : (size) == 2 ? 5 : (size) == 4 ? 6 : 7)

/* A payload under construction: a run of bytes for values of constant size, and segments for texts. */
struct tracewing_writer_ {
    unsigned char *run;
    struct tracewing_segment_ *segments;
    size_t length, begin, count;
};

static inline __attribute__((always_inline)) void tracewing_put_(struct tracewing_writer_ *writer, const void *bytes, size_t size) {
    __builtin_memcpy(writer->run + writer->length, bytes, size);
    writer->length += size;
}

static inline __attribute__((always_inline)) void tracewing_refer_(struct tracewing_writer_ *writer, const void *start, size_t length) {
    if (writer->length > writer->begin) {
        writer->segments[writer->count].start = writer->run + writer->begin;
        writer->segments[writer->count++].length = writer->length - writer->begin;
        writer->begin = writer->length;
    }
    if (length > 0) {
        writer->segments[writer->count].start = start;
        writer->segments[writer->count++].length = length;
    }
}

static inline __attribute__((always_inline)) void tracewing_put_scalar_(struct tracewing_writer_ *writer, const void *value, size_t size) {
    tracewing_put_(writer, value, size);
}

static inline __attribute__((always_inline)) void tracewing_put_words_(struct tracewing_writer_ *writer, const char *start, size_t length) {
    tracewing_refer_(writer, start, length);
    tracewing_put_(writer, "", 1);
}

static inline __attribute__((always_inline)) void tracewing_put_string_(struct tracewing_writer_ *writer, const void *value, size_t size) {
    const char *string;
    __builtin_memcpy(&string, value, sizeof string);
    (void)size;
    tracewing_put_words_(writer, string, string ? strlen(string) : 0);
}

static inline __attribute__((always_inline)) void tracewing_put_text_(struct tracewing_writer_ *writer, const void *value, size_t size) {
    struct tracewing_text text;
    __builtin_memcpy(&text, value, sizeof text);
    (void)size;
    tracewing_put_words_(writer, text.start, strnlen(text.start, text.length));
}

static inline __attribute__((always_inline)) void tracewing_put_bytes_(struct tracewing_writer_ *writer, const void *value, size_t size) {
    struct tracewing_bytes bytes;
    uint16_t count;
    __builtin_memcpy(&bytes, value, sizeof bytes);
    (void)size;
    count = bytes.length > UINT16_MAX ? UINT16_MAX : (uint16_t)bytes.length;
    tracewing_put_(writer, &count, sizeof count);
    tracewing_refer_(writer, bytes.start, count);
}

static inline __attribute__((always_inline)) void tracewing_finish_(struct tracewing_writer_ *writer, const struct tracewing_class_ *event, uintptr_t site) {
    if (writer->count > 0) {
        tracewing_refer_(writer, NULL, 0);
        tracewing_gather_at_2(event, writer->segments, writer->count, site);
        return;
    }
    /* A constant, once this is inlined. */
    switch (writer->length) {
    case 8:
        tracewing_record_8_at_2(event, writer->run, site);
        return;
    case 16:
        tracewing_record_16_at_2(event, writer->run, site);
        return;
    case 24:
        tracewing_record_24_at_2(event, writer->run, site);
        return;
    case 32:
        tracewing_record_32_at_2(event, writer->run, site);
        return;
    default:
        tracewing_record_at_2(event, writer->length > 0 ? (const void *)writer->run : "", writer->length, site);
    }
}

#ifdef __cplusplus
namespace tracewing_ {
template <class T> struct traits {
    static_assert(std::is_arithmetic<T>::value || std::is_enum<T>::value || std::is_same<T, void *>::value ||
                      std::is_same<T, const void *>::value,
                  "not a type of a field; see tracewing.h");
    static_assert(sizeof(T) <= 8, "a number of a field has at most 8 bytes");
    static constexpr bool is_pointer = std::is_pointer<T>::value;
    static constexpr bool is_signed = std::is_signed<T>::value || (std::is_enum<T>::value && T(-1) < T(0));
    static constexpr uint8_t shape = TRACEWING_ONE_;
    static constexpr uint8_t base = is_pointer ? 16 : 10;
    static constexpr uint8_t scalar = std::is_same<T, bool>::value             ? 10
                                      : std::is_floating_point<T>::value       ? (sizeof(T) == 4 ? 8 : 9)
                                      : is_signed ? TRACEWING_SIGNED_(sizeof(T)) : TRACEWING_UNSIGNED_(sizeof(T));
    static constexpr auto put = tracewing_put_scalar_;
};
template <uint8_t Shape, void (*Put)(tracewing_writer_ *, const void *, size_t)> struct sequence {
    static constexpr uint8_t shape = Shape, base = 10, scalar = 0;
    static constexpr auto put = Put;
};
template <> struct traits<const char *> : sequence<TRACEWING_TEXT_, tracewing_put_string_> {};
template <> struct traits<char *> : sequence<TRACEWING_TEXT_, tracewing_put_string_> {};
template <> struct traits<::tracewing_text> : sequence<TRACEWING_TEXT_, tracewing_put_text_> {};
template <> struct traits<::tracewing_bytes> : sequence<TRACEWING_SLICE_, tracewing_put_bytes_> {};
} // namespace tracewing_
#define TRACEWING_SHAPE_OF_(type) ::tracewing_::traits<type>::shape
#define TRACEWING_SCALAR_OF_(type) ::tracewing_::traits<type>::scalar
#define TRACEWING_BASE_OF_(type) ::tracewing_::traits<type>::base
#define TRACEWING_PUT_OF_(type) ::tracewing_::traits<type>::put
#define TRACEWING_ASSERT_FIELD_(type)
#else
/* For each type whose kind can be found without a value: a pointer to it. */
#define TRACEWING_BY_TYPE_(type, string, text, bytes, pointer, boolean, single, real, other) \
    _Generic((type *)0, const char **: string, char **: string, struct tracewing_text *: text, struct tracewing_bytes *: bytes, \
             void **: pointer, const void **: pointer, _Bool *: boolean, float *: single, double *: real, default: other)
#define TRACEWING_SHAPE_OF_(type) \
    TRACEWING_BY_TYPE_(type, TRACEWING_TEXT_, TRACEWING_TEXT_, TRACEWING_SLICE_, TRACEWING_ONE_, TRACEWING_ONE_, \
                       TRACEWING_ONE_, TRACEWING_ONE_, TRACEWING_ONE_)
#define TRACEWING_IS_SIGNED_(type) \
    _Generic((type *)0, char *: (char)-1 < 0, signed char *: 1, short *: 1, int *: 1, long *: 1, long long *: 1, default: 0)
#define TRACEWING_SCALAR_OF_(type) \
    TRACEWING_BY_TYPE_(type, 0, 0, 0, 3, 10, 8, 9, \
                       (TRACEWING_IS_SIGNED_(type) ? TRACEWING_SIGNED_(sizeof(type)) : TRACEWING_UNSIGNED_(sizeof(type))))
#define TRACEWING_BASE_OF_(type) TRACEWING_BY_TYPE_(type, 10, 10, 10, 16, 10, 10, 10, 10)
#define TRACEWING_PUT_OF_(type) \
    TRACEWING_BY_TYPE_(type, tracewing_put_string_, tracewing_put_text_, tracewing_put_bytes_, tracewing_put_scalar_, \
                       tracewing_put_scalar_, tracewing_put_scalar_, tracewing_put_scalar_, tracewing_put_scalar_)
#endif

/* Macros for lists whose first element is not a field: an event's name, or its identifier. ISO C requires at least one argument. */
#define TRACEWING_CAT_(a, b) TRACEWING_CAT2_(a, b)
#define TRACEWING_CAT2_(a, b) a##b
#define TRACEWING_HEAD_(...) TRACEWING_HEAD2_(__VA_ARGS__, 0)
#define TRACEWING_HEAD2_(head, ...) head
#define TRACEWING_COUNT_(...) \
    TRACEWING_COUNT2_(__VA_ARGS__, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0, 0)
#define TRACEWING_COUNT2_(z, a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, count, ...) count
/* The elements after the first, preceded by a comma; nothing if there are none. */
#define TRACEWING_TAIL_(...) TRACEWING_CAT_(TRACEWING_TAIL_, TRACEWING_IS_LONG_(__VA_ARGS__))(__VA_ARGS__)
#define TRACEWING_TAIL_0(head)
#define TRACEWING_TAIL_1(head, ...) , __VA_ARGS__
#define TRACEWING_IS_LONG_(...) \
    TRACEWING_COUNT2_(__VA_ARGS__, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0)
/* Applies a macro to each element but the first: `what (type, name)`. */
#define TRACEWING_EACH_(what, ...) TRACEWING_CAT_(TRACEWING_EACH_, TRACEWING_COUNT_(__VA_ARGS__))(what, __VA_ARGS__)
#define TRACEWING_EACH_0(what, head)
#define TRACEWING_EACH_1(what, head, a) what a
#define TRACEWING_EACH_2(what, head, a, ...) what a TRACEWING_EACH_1(what, head, __VA_ARGS__)
#define TRACEWING_EACH_3(what, head, a, ...) what a TRACEWING_EACH_2(what, head, __VA_ARGS__)
#define TRACEWING_EACH_4(what, head, a, ...) what a TRACEWING_EACH_3(what, head, __VA_ARGS__)
#define TRACEWING_EACH_5(what, head, a, ...) what a TRACEWING_EACH_4(what, head, __VA_ARGS__)
#define TRACEWING_EACH_6(what, head, a, ...) what a TRACEWING_EACH_5(what, head, __VA_ARGS__)
#define TRACEWING_EACH_7(what, head, a, ...) what a TRACEWING_EACH_6(what, head, __VA_ARGS__)
#define TRACEWING_EACH_8(what, head, a, ...) what a TRACEWING_EACH_7(what, head, __VA_ARGS__)
#define TRACEWING_EACH_9(what, head, a, ...) what a TRACEWING_EACH_8(what, head, __VA_ARGS__)
#define TRACEWING_EACH_10(what, head, a, ...) what a TRACEWING_EACH_9(what, head, __VA_ARGS__)
#define TRACEWING_EACH_11(what, head, a, ...) what a TRACEWING_EACH_10(what, head, __VA_ARGS__)
#define TRACEWING_EACH_12(what, head, a, ...) what a TRACEWING_EACH_11(what, head, __VA_ARGS__)
#define TRACEWING_EACH_13(what, head, a, ...) what a TRACEWING_EACH_12(what, head, __VA_ARGS__)
#define TRACEWING_EACH_14(what, head, a, ...) what a TRACEWING_EACH_13(what, head, __VA_ARGS__)
#define TRACEWING_EACH_15(what, head, a, ...) what a TRACEWING_EACH_14(what, head, __VA_ARGS__)
#define TRACEWING_EACH_16(what, head, a, ...) what a TRACEWING_EACH_15(what, head, __VA_ARGS__)
#define TRACEWING_EACH_17(what, head, a, ...) what a TRACEWING_EACH_16(what, head, __VA_ARGS__)
#define TRACEWING_EACH_18(what, head, a, ...) what a TRACEWING_EACH_17(what, head, __VA_ARGS__)

#define TRACEWING_STR_(literal) {literal, sizeof(literal) - 1}
#define TRACEWING_DESCRIBE_(type, name) \
    {TRACEWING_STR_(#name), TRACEWING_SHAPE_OF_(type), TRACEWING_SCALAR_OF_(type), 0, TRACEWING_BASE_OF_(type), \
     TRACEWING_STR_(""), "", 0},
#define TRACEWING_PARAMETER_(type, name) , type name
#define TRACEWING_SIZE_(type, name) +sizeof(type)
#define TRACEWING_PUT_FIELD_(type, name) TRACEWING_PUT_OF_(type)(&tracewing_writer, &name, sizeof(name));

/* Levels, as LTTng-UST numbers them. */
#define TRACEWING_ERROR 3
#define TRACEWING_WARN 4
#define TRACEWING_INFO 6
#define TRACEWING_DEBUG 10
#define TRACEWING_TRACE 14

/* ---- Events ------------------------------------------------------------------------------------------------------------ */

/* Declares an event of level TRACEWING_INFO: TRACEWING_EVENT(event, "provider:event", (type, field)...). */
#define TRACEWING_EVENT(event, ...) TRACEWING_EVENT_AT(TRACEWING_INFO, event, __VA_ARGS__)

#ifndef TRACEWING_DISABLE

/* The code of a site, out of line. clang would save registers before the site if they were not preserved. */
#ifdef __clang__
#define TRACEWING_COLD_ __attribute__((unused, cold, noinline, preserve_most))
#else
#define TRACEWING_COLD_ __attribute__((unused, cold, noinline))
#endif

/* An address in the call of this function: the one after it can be that of another line. */
#define TRACEWING_CALLER_ ((uintptr_t)__builtin_return_address(0) - 1)

/* Declares an event of this level: TRACEWING_ERROR to TRACEWING_TRACE. */
#define TRACEWING_EVENT_AT(level, event, ...) \
    static const struct tracewing_field_ tracewing_fields_##event[] = { \
        TRACEWING_EACH_(TRACEWING_DESCRIBE_, __VA_ARGS__) TRACEWING_DESCRIBE_(int, none)}; \
    static const struct tracewing_description_ tracewing_description_##event = { \
        TRACEWING_STR_(TRACEWING_HEAD_(__VA_ARGS__)), \
        level, \
        0, \
        TRACEWING_STR_(""), \
        TRACEWING_STR_(""), \
        TRACEWING_STR_(__FILE__), \
        __LINE__, \
        tracewing_fields_##event, \
        TRACEWING_COUNT_(__VA_ARGS__)}; \
    static const struct tracewing_description_ *tracewing_describe_##event( \
        const struct tracewing_class_ *tracewing_class) { \
        (void)tracewing_class; \
        return &tracewing_description_##event; \
    } \
    static struct tracewing_class_ tracewing_class_##event = {{0}, tracewing_describe_##event}; \
    TRACEWING_COLD_ static void tracewing_emit_##event( \
        int tracewing_unused TRACEWING_EACH_(TRACEWING_PARAMETER_, __VA_ARGS__)) { \
        unsigned char tracewing_run[1 TRACEWING_EACH_(TRACEWING_SIZE_, __VA_ARGS__)] __attribute__((aligned(8))); \
        struct tracewing_segment_ tracewing_segments[2 * TRACEWING_COUNT_(__VA_ARGS__) + 1]; \
        struct tracewing_writer_ tracewing_writer = {tracewing_run, tracewing_segments, 0, 0, 0}; \
        (void)tracewing_unused; \
        TRACEWING_EACH_(TRACEWING_PUT_FIELD_, __VA_ARGS__) \
        tracewing_finish_(&tracewing_writer, &tracewing_class_##event, TRACEWING_CALLER_); \
    }

/* Whether some recording enables the event: for work that is done only for it. */
#ifdef __cplusplus
/* A function of its own, since clang 14 treats each `asm goto` of a function as a jump to every label of another. */
#define TRACEWING_IS_ON(event) \
    ([]() __attribute__((always_inline)) -> bool { \
        TRACEWING_SITE_(event, tracewing_on); \
        return false; \
    tracewing_on: \
        return true; \
    }())
#else
#define TRACEWING_IS_ON(event) \
    __extension__({ \
        __label__ tracewing_on, tracewing_off; \
        bool tracewing_is_on = false; \
        TRACEWING_SITE_(event, tracewing_on); \
        goto tracewing_off; \
    tracewing_on: \
        tracewing_is_on = true; \
    tracewing_off: \
        tracewing_is_on; \
    })
#endif

/* Emits an event, with one argument for each of its fields: TRACEWING_EMIT(event, field...). */
#define TRACEWING_EMIT(...) \
    do { \
        if (__builtin_expect(TRACEWING_IS_ON(TRACEWING_HEAD_(__VA_ARGS__)), 0)) \
            TRACEWING_RECORD_(__VA_ARGS__); \
    } while (0)

#define TRACEWING_SITE_(event, on) TRACEWING_SITE2_(event, on)
/* The instruction and its record: crates/trigger/src/site.rs and crates/abi/src/site.rs explain each part. */
#define TRACEWING_SITE2_(event, on) \
    __asm__ goto(TRACEWING_OBJECT_ \
                 "5: .byte 0x0f, 0x1f, 0x84, 0xe9\n" \
                 ".long %l[" #on "] - . - 4\n" \
                 ".pushsection .data.rel.ro.tracewing_site, \"aw\", @progbits\n" \
                 ".balign 8\n" \
                 "7: .quad %c[description], 8f, %c[file], %c[length]\n" \
                 ".long %c[line], 0\n" \
                 ".popsection\n" \
                 ".pushsection .text.tracewing_site, \"ax\", @progbits\n" \
                 "8: .byte 0x48, 0x8d, 0x05\n" \
                 ".long %c[owner] - . - 4\n" \
                 ".byte 0xc3\n" \
                 "9: .byte 0x48, 0x8d, 0x05\n" \
                 ".long 7b - . - 4\n" \
                 ".byte 0xc3\n" \
                 ".popsection\n" \
                 ".set .Ltracewing_sites_2_count, .Ltracewing_sites_2_count + 1\n" \
                 ".altmacro\n" \
                 "__tracewing_sites_2 %%.Ltracewing_sites_2_count\n" \
                 ".noaltmacro\n" \
                 ".balign 8\n" \
                 ".quad 5b - ., 9b, 0\n" \
                 ".popsection\n" \
                 : \
                 : [owner] "i"(&tracewing_class_##event), [description] "i"(&tracewing_description_##event), \
                   [file] "i"(__FILE__), [length] "i"(sizeof(__FILE__) - 1), [line] "i"(__LINE__) \
                 : \
                 : on)

/* The parts that each program and library has once. */
#define TRACEWING_OBJECT_ \
    ".ifndef .Ltracewing_sites_2_count\n" \
    ".set .Ltracewing_sites_2_count, 0\n" \
    ".macro __tracewing_sites_2 number\n" \
    ".Ltracewing_sites_2_\\number:\n" \
    ".pushsection tracewing_sites_2, \"awo\", @progbits, .Ltracewing_sites_2_\\number\n" \
    ".endm\n" \
    ".weak __start_tracewing_sites_2\n" \
    ".weak __stop_tracewing_sites_2\n" \
    ".hidden __start_tracewing_sites_2\n" \
    ".hidden __stop_tracewing_sites_2\n" \
    ".pushsection .data.tracewing_sites_2, \"awG\", @progbits, tracewing_sites_2, comdat\n" \
    ".balign 8\n" \
    "2: .quad 0, __start_tracewing_sites_2, __stop_tracewing_sites_2\n" \
    ".popsection\n" \
    ".pushsection .text.tracewing_sites_2, \"axG\", @progbits, tracewing_sites_2, comdat\n" \
    ".balign 4\n" \
    "3: .byte 0x48, 0x8d, 0x3d\n" \
    ".long 2b - . - 4\n" \
    "jmp tracewing_load_2@PLT\n" \
    "4: .byte 0x48, 0x8d, 0x3d\n" \
    ".long 2b - . - 4\n" \
    "jmp tracewing_unload_2@PLT\n" \
    ".popsection\n" \
    ".pushsection .init_array.101, \"awG\", @init_array, tracewing_sites_2, comdat\n" \
    ".balign 8\n" \
    ".quad 3b\n" \
    ".popsection\n" \
    ".pushsection .fini_array.101, \"awG\", @fini_array, tracewing_sites_2, comdat\n" \
    ".balign 8\n" \
    ".quad 4b\n" \
    ".popsection\n" \
    ".pushsection .note.tracewing, \"aG\", @note, tracewing_sites_2, comdat\n" \
    ".balign 4\n" \
    ".long 10, 16, 2\n" \
    ".asciz \"tracewing\"\n" \
    ".balign 4\n" \
    ".quad __start_tracewing_sites_2 - .\n" \
    ".quad __stop_tracewing_sites_2 - .\n" \
    ".popsection\n" \
    ".endif\n"

#else /* TRACEWING_DISABLE */

#define TRACEWING_EVENT_AT(level, event, ...) \
    __attribute__((unused)) static inline void tracewing_emit_##event( \
        int tracewing_unused TRACEWING_EACH_(TRACEWING_IGNORE_, __VA_ARGS__)) { \
        (void)tracewing_unused; \
    }
#define TRACEWING_IGNORE_(type, name) , type name __attribute__((unused))
#define TRACEWING_EMIT(...) \
    do { \
        if (0) \
            TRACEWING_RECORD_(__VA_ARGS__); \
    } while (0)
#define TRACEWING_IS_ON(event) false

#endif

/* Declares the two events of a span "provider:span": "provider:span_begin", with the span's id, that of its parent and the
 * fields, and "provider:span_end". */
#define TRACEWING_SPAN(begun, ...) \
    TRACEWING_EVENT(begun##_begin, TRACEWING_HEAD_(__VA_ARGS__) "_begin", (const void *, span), \
                    (const void *, parent)TRACEWING_TAIL_(__VA_ARGS__)) \
    TRACEWING_EVENT(begun##_end, TRACEWING_HEAD_(__VA_ARGS__) "_end", (const void *, span))

/* An id as a field: a pointer, since pointers are shown in hexadecimal like ids of spans. */
#define TRACEWING_SPAN_ID_(id) ((const void *)(id))

/* Begins a span on this thread, inside the thread's current one: returns the struct tracewing_span that
 * TRACEWING_SPAN_END needs, on the same thread. TRACEWING_SPAN_BEGIN(span, field...). */
#define TRACEWING_SPAN_BEGIN(...) \
    TRACEWING_SPAN_BEGIN_IN(tracewing_span_innermost(), __VA_ARGS__)

/* The same with another parent, 0 for none: TRACEWING_SPAN_BEGIN_IN(parent, span, field...). */
#define TRACEWING_SPAN_BEGIN_IN(parent, ...) \
    __extension__({ \
        struct tracewing_span tracewing_begun = {0, 0}; \
        if (TRACEWING_IS_ON(TRACEWING_CAT_(TRACEWING_HEAD_(__VA_ARGS__), _begin))) { \
            uint64_t tracewing_parent = (parent); \
            tracewing_begun.id = tracewing_span_begin_2(&tracewing_begun.before); \
            TRACEWING_RECORD_(TRACEWING_CAT_(TRACEWING_HEAD_(__VA_ARGS__), _begin), \
                              TRACEWING_SPAN_ID_(tracewing_begun.id), \
                              TRACEWING_SPAN_ID_(tracewing_parent) TRACEWING_TAIL_(__VA_ARGS__)); \
        } \
        tracewing_begun; \
    })

/* Ends a span that has begun; `begun` is an lvalue. */
#define TRACEWING_SPAN_END(event, begun) \
    do { \
        if (tracewing_span_end_2(&(begun))) \
            TRACEWING_EMIT(event##_end, TRACEWING_SPAN_ID_((begun).id)); \
    } while (0)

/* Calls the site's function, whose return address says where the site is: the assembly is no instruction, and a number of
 * its own keeps compilers from sharing the call with another site, and from making a jump of it. */
#define TRACEWING_RECORD_(...) \
    do { \
        TRACEWING_CAT_(tracewing_emit_, TRACEWING_HEAD_(__VA_ARGS__))(0 TRACEWING_TAIL_(__VA_ARGS__)); \
        __asm__ volatile("" : : "i"(__COUNTER__)); \
    } while (0)

#endif
