/* Stands before the C library of one process: disks that take their time, and a wall clock that is off.
   What is to happen stands in the file that SEATWISE_TEST_MACHINE names: two numbers of 64 bits. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>

enum { SYNC_MS, JUMP_S };
static volatile int64_t *told;

__attribute__((constructor)) static void begin(void) {
    const char *path = getenv("SEATWISE_TEST_MACHINE");
    int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (file >= 0) {
        void *page = mmap(NULL, 2 * sizeof *told, PROT_READ, MAP_SHARED, file, 0);
        if (page != MAP_FAILED) told = page;
    }
}

static void take_time(void) {
    struct timespec left = {told ? told[SYNC_MS] / 1000 : 0, told ? told[SYNC_MS] % 1000 * 1000000 : 0};
    while (nanosleep(&left, &left) != 0) continue;
}

int fsync(int file) {
    take_time();
    return ((int (*)(int))dlsym(RTLD_NEXT, "fsync"))(file);
}

int fdatasync(int file) {
    take_time();
    return ((int (*)(int))dlsym(RTLD_NEXT, "fdatasync"))(file);
}

int clock_gettime(clockid_t which, struct timespec *now) {
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int failed = real(which, now);
    if (!failed && told && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) now->tv_sec += told[JUMP_S];
    return failed;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    static int (*real)(struct timeval *, void *);
    if (!real) real = (int (*)(struct timeval *, void *))dlsym(RTLD_NEXT, "gettimeofday");
    int failed = real(now, zone);
    if (!failed && told) now->tv_sec += told[JUMP_S];
    return failed;
}

time_t time(time_t *copy) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (copy) *copy = now.tv_sec;
    return now.tv_sec;
}
