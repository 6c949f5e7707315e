// SPDX-License-Identifier: GPL-2.0-only
/* What subject.bpf.h declares. */
#include "subject.bpf.h"
#include "futex.bpf.h"

#define IORING_ENTER_REGISTERED_RING (1U << 4)

struct futex_waitv {
        __u64 value;
        __u64 address;
        __u32 flags;
        __u32 reserved;
};

static __always_inline void subject_set_futex(__u64 task, struct subject *s, bool private) {
        s->resource.space = address_space((struct task_struct *) task);
        s->resource.address = s->user_address;
        s->resource.shared = PRISM_FUTEX_PRIVATE;
        s->look_at_mapping = !private;
}

int subject_set_file(struct call *c, struct thread_state *st, struct subject *s, __u32 descriptor) {
        struct file_identity id = {};
        __u64 file;

        if (!c || !st || !s)
                return 0;
        file = call_file(c, descriptor);
        if (!file)
                return 0;
        s->resource.kind = file_identify(file, st->process_start_ns, &id);
        s->resource.space = id.space;
        s->resource.address = id.address;
        s->ports = id.ports;
        s->set = id.set;
        s->user_address = descriptor;
        s->file = file;
        return 1;
}

/* Two descriptors: the one that can keep a call waiting in this state. A pipe or socket sleeps interruptibly, what is
 * read from a disk does not. */
static __always_inline void subject_set_either(struct call *c, struct thread_state *st, struct subject *s, __u32 from,
                __u32 to, bool uninterruptible) {
        subject_set_file(c, st, s, from);
        if (uninterruptible == waits_interruptibly(s->resource.kind))
                subject_set_file(c, st, s, to);
}

#define HASH_START 0xcbf29ce484222325ULL
static __always_inline __u64 hash_step(__u64 hash, __u64 value) {
        hash = (hash ^ value) * 0x9E3779B97F4A7C15ULL;
        return hash ^ (hash >> 29);
}

#define PATH_CHUNKS 4

/* A file by the path that a call was given: what it led to cannot be seen while the call goes on. All of the path, up to 252
 * bytes, goes into its number; of a longer one than there is room for, its end is kept as the name. */
static __noinline int subject_set_path(__u64 task, struct thread_state *st, struct subject *s, __u64 pointer) {
        struct task_struct *t = (struct task_struct *) task;
        __u64 hash = HASH_START, *words = (__u64 *) st->path;
        bool absolute = false;
        __u32 length = 0;
        int i, k, n;

        for (i = 0; i < PATH_CHUNKS; i++) {
                __builtin_memset(st->path, 0, sizeof(st->path));
                n = bpf_probe_read_user_str(st->path, sizeof(st->path), (void *) (pointer + length));
                if (n <= 0)
                        return PRISM_KIND_OTHER;
                if (i == 0)
                        absolute = st->path[0] == '/';
                for (k = 0; k < PRISM_NAME_LENGTH / 8; k++)
                        hash = hash_step(hash, words[k]);
                length += n - 1;
                if (n < PRISM_NAME_LENGTH)
                        break;
        }
        if (length >= PRISM_NAME_LENGTH) {
                bpf_probe_read_user_str(st->path + 3, sizeof(st->path) - 3,
                                (void *) (pointer + length - (PRISM_NAME_LENGTH - 4)));
                st->path[0] = st->path[1] = st->path[2] = '.';
        }
        s->resource.space = hash;
        s->resource.address = PRISM_BY_PATH |
                        (absolute ? (__u64) KERNEL_READ(t, nsproxy, mnt_ns, ns.inum) : st->process_start_ns);
        return PRISM_KIND_FILE;
}

static __always_inline __u32 subject_finish_poll(struct thread_state *st, struct subject *s, __u32 n) {
        __u64 hash = hash_step(HASH_START, n);
        int i;

        for (i = 0; i < PRISM_POLL_FILES; i++)
                if (i < n)
                        hash = hash_step(hash, (__u32) st->poll[i].descriptor | (__u64) st->poll[i].events << 32);
        st->poll_count = n;
        s->resource.space = hash;
        s->resource.address = st->process_start_ns;
        return PRISM_KIND_POLL;
}

