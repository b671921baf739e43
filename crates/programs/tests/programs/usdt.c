/* Passes USDT probes as often as its argument says; prints how often it has found the one with a semaphore requested, and
 * then waits for the end of its input. The notes are written as sys/sdt.h writes them. */

#include <stdio.h>
#include <stdlib.h>

#define PROBE(provider, name, semaphore, arguments, ...)                                                   \
    __asm__ __volatile__("990: nop\n"                                                                       \
                         ".pushsection .note.stapsdt, \"\", \"note\"\n"                                     \
                         ".balign 4\n"                                                                      \
                         ".4byte 992f - 991f, 994f - 993f, 3\n"                                             \
                         "991: .asciz \"stapsdt\"\n"                                                        \
                         "992: .balign 4\n"                                                                 \
                         "993: .8byte 990b, _.stapsdt.base, " semaphore "\n"                                \
                         ".asciz \"" provider "\"\n"                                                        \
                         ".asciz \"" name "\"\n"                                                            \
                         ".asciz \"" arguments "\"\n"                                                       \
                         "994: .balign 4\n"                                                                 \
                         ".popsection\n"                                                                    \
                         ".ifndef _.stapsdt.base\n"                                                         \
                         ".pushsection .stapsdt.base, \"aG\", \"progbits\", .stapsdt.base, comdat\n"        \
                         ".weak _.stapsdt.base\n"                                                           \
                         ".hidden _.stapsdt.base\n"                                                         \
                         "_.stapsdt.base: .space 1\n"                                                       \
                         ".size _.stapsdt.base, 1\n"                                                        \
                         ".popsection\n"                                                                    \
                         ".endif\n" ::__VA_ARGS__)

__attribute__((section(".probes"))) volatile unsigned short taken_semaphore;
struct {
    long other;
    int value;
} stock = {0, 41};

__attribute__((noinline)) static void take(int order, const char *customer, unsigned char kind, long *behind) {
    if (taken_semaphore)
        PROBE("shop", "taken", "taken_semaphore", "-4@%0 8@%1 1@%b2 8@8(%3) -4@stock+8(%%rip) -4@$-5 8@(%3,%4,8)",
              "r"(order), "r"(customer), "r"(kind), "r"(behind), "r"(0L));
    PROBE("shop", "done", "0", "-4@%0", "r"(order));
}

int main(int argc, char **argv) {
    (void)argc;
    int requested = 0;
    long behind[2] = {0, 77};
    for (int i = 0; i < atoi(argv[1]); i++) {
        requested += taken_semaphore != 0;
        take(i - 1, i % 2 ? "Ann" : "Bob", i % 256, behind);
    }
    PROBE("shop", "done", "0", "-4@%0", "r"(-7));
    printf("%d\n", requested);
    fflush(stdout);
    while (getchar() != EOF)
        ;
    return 0;
}
