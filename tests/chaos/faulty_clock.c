/* A wall clock that a test can set, preloaded into the broker. Time that passes is not touched.
 *
 * FAULTY_CLOCK is a file with one number of eight bytes in the machine's own order: the nanoseconds by which the wall
 * clock differs from the true one. It is mapped at the first look, so that it can change at any moment. */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

enum { SECOND = 1000000000 };

static int64_t difference(void) {
    static volatile const int64_t *mapped;
    if (mapped == NULL) {
        const char *path = getenv("FAULTY_CLOCK");
        int file = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
        void *found = file >= 0 ? mmap(NULL, sizeof(int64_t), PROT_READ, MAP_SHARED, file, 0) : MAP_FAILED;
        if (file >= 0)
            close(file);
        if (found == MAP_FAILED)
            abort(); /* a test of clocks without a clock proves nothing */
        mapped = found;
    }
    return *mapped;
}

int clock_gettime(clockid_t clock, struct timespec *into) {
    static int (*real)(clockid_t, struct timespec *);
    if (real == NULL)
        real = (int (*)(clockid_t, struct timespec *))dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(clock, into);
    if (result == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE)) {
        int64_t time = (int64_t)into->tv_sec * SECOND + into->tv_nsec + difference();
        into->tv_sec = (time_t)(time / SECOND);
        into->tv_nsec = (long)(time % SECOND);
    }
    return result;
}

int gettimeofday(struct timeval *restrict into, void *restrict zone) {
    (void)zone;
    struct timespec now;
    int result = clock_gettime(CLOCK_REALTIME, &now);
    into->tv_sec = now.tv_sec;
    into->tv_usec = now.tv_nsec / 1000;
    return result;
}

time_t time(time_t *into) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (into)
        *into = now.tv_sec;
    return now.tv_sec;
}
