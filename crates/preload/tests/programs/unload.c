/* Loads libraries of part.c one after the other, each where the one before was, and prints where. */
#include <dlfcn.h>
#include <stdio.h>

int main(int count, char **arguments)
{
    for (int i = 1; i < count; i++) {
        void *part = dlopen(arguments[i], RTLD_NOW);
        if (!part)
            return fputs(dlerror(), stderr), 1;
        void (*works)(void) = (void (*)(void))dlsym(part, "works");
        printf("%p\n", (void *)works);
        works();
        dlclose(part);
    }
    return 0;
}
