/* A function of which gcc makes a copy that knows an argument, and has another name. */
#include <stdio.h>

static __attribute__((noinline)) int scaled(int number, int by)
{
    int sum = 0;
    for (int i = 0; i < number; i++)
        sum = sum * by + i;
    return sum;
}

int main(int count, char **arguments)
{
    (void)arguments;
    printf("%d\n", scaled(count, 3) + scaled(count + 1, 3));
    return 0;
}
