/* Functions that get and give values in all ways that there are, built with -pg -mfentry: prints sums of what they give, which
 * is the same if nobody touches a register on the way. */
#include <complex.h>
#include <emmintrin.h>
#include <stdarg.h>
#include <stdio.h>

#define FUNCTION __attribute__((noipa))

struct reals {
    double a, b;
};
struct mixed {
    long a;
    double b;
};
struct large {
    char bytes[40];
};

FUNCTION double many(int a, double b, long c, float d, double e, double f, double g, double h, double i, double j, long k,
                     long l, long m, long n, long o, double p)
{
    return a + b * 2 + c * 3 + d * 4 + e * 5 + f * 6 + g * 7 + h * 8 + i * 9 + j * 10 + k * 11 + l * 12 + m * 13 + n * 14 +
           o * 15 + p * 16;
}

FUNCTION double variadic(int count, ...)
{
    double sum = 0;
    va_list list;
    va_start(list, count);
    for (int at = 0; at < count; at++)
        sum += at & 1 ? va_arg(list, double) : va_arg(list, int);
    va_end(list);
    return sum;
}

FUNCTION struct reals reals(double a, double b)
{
    return (struct reals){a * 2, b * 3};
}

FUNCTION struct mixed mixed(long a, double b)
{
    return (struct mixed){a * 2, b * 3};
}

FUNCTION struct large large(int first)
{
    struct large it;
    for (int at = 0; at < 40; at++)
        it.bytes[at] = first + at;
    return it;
}

FUNCTION long double extended(long double a, long double b)
{
    return a * b + 1;
}

FUNCTION long double complex two_extended(long double complex a)
{
    return a * a;
}

FUNCTION __int128 wide(__int128 a)
{
    return a * 3;
}

FUNCTION __m128 vector(__m128 a, __m128 b)
{
    return _mm_add_ps(a, b);
}

FUNCTION long apply(long (*function)(long), long number)
{
    return function(number);
}

int main(void)
{
    double sums[10] = {0};
    for (long round = 0; round < 100; round++) {
        long outer = round;
        /* Its variables' place is in a register that is none for arguments. */
        FUNCTION long within(long number)
        {
            return number + outer;
        }
        struct reals two = reals(round, 2);
        struct mixed both = mixed(round, 2.5);
        struct large it = large(round % 50);
        long double complex square = two_extended(round + 1.0L * I);
        __m128 sum = vector(_mm_set1_ps(round), _mm_set_ps(1, 2, 3, 4));
        sums[0] += many(round, 1.5, 2, 3.5f, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        sums[1] += variadic(6, 1, 2.5, 3, 4.5, 5, 6.5);
        sums[2] += two.a + two.b;
        sums[3] += both.a + both.b;
        sums[4] += it.bytes[39] + it.bytes[0];
        sums[5] += extended(round, 1.25L);
        sums[6] += creall(square) + cimagl(square);
        sums[7] += (double)(wide((__int128)round << 70) >> 64);
        sums[8] += sum[0] + sum[3];
        sums[9] += apply(within, 5);
    }
    for (int at = 0; at < 10; at++)
        printf("%.3f\n", sums[at]);
    return 0;
}
