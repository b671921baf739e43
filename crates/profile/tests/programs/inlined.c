/* Spends its time in functions that the compiler puts into one another, and then in one without a symbol. */
#include <time.h>

static inline __attribute__((always_inline)) void innermost(volatile long *count)
{
	for (int i = 0; i < 10000; i++)
		++*count;
}

static inline __attribute__((always_inline)) void middle(volatile long *count)
{
	innermost(count);
}

__attribute__((noinline)) void exported(volatile long *count)
{
	middle(count);
}

static __attribute__((noinline)) void hidden(volatile long *count)
{
	for (int i = 0; i < 10000; i++)
		++*count;
}

int main(void)
{
	volatile long count = 0;
	while (clock() < CLOCKS_PER_SEC / 2)
		exported(&count);
	while (clock() < CLOCKS_PER_SEC)
		hidden(&count);
	return 0;
}
