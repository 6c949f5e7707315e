/* SPDX-License-Identifier: GPL-2.0-only */
/* What the objects of the kernel side share: settings (fixed before loading), control words, and the maps. Defined in
 * maps.bpf.c. Each map says: key, value, who inserts, who deletes, how many, what happens when full. */
#ifndef PRISM_MAPS_H
#define PRISM_MAPS_H

#include "kernel-read.h"
#include "prism.h"

extern const volatile struct prism_settings settings;

extern struct prism_control control;

extern __u64 losses[_PRISM_LOSS_MAX];
extern __u64 next_thread; /* the last handle given out */
extern __u32 next_slot;   /* slots below it have been used at least once */

/* State of a tracked thread; being here is what "tracked" means. Key: task. Inserted by iter_mark and task_newtask, deleted
 * by iter_mark and with the task. Bounded by thread_slots.
 *
 * Two writers, each alone: switches and migrations run under the run queue lock, wakes under the thread's wake-up lock, and
 * a wake can come while the switch it answers is still going on. So each side writes its own fields, and a wake belongs
 * to a sleep by its time alone. `version` and `wake_version` are odd while their side writes, for iter_threads, which
 * only reads. The first cache line is what a switch touches, with the second what a wake does. */
#define NO_MARK 0xffffffffU
/* The file is known, what it is is not yet: a wake notes it, the switch to the woken thread looks. Its CPU is about to touch
 * the file anyway; on the waker's these cache lines would be cold. */
#define VIA_UNIDENTIFIED 0xff
struct via {
        __u64 space, address;
        __u64 file;  /* address of its struct file */
        __u64 item;  /* of an epoll set, as long as it is VIA_UNIDENTIFIED */
        __u32 kind;  /* PRISM_KIND_NONE: none */
        __u32 ports; /* inet: the lower half of socket_head() */
};
/* As in the user's struct pollfd. */
struct poll_descriptor {
        int descriptor;
        __u16 events, returned;
};
struct thread_state {
        __u64 thread;       /* handle */
        __u64 since_ns;     /* of the current state */
        __u64 ran_since_ns; /* when it last got the CPU */
        __u64 exec_runtime; /* se.sum_exec_runtime at the last switch to or from it */
        __u64 run_delay;    /* sched_info.run_delay when it left the CPU */
        __u64 queued_ns;    /* its last stay in the run queue, which run_delay does not have yet */
        __u32 slot;
        __u32 version;
        __u8 state; /* enum prism_state */
        __u8 iowait;
        __u8 throttled;
        __u8 settled; /* a switch has been seen: from here on an odd state is a missed switch, not a bad first guess */
        __u8 follow;
        __u8 inherited; /* its process is tracked since it was forked */
        /* Written by wakes, like the waker's identity below. */
        __u8 waker_kind;
        __u8 was_early;  /* the wake that ended the last wait was ahead of the switch; written by the switch */
        __u64 wake_ns;   /* the last wake, of whatever sleep */
        __u64 waker;     /* handle, or start of one that is not tracked */
        __u32 waker_tid; /* 0 with a handle */
        __u32 wake_version;

        struct prism_resource resource; /* of the current or last wait */
        __u64 user_address;
        struct prism_resource call; /* the last wait that was a system call's own, for restart_syscall */
        __u64 call_address;
        __u64 file; /* address of the struct file that the current or last wait is on, 0: none */

