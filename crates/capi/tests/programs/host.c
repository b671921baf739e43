/* Loads the plug-in, calls it, and unloads it, three times. */
#include <dlfcn.h>
#include <stdio.h>

#include <tracewing.h>

TRACEWING_EVENT(began, "host:began")

int main(int argc, char **argv) {
    TRACEWING_EMIT(began);
    for (int times = 1; times <= 3; times++) {
        void *plugin = dlopen(argc > 1 ? argv[1] : "plugin.so", RTLD_NOW);
        void (*hello)(int);
        if (!plugin) {
            puts(dlerror());
            return 1;
        }
        *(void **)&hello = dlsym(plugin, "hello");
        hello(times);
        dlclose(plugin);
    }
    return 0;
}
