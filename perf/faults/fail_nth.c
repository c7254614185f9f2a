/* Preloaded into a process: the n-th call of one kind fails, once, or from then on.
 *
 * fail_nth_arm(kind, n, error, forever) starts to count; fail_nth_count() says how many calls there were. Only files
 * whose path contains "fail-nth" count, so that nothing else of the process is touched, and only sockets of IPv4.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

enum { NONE, WRITE, SYNC, SEND, RECEIVE };
static int kind = NONE, count, at, error_number, forever;

void fail_nth_arm(int k, int n, int error, int from_then_on) {
    kind = k; at = n; error_number = error; forever = from_then_on; count = 0;
}
int fail_nth_count(void) { return count; }

static int is_ours(int fd) {
    char link[64], path[4096];
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t size = readlink(link, path, sizeof path - 1);
    if (size < 0) return 0;
    path[size] = 0;
    return strstr(path, "fail-nth") != NULL;
}
static int is_ipv4(int fd) {
    int domain = 0;
    socklen_t size = sizeof domain;
    return getsockopt(fd, SOL_SOCKET, SO_DOMAIN, &domain, &size) == 0 && domain == AF_INET;
}
static int fails(int k, int fd) {
    if (kind != k || !(k <= SYNC ? is_ours(fd) : is_ipv4(fd))) return 0;
    count++;
    if (at && (count == at || (forever && count > at))) { errno = error_number; return 1; }
    return 0;
}

#define REAL(type, name, ...) static type (*real)(__VA_ARGS__); if (!real) real = dlsym(RTLD_NEXT, #name)

ssize_t write(int fd, const void *data, size_t size) {
    REAL(ssize_t, write, int, const void *, size_t);
    return fails(WRITE, fd) ? -1 : real(fd, data, size);
}
ssize_t pwrite(int fd, const void *data, size_t size, off_t offset) {
    REAL(ssize_t, pwrite, int, const void *, size_t, off_t);
    return fails(WRITE, fd) ? -1 : real(fd, data, size, offset);
}
ssize_t pwrite64(int fd, const void *data, size_t size, off64_t offset) {
    REAL(ssize_t, pwrite64, int, const void *, size_t, off64_t);
    return fails(WRITE, fd) ? -1 : real(fd, data, size, offset);
}
int fsync(int fd) {
    REAL(int, fsync, int);
    return fails(SYNC, fd) ? -1 : real(fd);
}
int fdatasync(int fd) {
    REAL(int, fdatasync, int);
    return fails(SYNC, fd) ? -1 : real(fd);
}
ssize_t send(int fd, const void *data, size_t size, int flags) {
    REAL(ssize_t, send, int, const void *, size_t, int);
    return fails(SEND, fd) ? -1 : real(fd, data, size, flags);
}
ssize_t sendmsg(int fd, const struct msghdr *message, int flags) {
    REAL(ssize_t, sendmsg, int, const struct msghdr *, int);
    return fails(SEND, fd) ? -1 : real(fd, message, flags);
}
ssize_t recv(int fd, void *data, size_t size, int flags) {
    REAL(ssize_t, recv, int, void *, size_t, int);
    return fails(RECEIVE, fd) ? -1 : real(fd, data, size, flags);
}