        /* epoll and poll: which watched file ended the wait. `via` is written by wakes; `early_via` by the switch, when the
         * wake was ahead of it. */
        struct via via, early_via;
        /* Written by the thread itself on its way, like all that follows. */
        __u64 lock; /* the kernel lock that it contends for, 0: none */
        __u32 lock_flags;
        __u32 reclaim;       /* PRISM_OP_RECLAIM or PRISM_OP_RECLAIM_CGROUP while in it, else 0 */
        __u64 reclaim_ns;    /* since when */
        __u64 fault_address; /* of the last page fault */
        /* The system call that it is in, while the calls tier is on: 0 in entered_ns, or an older epoch, is none. */
        __u64 entered_ns;
        __u32 entered_epoch;
        __u32 entered_how; /* calls.bpf.c: what its end has to know of it */
        __u32 poll_count;  /* files of the current or last poll or select; more than fit into `poll` are not seen */
        struct prism_resource entered;
        __u64 entered_address, entered_file;
        __u64 opened_file;  /* which st->path led to, while that is so */
        __u64 closing_file; /* as a number, for the moment in which a socket is closed */
        union {
                struct poll_descriptor poll[PRISM_POLL_FILES];
                char path[PRISM_NAME_LENGTH]; /* of the current or last wait in a call that takes one */
        };
        /* Addresses that went through a map are numbers to the verifier, which global functions insist on. */
        __u64 process_start_ns;
        __u64 throttled_ns; /* how long its queue had been throttled when it came into it, by the kernel's account */
        __u64 task;         /* its own */
        __u64 running;      /* whoever has the CPU, for the moment of a migration */
        __u64 set;          /* epoll: address of the struct eventpoll that it waits on */
        __u32 ports;        /* of the socket that it waits on, as in struct via */
        /* Where the slices of a CPU stood when it came into the queue there by losing that CPU: what came later ran instead. */
        __u64 mark_ns; /* length of the newest entry */
        __u32 mark_next;
        __u32 mark_cpu; /* NO_MARK: it was woken, or moved */
        __u32 tgid;
        __u32 target;
        __u32 waker_tgid, waker_user_tgid, waker_user_tid;
        __u64 waker_process_start_ns;
        char waker_comm[PRISM_COMM_LENGTH];
};

struct threads_map {
        __uint(type, BPF_MAP_TYPE_TASK_STORAGE);
        __uint(map_flags, BPF_F_NO_PREALLOC);
        __type(key, int);
        __type(value, struct thread_state);
};
extern struct threads_map threads SEC(".maps");

/* NULL: the thread is not tracked. Storage may also be another program's. */
static __always_inline struct thread_state *state_of(struct task_struct *task) {
        return task->bpf_storage ? bpf_task_storage_get(&threads, task, 0, 0) : NULL;
}

/* Key: slot. Written when a thread becomes tracked; never deleted, reused with the slot. */
struct thread_info_map {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(map_flags, BPF_F_MMAPABLE);
        __uint(max_entries, 1);
        __type(key, __u32);
        __type(value, struct prism_thread_info);
};
extern struct thread_info_map thread_info SEC(".maps");

/* Key: generation * thread_slots + slot. Written by the thread's own programs, cleared by prismd in the idle
 * generation. */
struct thread_time_map {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(map_flags, BPF_F_MMAPABLE);
        __uint(max_entries, 1);
        __type(key, __u32);
        __type(value, struct prism_thread_time);
};
extern struct thread_time_map thread_time SEC(".maps");

/* Slots that are free again: pushed by prismd one generation after the thread's end, popped when a thread becomes
 * tracked. Empty and next_slot at its end: the thread is not tracked, counted as PRISM_LOSS_THREAD_LIMIT. */
struct free_slots_map {
        __uint(type, BPF_MAP_TYPE_STACK);
        __uint(max_entries, 1);
        __uint(value_size, sizeof(__u32));
};
extern struct free_slots_map free_slots SEC(".maps");

/* Per generation: struct prism_wait_key -> struct prism_wait_value. Inserted at switch-in, drained by prismd from the
 * idle generation. Full or busy: counted, and the time goes to thread_time.lost_ns. Preallocated: an insertion under
 * the run queue lock must not allocate, and costs a quarter. */
struct wait_map {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, 1);
        __uint(key_size,
                        sizeof(struct prism_wait_key)); /* by size: as a type, clang may leave only a forward declaration */
        __uint(value_size, sizeof(struct prism_wait_value));
};
struct wait_generations_map {
        __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
        __uint(max_entries, 2);
        __type(key, __u32);
        __array(values, struct wait_map);
};
extern struct wait_generations_map wait_generations SEC(".maps");

