/* Serves orders, as many as its argument says, and prints what functions have returned. */

#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum colour { RED, GREEN, BLUE };

struct basket {
    unsigned short items;
    const char *coupon;
};

struct order {
    int number;
    struct basket basket;
    struct order *previous;
    char note[16];
    unsigned urgent : 1;
};

__attribute__((noinline)) long serve(int number, const char *customer, struct order *order, unsigned char small,
                                     enum colour colour, double weight, long sixth, long stacked) {
    long sum = number + (long)strlen(customer) + order->basket.items + small + colour + (long)weight + sixth + stacked;
    sum += order->previous ? order->previous->number : 0;
    sum += order->basket.coupon[0] + order->note[0] + order->urgent;
    return sum;
}

__attribute__((noinline)) const char *name_of(int number) {
    return number % 2 ? "Ann" : "Bob";
}

int main(int argc, char **argv) {
    (void)argc;
    long sum = 0, parent = 0;
    struct order previous = {-1, {3, "one"}, NULL, "none", 0};
    for (int i = 0; i < atoi(argv[1]); i++) {
        struct order order = {i, {i % 5, "ten percent"}, &previous, "fragile", 1};
        sum += serve(i - 1, name_of(i), &order, i % 256, i % 3, 1.5, -i, i * 2L);
        parent += getppid() > 0;
        previous = order;
        previous.previous = NULL;
    }
    printf("%ld %ld\n", sum, parent);
    return 0;
}
