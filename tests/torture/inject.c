/* Runs a command and makes one of its system calls go wrong.

     inject N KIND REPORT COMMAND...

   N counts the calls that KIND concerns, from 1, over all threads and in the order in which they come; 0 injects nothing
   and only counts. KIND is what the call meets:

     kill     the process is killed in front of the call
     EIO      the call fails: a disk that cannot be read or written
     ENOSPC   the call fails: a disk that is full (writes, new names, space)
     EINTR    a read or a write is interrupted, which must not be seen
     short    a write takes only half of its bytes
     ENOMEM   no memory is given

   REPORT gets one line: how many calls there were, the name of the one that was hit and its first argument (the file of
   a write), or `-`. The exit status is that of the command; 128 + signal where a signal ended it.

   Calls are seen by ptrace, with a filter of seccomp that stops the process at these calls only. The calls are those of
   the process itself, whether they come through the C library or not. Linux on x86-64. */

#define _GNU_SOURCE
#include <errno.h>
#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

enum { READS = 1, WRITES = 2, NAMES = 4, MEMORY = 8, LOOKS = 16 };

static const struct { long number; const char *name; int kinds; } calls[] = {
    {SYS_read, "read", READS},          {SYS_pread64, "pread64", READS},     {SYS_getdents64, "getdents64", LOOKS},
    {SYS_newfstatat, "newfstatat", LOOKS}, {SYS_statx, "statx", LOOKS},      {SYS_fstat, "fstat", LOOKS},
    {SYS_write, "write", WRITES},       {SYS_pwrite64, "pwrite64", WRITES},  {SYS_writev, "writev", WRITES},
    {SYS_copy_file_range, "copy_file_range", WRITES},                        {SYS_sendfile, "sendfile", WRITES},
    {SYS_fsync, "fsync", NAMES},        {SYS_fdatasync, "fdatasync", NAMES}, {SYS_ftruncate, "ftruncate", NAMES},
    {SYS_fallocate, "fallocate", NAMES}, {SYS_open, "open", NAMES},          {SYS_openat, "openat", NAMES},
    {SYS_rename, "rename", NAMES},      {SYS_renameat, "renameat", NAMES},   {SYS_renameat2, "renameat2", NAMES},
    {SYS_link, "link", NAMES},          {SYS_linkat, "linkat", NAMES},       {SYS_unlink, "unlink", NAMES},
    {SYS_unlinkat, "unlinkat", NAMES},  {SYS_mkdir, "mkdir", NAMES},         {SYS_mkdirat, "mkdirat", NAMES},
    {SYS_rmdir, "rmdir", NAMES},        {SYS_chmod, "chmod", NAMES},         {SYS_fchmod, "fchmod", NAMES},
    {SYS_fchmodat, "fchmodat", NAMES},  {SYS_flock, "flock", NAMES},         {SYS_close, "close", 0},
    {SYS_mmap, "mmap", MEMORY},         {SYS_mremap, "mremap", MEMORY},
    {SYS_clone, "clone", MEMORY},       {SYS_clone3, "clone3", MEMORY},
};
#define CALLS (sizeof calls / sizeof *calls)

static void die(const char *what) {
    perror(what);
    exit(125);
}

static int concerned(const char *kind) {
    if (!strcmp(kind, "kill")) return WRITES | NAMES;
    if (!strcmp(kind, "EIO")) return READS | LOOKS | WRITES | NAMES;
    if (!strcmp(kind, "ENOSPC")) return WRITES | NAMES;
    if (!strcmp(kind, "EINTR")) return READS | WRITES;
    if (!strcmp(kind, "short")) return WRITES;
    if (!strcmp(kind, "ENOMEM")) return MEMORY;
    fprintf(stderr, "inject: no kind `%s`\n", kind);
    exit(125);
}

static void child(int kinds, char **command) {
    struct sock_filter filter[2 * CALLS + 2];
    size_t n = 0;
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr));
    for (size_t i = 0; i < CALLS; i++)
        if (calls[i].kinds & kinds) {
            filter[n++] = (struct sock_filter)BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, calls[i].number, 0, 1);
            filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE);
        }
    filter[n++] = (struct sock_filter)BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW);
    struct sock_fprog program = {.len = n, .filter = filter};
    if (ptrace(PTRACE_TRACEME, 0, 0, 0)) die("ptrace");
    raise(SIGSTOP);
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)) die("prctl");
    if (prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program)) die("seccomp");
    execvp(command[0], command);
    die(command[0]);
}

int main(int argc, char **argv) {
    if (argc < 5) {
        fprintf(stderr, "usage: inject N KIND REPORT COMMAND...\n");
        return 125;
    }
    const long wanted = atol(argv[1]);
    const char *kind = argv[2];
    const int kinds = concerned(kind);
    pid_t first = fork();
    if (first < 0) die("fork");
    if (first == 0) child(kinds, argv + 4);

    int status, result = 125;
    if (waitpid(first, &status, 0) < 0 || !WIFSTOPPED(status)) die("waitpid");
    long options = PTRACE_O_TRACESECCOMP | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
                   PTRACE_O_TRACEEXEC | PTRACE_O_EXITKILL;
    if (ptrace(PTRACE_SETOPTIONS, first, 0, options)) die("ptrace options");
    if (ptrace(PTRACE_CONT, first, 0, 0)) die("ptrace cont");

    long seen = 0, argument = -1;
    const char *hit = "-";
    int started = 0;
    for (;;) {
        pid_t thread = waitpid(-1, &status, __WALL);
        if (thread < 0) {
            if (errno == EINTR) continue;
            break;
        }
        if (WIFEXITED(status) || WIFSIGNALED(status)) {
            if (thread == first) result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
            continue;
        }
        if (!WIFSTOPPED(status)) continue;
        int stop = WSTOPSIG(status), event = status >> 16, signal = 0;
        if (event == PTRACE_EVENT_EXEC) {
            started = 1;
        } else if (event == PTRACE_EVENT_SECCOMP && started) {
            struct user_regs_struct r;
            if (ptrace(PTRACE_GETREGS, thread, 0, &r)) continue;
            if (++seen == wanted) {
                hit = "?";
                for (size_t i = 0; i < CALLS; i++)
                    if (calls[i].number == (long)r.orig_rax) hit = calls[i].name;
                argument = (int)r.rdi;
                if (!strcmp(kind, "kill")) {
                    kill(first, SIGKILL);
                    continue;
                } else if (!strcmp(kind, "short")) {
                    if (r.orig_rax == SYS_write || r.orig_rax == SYS_pwrite64) r.rdx = r.rdx > 1 ? r.rdx / 2 : r.rdx;
                } else {
                    long error = !strcmp(kind, "EIO") ? EIO : !strcmp(kind, "ENOSPC") ? ENOSPC
                               : !strcmp(kind, "EINTR") ? EINTR : ENOMEM;
                    r.orig_rax = -1;
                    r.rax = -error;
                }
                ptrace(PTRACE_SETREGS, thread, 0, &r);
            }
        } else if (!event && stop != SIGSTOP && stop != SIGTRAP) {
            signal = stop;
        }
        ptrace(PTRACE_CONT, thread, 0, signal);
    }
    FILE *report = fopen(argv[3], "w");
    if (!report) die(argv[3]);
    fprintf(report, "%ld %s %ld\n", seen, hit, argument);
    fclose(report);
    return result;
}
