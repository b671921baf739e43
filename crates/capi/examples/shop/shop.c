/* A shop in C: two threads sell what it has, with events, spans and user threads; see README.md beside this file. */
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

#include <tracewing.h>

TRACEWING_EVENT(sold, "cshop:sold", (uint64_t, order), (int, quantity), (double, price), (const char *, customer))
TRACEWING_EVENT_AT(TRACEWING_DEBUG, opened, "cshop:opened")
TRACEWING_EVENT(receipt, "cshop:receipt", (struct tracewing_text, line), (struct tracewing_bytes, signature), (bool, paid),
                (void *, at))
TRACEWING_SPAN(order, "cshop:order", (uint64_t, number))

static uint64_t orders;

static void sell(uint64_t number) {
    static const char *const customers[] = {"Ada", "Grace", "Leslie"};
    static const uint8_t signature[] = {1, 2, 3};
    struct tracewing_span span = TRACEWING_SPAN_BEGIN(order, number);
    TRACEWING_EMIT(sold, number, (int)(number % 5) - 2, 0.25 * (double)number, customers[number % 3]);
    TRACEWING_EMIT(receipt, (struct tracewing_text){"thanks for all", 6}, (struct tracewing_bytes){signature, number % 4}, number % 2 == 0,
                   &orders);
    TRACEWING_SPAN_END(order, span);
}

static void *salesman(void *name) {
    uint64_t fiber = tracewing_user_thread_create(name, "shop");
    tracewing_user_thread_switch(fiber, TRACEWING_NONE);
    for (uint64_t number = 0; number < orders; number++)
        sell(number);
    tracewing_user_thread_exit(fiber, TRACEWING_COMPLETED);
    tracewing_user_thread_switch(0, TRACEWING_ENDED);
    return NULL;
}

int main(int argc, char **argv) {
    pthread_t salesmen[2];
    char error[256] = "";
    struct tracewing_session *session = NULL;
    orders = argc > 1 ? strtoull(argv[1], NULL, 10) : 1000;
    if (argc > 2) {
        struct tracewing_session_options options = {.output = argv[2]};
        session = tracewing_session_start(&options, error, sizeof error);
        if (!session) {
            fprintf(stderr, "shop: %s\n", error);
            return 1;
        }
    }
    TRACEWING_EMIT(opened);
    pthread_create(&salesmen[0], NULL, salesman, "Ann");
    pthread_create(&salesmen[1], NULL, salesman, "Ben");
    pthread_join(salesmen[0], NULL);
    pthread_join(salesmen[1], NULL);
    if (session) {
        struct tracewing_session_summary summary;
        if (!tracewing_session_stop(session, &summary, error, sizeof error)) {
            fprintf(stderr, "shop: %s\n", error);
            return 1;
        }
        printf("%" PRIu64 " events, %" PRIu64 " lost\n", summary.events, summary.lost);
    }
    return 0;
}
