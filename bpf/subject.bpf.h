/* SPDX-License-Identifier: GPL-2.0-only */
/* What a system call is about, from its arguments: the same for a call that waits and for one that has just begun. */
#ifndef PRISM_SUBJECT_H
#define PRISM_SUBJECT_H

#include "call.bpf.h"
#include "file.bpf.h"

/* How a call is looked at. */
#define SUBJECT_CURRENT 1U /* its thread runs right now: its memory can be read */
#define SUBJECT_UNINTERRUPTIBLE 2U

/* In user_address of a file that is not known by a descriptor. */
#define NO_DESCRIPTOR ((__u64) -1)

/* The resource, where the thread sees it (futex: address; file: descriptor), and the address of the struct file. */
struct subject {
        struct prism_resource resource;
        __u64 user_address;
        __u64 file;
        __u64 set; /* epoll: address of the struct eventpoll */
        /* The answer depends on what is mapped at user_address, which only a program that holds the task can ask: of a
         * futex whether it is shared, of msync() which file it is. */
        __u32 look_at_mapping;
        __u32 ports; /* inet: the lower half of socket_head() */
};

/* Waits in a file of these kinds can be interrupted. In uninterruptible state the thread waits for something else: memory
 * that has to be read (page fault), or a lock. */
static __always_inline bool waits_interruptibly(__u32 kind) {
        switch (kind) {
        case PRISM_KIND_PIPE:
        case PRISM_KIND_FIFO:
        case PRISM_KIND_UNIX:
        case PRISM_KIND_INET:
        case PRISM_KIND_SOCKET:
        case PRISM_KIND_EPOLL:
        case PRISM_KIND_EVENTFD:
        case PRISM_KIND_TIMERFD:
        case PRISM_KIND_SIGNALFD:
        case PRISM_KIND_INOTIFY:
        case PRISM_KIND_IO_URING:
                return true;
        }
        return false;
}

/* What a program puts together and no stack has room for: kernels before 6.13 give all functions of a chain of calls 512
 * bytes (tools/bpf-stack checks that). One each for programs that cannot interrupt each other. */
enum work_use {
        WORK_SWITCH,   /* sched_switch, sched_migrate_task: interrupts are off */
        WORK_TASK,     /* a thread on its own way, with preemption off */
        WORK_ITERATOR, /* one reader at a time: prismd's main thread */
        _WORK_MAX,
};
struct work {
        struct subject subject;
        struct call call;
        struct prism_wait_value wait;
        struct prism_call_value counted;
};
struct works_map {
        __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
        __uint(max_entries, _WORK_MAX);
        __type(key, __u32);
        __uint(value_size, sizeof(struct work)); /* by size: as a type, clang may leave only a forward declaration */
};
extern struct works_map works SEC(".maps");

static __always_inline struct work *work_of(enum work_use use) {
        __u32 index = use;

        return bpf_map_lookup_elem(&works, &index);
}

/* Sets what of *s can be told without the task's mappings. `how`: SUBJECT_*; `task`: its address. Returns the class of the
 * call. What is to be kept of the call's memory (the files of a poll, a path) goes into *st. */
extern __noinline int subject_of_call(
                __u64 task, struct thread_state *st, struct subject *s, struct call *c, __u32 how);

/* Opens by its path a file that is seen only when the call has ended. */
extern __noinline int subject_set_file(struct call *c, struct thread_state *st, struct subject *s, __u32 descriptor);

/* The same for a poll or select that was going on when its thread became tracked, with its memory read elsewhere. */
struct select_sets {
        __u64 set[3]; /* for reading, for writing, for exceptions */
};
extern __noinline int subject_of_poll(struct thread_state *st, struct subject *s, __u32 n);
extern __noinline int subject_of_select(
                struct thread_state *st, struct subject *s, __u32 highest, struct select_sets *sets);

#endif
