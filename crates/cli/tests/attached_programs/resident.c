/* As crates/tracewing/tests/programs/resident.rs, in C: the orders `emit`, `fork`, `load`, `plugin` and `reported`. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tracewing.h>

TRACEWING_EVENT(step, "resident:step", (uint32_t, number))
TRACEWING_EVENT(answer, "resident:answer", (uint32_t, number))

static unsigned reported;

static void report(void) {
    __atomic_fetch_add(&reported, 1, __ATOMIC_RELAXED);
    TRACEWING_EMIT(answer, 42);
}

static void steps(uint32_t count) {
    for (uint32_t number = 1; number <= count; number++)
        TRACEWING_EMIT(step, number);
}

/* In a forked child: waits until each thread of the agent sleeps in `read`, as it does once it has joined; for half a
 * second if there is none. Ends the child, and says so, if that takes more than a minute. */
static void wait_for_agents(void) {
    for (int look = 0; look < 60000; look++) {
        DIR *tasks = opendir("/proc/self/task");
        struct dirent *task;
        int agents = 0, asleep = 0;
        while (tasks && (task = readdir(tasks))) {
            char path[300], call[16] = "";
            FILE *file;
            if (task->d_name[0] == '.' || atoi(task->d_name) == getpid())
                continue;
            agents++;
            snprintf(path, sizeof path, "/proc/self/task/%s/syscall", task->d_name);
            if ((file = fopen(path, "r"))) {
                char *end = NULL;
                if (fgets(call, sizeof call, file) && strtol(call, &end, 10) == SYS_read)
                    asleep += end != call;
                fclose(file);
            }
        }
        if (tasks)
            closedir(tasks);
        if (agents == 0)
            usleep(500000);
        if (agents == asleep)
            return;
        usleep(1000);
    }
    fprintf(stderr, "resident: after a minute, process %d has not joined\n", (int)getpid());
    _exit(101);
}

/* Forks a child that emits once it has joined, as does its own child. */
static int forked(uint32_t count, int generations) {
    pid_t child = fork();
    if (child == 0) {
        wait_for_agents();
        steps(count);
        _exit(generations > 1 ? forked(count, generations - 1) : 0);
    }
    int status = -1;
    waitpid(child, &status, 0);
    return status;
}

int main(void) {
    char line[4096], path[4096];
    unsigned count;
    void (*plugin)(uint32_t, uint32_t) = NULL;

    setvbuf(stdout, NULL, _IOLBF, 0);
    tracewing_on_attach(report);
    puts("ready");
    while (fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "emit %u", &count) == 1) {
            steps(count);
            puts("emitted");
        } else if (sscanf(line, "fork %u", &count) == 1) {
            printf("%d\n", forked(count, 2));
        } else if (sscanf(line, "load %4095s", path) == 1) {
            void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
            void (*begin)(void) = NULL;
            if (library) {
                *(void **)&begin = dlsym(library, "plugin_begin");
                *(void **)&plugin = dlsym(library, "plugin_emit");
                begin();
            }
            puts(library ? "loaded" : dlerror());
        } else if (sscanf(line, "plugin %u", &count) == 1) {
            plugin(1, count);
            puts("emitted");
        } else if (strcmp(line, "reported\n") == 0) {
            printf("%u\n", __atomic_load_n(&reported, __ATOMIC_RELAXED));
        } else {
            puts("no order");
        }
    }
    return 0;
}