/* Per generation: struct prism_call_key -> struct prism_call_value. Inserted at the end of a system call, drained like
 * `wait`. Full or busy: counted. */
struct call_map {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, 1);
        __uint(key_size,
                        sizeof(struct prism_call_key)); /* by size: as a type, clang may leave only a forward declaration */
        __uint(value_size, sizeof(struct prism_call_value));
};
struct call_generations_map {
        __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
        __uint(max_entries, 2);
        __type(key, __u32);
        __array(values, struct call_map);
};
extern struct call_generations_map call_generations SEC(".maps");

/* struct prism_object_key -> struct prism_object. Written where an entry of `wait` or `call` is new, and by iter_files;
 * drained by prismd each tick. Full: counted, and tried again a second later. */
struct objects_map {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, 8192);
        __type(key, struct prism_object_key);
        __type(value, struct prism_object);
};
extern struct objects_map objects SEC(".maps");

/* Room to put an object together, which no stack has: one each for programs that cannot interrupt each other. */
enum object_scratch {
        SCRATCH_SWITCH,   /* interrupts are off */
        SCRATCH_TASK,     /* a thread on its own way; other threads of the CPU are kept away by disabled preemption */
        SCRATCH_CLOSING,  /* socket_closing, which never runs inside itself */
        SCRATCH_ITERATOR, /* one reader at a time: prismd's main thread */
        _SCRATCH_MAX,
};
struct object_scratch_map {
        __uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
        __uint(max_entries, _SCRATCH_MAX);
        __type(key, __u32);
        __type(value, struct prism_object);
};
extern struct object_scratch_map object_scratch SEC(".maps");

/* Per generation: struct prism_instead_key -> struct prism_instead_value. As `wait`; full: the time stays unnamed. */
struct instead_map {
        __uint(type, BPF_MAP_TYPE_HASH);
        __uint(max_entries, 1);
        __uint(key_size,
                        sizeof(struct prism_instead_key)); /* by size: as a type, clang may leave only a forward declaration */
        __uint(value_size, sizeof(struct prism_instead_value));
};
struct instead_generations_map {
        __uint(type, BPF_MAP_TYPE_ARRAY_OF_MAPS);
        __uint(max_entries, 2);
        __type(key, __u32);
        __array(values, struct instead_map);
};
extern struct instead_generations_map instead_generations SEC(".maps");

/* The last time slices of each CPU, newest at next - 1. Key: CPU. Written by sched_switch on that CPU; the oldest is
 * overwritten. Slices of one process that follow each other are one entry. An entry with tgid 0 means that the CPU was
 * idle: nobody waited for it before that. */
struct slice {
        __u64 task; /* address of the last thread, only to read its identity while it still has this tgid */
        __u64 length_ns;
        __u32 tgid;
        __u32 padding;
};
struct slices {
        __u64 running;      /* address of the task that has the CPU, as the last switch said */
        __u64 running_exec; /* its se.sum_exec_runtime then; prev_sum_exec_runtime is kept for fair tasks only */
        __u32 next;
        __u32 padding;
        struct slice slice[PRISM_SLICES];
};
struct slices_map {
        __uint(type, BPF_MAP_TYPE_ARRAY);
        __uint(max_entries, 1);
        __type(key, __u32);
        __type(value, struct slices);
};
extern struct slices_map slices SEC(".maps");

/* Rare facts for prismd. Full: counted, prismd finds the same at its next tick, only later. */
struct events_map {
        __uint(type, BPF_MAP_TYPE_RINGBUF);
        __uint(max_entries, 262144);
};
extern struct events_map events SEC(".maps");

static __always_inline void count_loss(enum prism_loss reason) {
        __sync_fetch_and_add(&losses[reason], 1);
}

#endif