/* Both return the kind: a poll of nothing is a sleep. */
static __noinline __u32 subject_poll(struct thread_state *st, struct subject *s, __u64 pointer, __u32 n) {
        __u32 bytes = n * sizeof(st->poll[0]);

        if (n == 0)
                return PRISM_KIND_TIMER;
        if (n > PRISM_POLL_FILES)
                bytes = sizeof(st->poll);
        __builtin_memset(st->poll, 0, sizeof(st->poll));
        bytes &= 127;
        if (bytes > sizeof(st->poll))
                bytes = sizeof(st->poll);
        if (bpf_probe_read_user(st->poll, bytes, (void *) pointer) != 0) {
                st->poll_count = 0;
                return PRISM_KIND_POLL; /* which files cannot be seen */
        }
        return subject_finish_poll(st, s, n);
}

static __always_inline __u32 count_bits(__u64 x) {
        x -= (x >> 1) & 0x5555555555555555ULL;
        x = (x & 0x3333333333333333ULL) + ((x >> 2) & 0x3333333333333333ULL);
        x = (x + (x >> 4)) & 0x0f0f0f0f0f0f0f0fULL;
        return (x * 0x0101010101010101ULL) >> 56;
}

/* The lowest descriptors of the sets, below 64. */
static __always_inline __u32 subject_finish_select(
                struct thread_state *st, struct subject *s, __u32 highest, __u64 in, __u64 out, __u64 except) {
        __u64 all = in | out | except;
        __u32 n;
        int i;

        if (highest < 64)
                all &= (1ULL << highest) - 1;
        if (highest == 0 || (all == 0 && highest <= 64))
                return PRISM_KIND_TIMER;
        __builtin_memset(st->poll, 0, sizeof(st->poll));
        n = count_bits(all);
        for (i = 0; i < PRISM_POLL_FILES; i++) {
                __u64 bit = all & -all;

                if (i < n) {
                        st->poll[i].descriptor = count_bits(bit - 1);
                        st->poll[i].events = (in & bit ? POLLIN : 0) | (out & bit ? POLLOUT : 0);
                }
                all &= all - 1;
        }
        if (highest > 64)
                n = n > PRISM_POLL_FILES ? n : PRISM_POLL_FILES + 1; /* some may be out of sight */
        return subject_finish_poll(st, s, n);
}

static __noinline __u32 subject_select(struct thread_state *st, struct subject *s, struct call *c) {
        __u64 sets[3] = {};
        int i;

        for (i = 0; i < 3; i++)
                if (c->arguments[1 + i] &&
                                bpf_probe_read_user(&sets[i], sizeof(sets[i]), (void *) c->arguments[1 + i]) != 0)
                        return PRISM_KIND_POLL; /* which files cannot be seen */
        return subject_finish_select(st, s, c->arguments[0], sets[0], sets[1], sets[2]);
}

int subject_of_poll(struct thread_state *st, struct subject *s, __u32 n) {
        return st && s ? subject_finish_poll(st, s, n) : PRISM_KIND_POLL;
}

int subject_of_select(struct thread_state *st, struct subject *s, __u32 highest, struct select_sets *sets) {
        return st && s && sets ? subject_finish_select(st, s, highest, sets->set[0], sets->set[1], sets->set[2])
                               : PRISM_KIND_POLL;
}

