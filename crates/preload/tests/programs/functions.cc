// Functions that count how often they are called, and are left in all the ways there are. Prints the counts at the end: a name
// and a number a line. An argument has it do only a part.
#include <atomic>
#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <pthread.h>
#include <stdexcept>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#define PLAIN __attribute__((no_instrument_function))
#ifdef __clang__
#define WHOLE __attribute__((noinline))
#else
#define WHOLE __attribute__((noipa))
#endif

#define FUNCTIONS \
    X(outer) X(inner) X(recursive) X(arguments) X(real) X(vectors) X(waits) X(thrower) X(catcher) X(jumper) X(sets) X(handler) \
    X(works) X(in_thread) X(exits) X(calls) X(called) X(in_child) X(before_exec) X(coroutine) X(yields) X(resumes)

#define X(name) name##_,
enum { FUNCTIONS guard_, COUNT };
#undef X
#define X(name) #name,
static const char *const names[] = { FUNCTIONS "Guard::~Guard" };
#undef X
static int counts[COUNT];

#define COUNTED(name) __atomic_fetch_add(&counts[name##_], 1, __ATOMIC_RELAXED)
// A call before it is none that ends the function.
#define NOT_LAST __asm__ volatile("" ::: "memory")

struct Guard {
    WHOLE ~Guard() { COUNTED(guard); }
};

WHOLE int inner(int n) { COUNTED(inner); return n + 1; }
WHOLE int outer(int n) { COUNTED(outer); int sum = 0; while (n--) sum += inner(n); return sum; }
WHOLE int recursive(int n) { COUNTED(recursive); int deeper = n ? recursive(n - 1) : 0; NOT_LAST; return deeper + 1; }
WHOLE double arguments(int a, long b, int c, int d, int e, int f, int g, int h, double i, float j, double k, double l, double m,
                       double n, double o, double p, double q)
{
    COUNTED(arguments);
    return a + 2 * b + 3 * c + 4 * d + 5 * e + 6 * f + 7 * g + 8 * h + i + j * 2 + k * 3 + l * 4 + m * 5 + n * 6 + o * 7 + p * 8 + q * 9;
}
WHOLE long double real(int n) { COUNTED(real); return n * 1.5L; }
typedef double Vector __attribute__((vector_size(32)));
WHOLE __attribute__((target("avx"))) Vector vectors(Vector a, Vector b) { COUNTED(vectors); return a + b; }
PLAIN __attribute__((target("avx"))) static double add_vectors(void)
{
    Vector sum = { 0, 0, 0, 0 };
    for (int i = 0; i < 30000; i++)
        sum = vectors(sum, Vector{ 1, 2, 3, 4 });
    return sum[0] + sum[1] + sum[2] + sum[3];
}
WHOLE void waits() { COUNTED(waits); usleep(20000); NOT_LAST; }

WHOLE void thrower(int n) { COUNTED(thrower); Guard guard; if (!n) throw std::runtime_error("thrown"); thrower(n - 1); NOT_LAST; }
WHOLE int catcher(int n)
{
    COUNTED(catcher);
    try { thrower(n); } catch (std::runtime_error &) { return inner(1); }
    return 0;
}

static jmp_buf place;
WHOLE void jumper(int n) { COUNTED(jumper); if (!n) longjmp(place, 1); jumper(n - 1); NOT_LAST; }
WHOLE int sets() { COUNTED(sets); if (setjmp(place)) return inner(1); jumper(3); return 0; }

WHOLE void works() { COUNTED(works); }
WHOLE void handler(int) { COUNTED(handler); works(); NOT_LAST; }

WHOLE void *in_thread(void *) { COUNTED(in_thread); for (int i = 0; i < 500; i++) catcher(2); return nullptr; }
WHOLE void *exits(void *n) { COUNTED(exits); Guard guard; if (!n) pthread_exit(nullptr); exits((char *)n - 1); NOT_LAST; return n; }

WHOLE int called(int n) { COUNTED(called); return n; }
WHOLE int calls(int n) { COUNTED(calls); return called(n + 1); }

WHOLE void in_child() { COUNTED(in_child); }
WHOLE void before_exec() { COUNTED(before_exec); execl("/bin/true", "true", (char *)nullptr); _exit(1); }

static ucontext_t here, there;
WHOLE void yields() { COUNTED(yields); inner(1); swapcontext(&there, &here); inner(2); NOT_LAST; }
WHOLE void coroutine() { COUNTED(coroutine); for (int i = 0; i < 5; i++) yields(); NOT_LAST; }
WHOLE void resumes() { COUNTED(resumes); swapcontext(&here, &there); NOT_LAST; }

PLAIN static double plainly()
{
    double sum = 0;
    for (int i = 0; i < 10; i++)
        sum += outer(3) + calls(i);
    sum += recursive(20) + arguments(1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17) + real(3);
    return sum;
}

PLAIN static double otherwise()
{
    double sum = 0;
    for (int i = 0; i < 10; i++)
        sum += catcher(3) + sets();
    struct sigaction action;
    stack_t stack = {};
    memset(&action, 0, sizeof action);
    action.sa_handler = handler;
    action.sa_flags = SA_ONSTACK;
    stack.ss_sp = malloc(1 << 16);
    stack.ss_size = 1 << 16;
    sigaltstack(&stack, nullptr);
    sigaction(SIGUSR1, &action, nullptr);
    for (int i = 0; i < 10; i++)
        raise(SIGUSR1);
    pthread_t threads[4];
    for (pthread_t &thread : threads)
        pthread_create(&thread, nullptr, in_thread, nullptr);
    for (pthread_t &thread : threads)
        pthread_join(thread, nullptr);
    for (int i = 0; i < 10; i++) {
        pthread_create(&threads[0], nullptr, exits, (void *)3);
        pthread_join(threads[0], nullptr);
    }
    if (fork() == 0) {
        for (int i = 0; i < 7; i++)
            in_child();
        _exit(0);
    }
    wait(nullptr);
    counts[in_child_] += 7;
    for (int i = 0; i < 3; i++) {
        pid_t child = vfork();
        if (child == 0)
            before_exec();
        waitpid(child, nullptr, 0);
    }
    return sum;
}

PLAIN static void by_coroutine()
{
    getcontext(&there);
    there.uc_stack.ss_sp = malloc(1 << 16);
    there.uc_stack.ss_size = 1 << 16;
    there.uc_link = &here;
    makecontext(&there, coroutine, 0);
    for (int i = 0; i < 6; i++)
        resumes();
}

PLAIN int main(int, char **argv)
{
    const char *part = argv[1] ? argv[1] : "";
    double sum = plainly();
    if (!strcmp(part, "all")) {
        sum += otherwise();
        by_coroutine();
        waits();
        if (__builtin_cpu_supports("avx"))
            sum += add_vectors();
    }
    if (!strcmp(part, "long"))
        for (int i = 0; i < 50000; i++)
            sum += outer(3);
    if (!strcmp(part, "deep"))
        sum += recursive(100000);
    printf("%g\n", sum);
    for (int i = 0; i < COUNT; i++)
        if (counts[i])
            printf("%s %d\n", names[i], counts[i]);
    return 0;
}
