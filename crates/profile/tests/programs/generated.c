/* Computes in code that it writes at run time, for about SECONDS: three quarters in long_work, a quarter in short_work, as its perf
   map names them. An OWNER gets the file, as if another user had written it. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* mov rcx, rdi; dec rcx; jnz back; ret */
static const unsigned char countdown[] = {0x48, 0x89, 0xf9, 0x48, 0xff, 0xc9, 0x75, 0xfb, 0xc3};

typedef void (*work)(unsigned long);

static double used(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec + time.tv_nsec / 1e9;
}

int main(int count, char **arguments) {
    double seconds = count > 1 ? atof(arguments[1]) : 1;
    char *code = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (code == MAP_FAILED) return 1;
    memcpy(code, countdown, sizeof countdown);
    memcpy(code + 256, countdown, sizeof countdown);
    if (mprotect(code, 4096, PROT_READ | PROT_EXEC)) return 1;
    while (used() < seconds) {
        ((work)code)(3000000);
        ((work)(code + 256))(1000000);
    }
    char path[64];
    snprintf(path, sizeof path, "/tmp/perf-%d.map", getpid());
    FILE *map = fopen(path, "w");
    if (!map) return 1;
    fprintf(map, "%lx %zx long_work(int)\n%lx %zx short_work\n", (long)code, sizeof countdown, (long)code + 256,
            sizeof countdown);
    fclose(map);
    if (count > 2 && chown(path, atoi(arguments[2]), -1)) return 1;
    puts(path);
    return 0;
}