int subject_of_call(__u64 task, struct thread_state *st, struct subject *s, struct call *c, __u32 how) {
        bool current, uninterruptible;
        struct prism_resource *r;
        __u32 class;

        if (!st || !s || !c)
                return SYSCALL_OTHER;
        current = how & SUBJECT_CURRENT;
        uninterruptible = how & SUBJECT_UNINTERRUPTIBLE;
        r = &s->resource;
        class = call_class(c);

        switch (class) {
        case SYSCALL_FUTEX:
                r->kind = PRISM_KIND_FUTEX;
                r->op = futex_op(c->arguments[1]);
                s->user_address = c->arguments[0];
                subject_set_futex(task, s, c->arguments[1] & FUTEX_PRIVATE_FLAG);
                break;
        case SYSCALL_FUTEX2_WAIT:
        case SYSCALL_FUTEX2_WAKE:
                r->kind = PRISM_KIND_FUTEX;
                r->op = class == SYSCALL_FUTEX2_WAIT ? PRISM_OP_FUTEX2_WAIT : PRISM_OP_FUTEX_WAKE;
                s->user_address = c->arguments[0];
                subject_set_futex(task, s, c->arguments[3] & FUTEX2_PRIVATE);
                break;
        case SYSCALL_FUTEX_WAITV: {
                struct futex_waitv first = {};

                /* Until a waker shows which one it was. */
                if (!current || bpf_probe_read_user(&first, sizeof(first), (void *) c->arguments[0]) != 0)
                        break;
                r->kind = PRISM_KIND_FUTEX;
                r->op = PRISM_OP_FUTEX_WAITV_ANY;
                s->user_address = first.address;
                subject_set_futex(task, s, first.flags & FUTEX2_PRIVATE);
                break;
        }
        case SYSCALL_SLEEP:
                r->kind = PRISM_KIND_TIMER;
                break;
        case SYSCALL_CHILD:
                r->kind = PRISM_KIND_CHILD;
                break;
        case SYSCALL_SIGNAL:
                r->kind = PRISM_KIND_SIGNAL;
                break;
        case SYSCALL_VFORK:
        case SYSCALL_CLONE:
        case SYSCALL_CLONE3: {
                __u64 clone_flags = class == SYSCALL_VFORK ? CLONE_VFORK : c->arguments[0];

                if (class == SYSCALL_CLONE3) {
                        clone_flags = 0;
                        if (current)
                                bpf_probe_read_user(&clone_flags, sizeof(clone_flags), (void *) c->arguments[0]);
                }
                if (clone_flags & CLONE_VFORK)
                        r->kind = PRISM_KIND_CHILD;
                break;
        }
        case SYSCALL_DESCRIPTOR:
                subject_set_file(c, st, s, c->arguments[0]);
                break;
        case SYSCALL_SENDFILE:
                subject_set_either(c, st, s, c->arguments[1], c->arguments[0], uninterruptible);
                break;
        case SYSCALL_SPLICE:
                subject_set_either(c, st, s, c->arguments[0], c->arguments[2], uninterruptible);
                break;
        case SYSCALL_COPY:
                subject_set_file(c, st, s, c->arguments[0]);
                break;
        case SYSCALL_EPOLL:
                subject_set_file(c, st, s, c->arguments[0]);
                break;
        case SYSCALL_POLL:
                r->kind = current ? subject_poll(st, s, c->arguments[0], c->arguments[1]) : PRISM_KIND_POLL;
                break;
        case SYSCALL_SELECT:
                r->kind = current ? subject_select(st, s, c) : PRISM_KIND_POLL;
                break;
        case SYSCALL_AIO:
        case SYSCALL_AIO_SUBMIT:
                r->kind = PRISM_KIND_AIO;
                r->space = address_space((struct task_struct *) task);
                r->address = c->arguments[0];
                break;
        case SYSCALL_IO_URING:
                r->kind = PRISM_KIND_IO_URING;
                if (!(c->arguments[3] & IORING_ENTER_REGISTERED_RING))
                        subject_set_file(c, st, s, c->arguments[0]);
                break;
        case SYSCALL_OPEN:
        case SYSCALL_PATH:
                if (current)
                        r->kind = subject_set_path(task, st, s, c->arguments[0]);
                if (class == SYSCALL_OPEN && r->kind == PRISM_KIND_FILE && !uninterruptible)
                        r->kind = PRISM_KIND_FIFO; /* what waits so for its other end */
                break;
        case SYSCALL_OPEN_AT:
        case SYSCALL_PATH_AT:
                if (current)
                        r->kind = subject_set_path(task, st, s, c->arguments[1]);
                if (class == SYSCALL_OPEN_AT && r->kind == PRISM_KIND_FILE && !uninterruptible)
                        r->kind = PRISM_KIND_FIFO;
                break;
        case SYSCALL_SYSV:
                r->space = c->arguments[0];
                break;
        case SYSCALL_MAPPING:
                s->user_address = c->arguments[0];
                s->look_at_mapping = 1;
                break;
        case SYSCALL_SYNC:
                r->kind = PRISM_KIND_DISK;
                break;
        }
        return class;
}
