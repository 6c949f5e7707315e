/* SPDX-License-Identifier: GPL-2.0-only OR LGPL-2.1-or-later */
/* The ABI between the kernel side (bpf/) and prismd: the only header that both include. All times are nanoseconds of
 * the boot clock (CLOCK_BOOTTIME); "handle" is a number that is never used twice while prismd runs. */
#ifndef PRISM_H
#define PRISM_H

#define PRISM_COMM_LENGTH 16
#define PRISM_HISTOGRAM_BUCKETS 8

/* A stretch in one state is split off as a "lead" (see struct prism_thread_time) when it began this long before the
 * generation did: shorter ones are part of the interval in which they end. */
#define PRISM_LONG_STATE_NS 1000000000ULL

/* How many of the last time slices of a CPU are remembered to say who ran while a thread waited. A power of two. */
#define PRISM_SLICES 32

enum prism_state {
        PRISM_STATE_NONE, /* tracked, but no transition and no initial state seen yet */
        PRISM_STATE_RUN,
        PRISM_STATE_RUNQUEUE,
        PRISM_STATE_SLEEP, /* interruptible */
        PRISM_STATE_BLOCK, /* uninterruptible */
};

/* What a thread can wait on. The order is part of the ABI only between one build's two sides; the store has names. */
enum prism_kind {
        PRISM_KIND_NONE,
        PRISM_KIND_FUTEX,
        PRISM_KIND_PIPE,
        PRISM_KIND_FIFO,
        PRISM_KIND_CHARDEV,
        PRISM_KIND_UNIX,
        PRISM_KIND_INET,
        PRISM_KIND_EPOLL,
        PRISM_KIND_POLL,
        PRISM_KIND_EVENTFD,
        PRISM_KIND_TIMERFD,
        PRISM_KIND_SIGNALFD,
        PRISM_KIND_INOTIFY,
        PRISM_KIND_FILE,
        PRISM_KIND_DISK,
        PRISM_KIND_AIO,
        PRISM_KIND_IO_URING,
        PRISM_KIND_KERNEL_LOCK,
        PRISM_KIND_PAGE_FAULT,
        PRISM_KIND_RECLAIM,
        PRISM_KIND_TIMER,
        PRISM_KIND_CHILD,
        PRISM_KIND_SIGNAL,
        PRISM_KIND_SOCKET, /* other families: netlink, packet, vsock ... */
        PRISM_KIND_OTHER,
        _PRISM_KIND_MAX,
};

/* Operations. Below PRISM_OP_NAMED: the number of a 64-bit system call; PRISM_OP_COMPAT is set in it for a 32-bit one.
 * */
#define PRISM_OP_COMPAT 0x4000
enum prism_op {
        PRISM_OP_NAMED = 0x8000,
        PRISM_OP_FUTEX_WAIT = PRISM_OP_NAMED,
        PRISM_OP_FUTEX_WAIT_BITSET,
        PRISM_OP_FUTEX_LOCK_PI,
        PRISM_OP_FUTEX_WAIT_REQUEUE_PI,
        PRISM_OP_FUTEX_WAITV,     /* the futex that its waker used */
        PRISM_OP_FUTEX_WAITV_ANY, /* ended by something else: charged to the first of the vector */
        PRISM_OP_FUTEX2_WAIT,
        PRISM_OP_FUTEX_WAKE,     /* a call only; its bytes are the threads woken */
        PRISM_OP_STOPPED,        /* by a job control signal */
        PRISM_OP_TRACED,         /* by a debugger */
        PRISM_OP_FROZEN,         /* by a freezer */
        PRISM_OP_USER,           /* outside any system call (page fault, work on the way to user mode) */
        PRISM_OP_IO_WORKER,      /* a kernel worker of io_uring */
        PRISM_OP_EXIT,           /* tear-down of an exiting thread */
        PRISM_OP_LOST,           /* the wait map was full: the time is kept, what it was waited for is not */
        PRISM_OP_UNKNOWN,        /* was asleep when tracking began and its registers could not be read */
        PRISM_OP_FILE,           /* page fault on a file's mapping */
        PRISM_OP_SWAP,           /* page fault on memory without a file that had to be read back */
        PRISM_OP_RECLAIM,        /* direct reclaim: memory had to be freed first */
        PRISM_OP_RECLAIM_CGROUP, /* the same for the limit of a cgroup */
        PRISM_OP_MUTEX,          /* kernel locks, by kind */
        PRISM_OP_RWSEM_READ,
        PRISM_OP_RWSEM_WRITE,
        PRISM_OP_RT_LOCK,
        PRISM_OP_PERCPU_RWSEM_READ,
        PRISM_OP_PERCPU_RWSEM_WRITE,
        PRISM_OP_LOCK,
        PRISM_OP_SUBMIT,   /* requests given to io_uring or native AIO */
        PRISM_OP_COMPLETE, /* completions seen by io_uring */
        _PRISM_OP_MAX,
};

enum prism_waker_kind {
        PRISM_WAKER_UNSEEN, /* no wake was delivered to us */
        PRISM_WAKER_THREAD,
        PRISM_WAKER_IRQ,
        PRISM_WAKER_TIMER,
};

/* Why something was not recorded. Each has a counter in `losses`; names in daemon/names.c. */
enum prism_loss {
        PRISM_LOSS_THREAD_LIMIT, /* no free thread slot */
        PRISM_LOSS_STORAGE_FULL, /* task storage could not be created */
        PRISM_LOSS_WAIT_FULL,    /* wait map: no room */
        PRISM_LOSS_WAIT_BUSY,    /* wait map: any other error */
        PRISM_LOSS_INSTEAD_FULL, /* ran_instead map: no room (the time becomes unnamed) */
        PRISM_LOSS_INSTEAD_BUSY,
        PRISM_LOSS_MISSED_SWITCH, /* a switch was not delivered and was inferred */
        PRISM_LOSS_MISSED_WAKE,   /* a wake was not delivered and was inferred */
        PRISM_LOSS_EVENT_FULL,    /* ring buffer of rare events */
        PRISM_LOSS_CALL_FULL,     /* call map: no room (the call is not counted) */
        PRISM_LOSS_CALL_BUSY,
        PRISM_LOSS_OBJECT_FULL,  /* object map: no room (a name or an address is missing until the next time) */
        PRISM_LOSS_REQUEST_FULL, /* map of block requests in flight: no room (the request is not counted) */
        PRISM_LOSS_DISK_FULL,    /* disk map: no room (the request is not counted) */
        PRISM_LOSS_DISK_BUSY,
        PRISM_LOSS_WATCHES, /* an epoll set watches more files than are looked at */
        PRISM_LOSS_MAPPING, /* which file is mapped at an address could not be asked: the mapping was being changed */
        _PRISM_LOSS_MAX,
};

enum prism_futex_sharing {
        PRISM_FUTEX_PRIVATE,
        PRISM_FUTEX_SHARED, /* `space` is an inode sequence, `address` an offset */
        PRISM_FUTEX_UNSURE, /* as private; the mapping that decides could not be asked */
};

/* What a wait is for. `space` and `address` identify it within `kind`:
 *   futex, private              address space id, address
 *   futex, shared               inode sequence, offset in the file
 *   pipe unix inet socket       inode number (a counter of 32 bits: years at a hundred new ones a second), 0
 *   file fifo                   inode number, device << 32 | inode generation
 *   page-fault with op file     the same, of the file
 *   chardev                     device number, device << 32 | inode number of the special file; of the master of a
 *                               pseudo terminal a number made of its open file
 *   disk                        device number of the special file, 0 (sync(): 0, 0)
 *   epoll eventfd timerfd signalfd inotify
 *                               address of the open file, start of the process
 *   poll                        a number made of the descriptors and their count, start of the process
 *   file or fifo by its path    a number made of the path, PRISM_BY_PATH | the mount namespace (absolute paths) or the
 *                               start of the process
 *   aio                         address space id, context
 *   io_uring                    inode number, 0; its kernel workers 0, 0
 *   kernel-lock                 a number made of its address, 0; the mmap lock of a process: address space id, 1
 *   other                       SysV objects: their id, 0
 * and 0, 0 where kind and op say it all, or where the object could not be seen. */
struct prism_resource {
        unsigned long long space;
        unsigned long long address;
        unsigned short op;
        unsigned char kind;
        unsigned char shared; /* futex: enum prism_futex_sharing */
        unsigned int padding;
};
/* In `address` of a file of which only the path in the call was seen. */
#define PRISM_BY_PATH (1ULL << 63)

/* Map `wait`: what one thread waited for in one generation, and who ended it. */
struct prism_wait_key {
        unsigned long long thread; /* handle */
        struct prism_resource resource;
        /* epoll, poll: the watched file whose event ended the wait, as in struct prism_resource. */
        unsigned long long via_space;
        unsigned long long via_address;
        unsigned long long waker; /* waker_kind thread: its handle, or when it started if it is not tracked */
        unsigned int waker_tid;   /* the kernel's own number; 0 with a handle */
        unsigned char waker_kind;
        unsigned char via_kind; /* PRISM_KIND_NONE: nothing watched ended it, or it was not seen */
        unsigned char padding[2];
};

struct prism_wait_value {
        unsigned long long total_ns; /* the part inside the generation */
        unsigned long long ended_ns; /* full length of the waits that ended */
        unsigned long long max_ns;
        unsigned long long user_address; /* futex: where the waiter sees it, to look up its name; files: descriptor */
        unsigned int count;
        unsigned int histogram[PRISM_HISTOGRAM_BUCKETS];
        unsigned int waker_tgid;      /* the kernel's own number */
        unsigned int waker_user_tgid; /* as prismd's pid namespace numbers it, 0 if it does not */
        unsigned int waker_user_tid;
        unsigned long long waker_process_start_ns;
        char waker_comm[PRISM_COMM_LENGTH]; /* set for untracked wakers only */
};

/* Map `call`: system calls that ended in one generation, by what they were about. Only while the calls tier is on. */
struct prism_call_key {
        unsigned long long thread; /* handle */
        struct prism_resource resource;
};

struct prism_call_value {
        unsigned long long bytes; /* what reads and writes of all kinds returned */
        unsigned long long total_ns;
        unsigned long long max_ns;
        unsigned long long user_address; /* as in struct prism_wait_value */
        unsigned int count;
        unsigned int errors; /* calls that failed, but for EAGAIN, EINTR and the like */
        unsigned int histogram[PRISM_HISTOGRAM_BUCKETS];
};

/* Map `objects`: what prismd cannot see by itself, or not in time, of an object that a thread waited for or used. Written
 * when an entry of `wait` or `call` is new in its generation, so at most once a second for a thread and object, and
 * for all sockets of a process by the iterator iter_sockets. */
struct prism_object_key {
        unsigned long long space;
        unsigned long long address;
        unsigned int kind;
        unsigned int padding;
};

#define PRISM_NAME_LENGTH 64
#define PRISM_UNIX_PATH_LENGTH 108
#define PRISM_POLL_FILES 8
struct prism_object {
        unsigned long long thread; /* handle of one that has it open */
        int descriptor;            /* there; -1: not known */
        unsigned int padding;
        unsigned long long seen_ns;
        /* file, fifo: last component of the path, or the path that a call was given. chardev: last component. */
        char name[PRISM_NAME_LENGTH];
        /* poll: the descriptors, as many as fit, and how many there are */
        int poll_descriptors[PRISM_POLL_FILES];
        unsigned int poll_count;

        /* unix, inet, socket */
        unsigned short family, type, protocol;
        unsigned short local_port, remote_port;              /* host byte order */
        unsigned char state;                                 /* the kernel's TCP_* */
        unsigned char has_counters;                          /* TCP: the counters below are the kernel's own */
        unsigned int netns;                                  /* inode number */
        unsigned long long cookie;                           /* 0: the kernel has not made one yet */
        unsigned char local_address[16], remote_address[16]; /* 4 bytes for AF_INET */
        unsigned long long peer_inode; /* unix: of the socket at the other end, 0 if there is none */
        unsigned int path_length;      /* unix: bytes of `path`; an abstract name begins with a 0 byte */
        char path[PRISM_UNIX_PATH_LENGTH];
        unsigned int retransmits; /* segments */
        unsigned int srtt_us;
        unsigned long long bytes_in, bytes_out; /* received in order; acknowledged by the other side */
        unsigned int send_queue, receive_queue; /* bytes, now */
};

/* What iter_files writes for each file that a set watches, when control.look_at_watches is set; as in struct
 * prism_object_key. */
struct prism_watch {
        unsigned long long set_space, set_address;
        unsigned long long space, address;
        unsigned int kind;
        unsigned int padding;
};

/* Map `disk`: block requests that ended in one generation, by who submitted them: of tracked threads each, of all others
 * of the host by process. */
enum prism_disk_op {
        PRISM_DISK_READ,
        PRISM_DISK_WRITE,
        PRISM_DISK_FLUSH,
        PRISM_DISK_DISCARD,
        PRISM_DISK_OTHER,
        _PRISM_DISK_MAX,
};

struct prism_disk_key {
        unsigned long long thread;           /* handle, 0: the submitter is not tracked */
        unsigned long long process_start_ns; /* of the submitter's process */
        unsigned long long cgroup;           /* id of the block cgroup that the kernel charges, 0: none */
        unsigned int tgid;                   /* the kernel's own number */
        unsigned int device;                 /* the whole disk: major << 20 | minor */
        unsigned int partition;              /* its number, 0: the whole disk */
        unsigned int op;                     /* enum prism_disk_op */
};

struct prism_disk_value {
        unsigned long long sectors;  /* of 512 bytes */
        unsigned long long total_ns; /* from the start of the request to its end */
        unsigned long long max_ns;
        unsigned int requests;
        unsigned int histogram[PRISM_HISTOGRAM_BUCKETS];
        unsigned int user_tgid;
        unsigned int kernel_thread; /* the submitter is one: write-back and the like */
        char comm[PRISM_COMM_LENGTH];
};

/* Map `ran_instead`: which process ran while the thread stood in the run queue. */
struct prism_instead_key {
        unsigned long long thread;
        unsigned long long process_start_ns; /* 0: it was gone when it was charged */
        unsigned int tgid;                   /* the kernel's own number */
        unsigned int padding;
};

struct prism_instead_value {
        unsigned long long total_ns;
        unsigned int user_tgid;
        char comm[PRISM_COMM_LENGTH];
        unsigned int padding;
};

/* Array `thread_info`, one element a slot, mapped by prismd. Written when a thread becomes tracked, renamed or execs;
 * `sequence` is odd while it is being written. prismd reads it when `sequence` moved. */
struct prism_thread_info {
        unsigned long long thread; /* handle, 0: never used */
        unsigned long long start_ns;
        unsigned long long process_start_ns;
        unsigned long long tracked_ns; /* since when it is tracked */
        unsigned long long parent_start_ns;
        unsigned int tid, tgid;           /* the kernel's own numbers */
        unsigned int user_tid, user_tgid; /* in prismd's pid namespace, 0 if it has none there */
        unsigned int parent_tgid, user_parent_tgid;
        unsigned int uid;
        unsigned int sequence;
        unsigned int execs;      /* how often its process executed a new image */
        unsigned int follow;     /* enum prism_follow */
        unsigned int target;     /* number of the target that brought it in; children inherit it */
        unsigned char inherited; /* its process came in as a new child, not by a mark */
        unsigned char padding[3];
        char comm[PRISM_COMM_LENGTH];
};

enum prism_follow {
        PRISM_FOLLOW_NONE,     /* this process only (its new threads always) */
        PRISM_FOLLOW_CHILDREN, /* and the processes it forks */
};

/* A process that ran instead, beside the thread's own: the first few of a generation stand in the thread's row, which
 * saves a hash operation and the look at that process's task at each switch. */
#define PRISM_INLINE_INSTEADS 2
struct prism_instead_inline {
        unsigned long long task; /* address of the thread that was seen last, 0: free */
        unsigned long long process_start_ns;
        unsigned long long total_ns;
        unsigned int tgid;
        unsigned int user_tgid;
        char comm[PRISM_COMM_LENGTH];
};

/* Array `thread_time`, two generations of one element a slot, mapped by prismd, which reads and clears the generation
 * that no program uses. One writer: the programs that run for the thread, which its run queue lock serialises.
 *
 * The main interval is (from_ns, until_ns]. When the state in which the thread entered the generation began long before
 * it, or before the last flush, the part before the generation is not in the sums but described by the lead: the thread
 * was in `lead_state`, on `lead_resource` if off the CPU, from lead_from_ns until lead_wake_ns, in the run queue from
 * there until lead_until_ns. lead_wake_ns is lead_until_ns where the state did not change. */
struct prism_thread_time {
        unsigned long long thread; /* handle, 0: nothing in this generation */
        unsigned long long from_ns;
        unsigned long long until_ns;
        unsigned long long run_ns;
        unsigned long long runqueue_ns;
        unsigned long long sleep_ns;
        unsigned long long block_ns;
        unsigned long long iowait_ns;
        unsigned long long throttled_ns;
        unsigned long long healed_ns;
        unsigned long long
                        named_ns; /* part of runqueue_ns for which a process is named: `own_ns`, here, or in ran_instead */
        unsigned long long own_ns;  /* other threads of its own process ran */
        unsigned long long lost_ns; /* part of sleep_ns + block_ns for which there is no entry in `wait` */
        unsigned int switches;
        unsigned int preemptions;
        unsigned long long exit_ns; /* the thread has left the CPU for the last time */
        struct prism_instead_inline insteads[PRISM_INLINE_INSTEADS];
        unsigned long long lead_from_ns;
        unsigned long long lead_wake_ns;
        unsigned long long lead_until_ns;
        unsigned long long lead_user_address;
        struct prism_resource lead_resource;
        unsigned char lead_state;
        unsigned char lead_iowait;
        unsigned char lead_throttled;
        unsigned char padding[5];
};

/* What the iterator `iter_threads` reports for each tracked thread: the state it is in now, PRISM_STATE_NONE if it changed
 * faster than it could be read. */
struct prism_inflight {
        unsigned long long thread;
        unsigned long long since_ns;
        unsigned long long wake_ns; /* 0: not woken */
        unsigned long long user_address;
        struct prism_resource resource;
        unsigned int slot;
        unsigned char state;
        unsigned char iowait;
        unsigned char throttled;
        unsigned char settled; /* a transition has been seen since tracking began */
};

/* Ring buffer `events`: rare facts that prismd should look at before the next tick. */
enum prism_event_kind {
        PRISM_EVENT_PROCESS, /* a process was forked by a tracked one, or a tracked one executed a new image */
        PRISM_EVENT_EXEC,    /* any process executed a new image (only while control.report_execs is set) */
};

struct prism_event {
        unsigned int kind;
        unsigned int user_tgid;
        unsigned int tgid;
        unsigned int padding;
        unsigned long long process_start_ns;
};

/* Fixed by prismd before loading, so that branches on them cost nothing. */
struct prism_settings {
        unsigned int thread_slots;
        unsigned int pid_namespace;      /* inode number of prismd's own */
        unsigned char has_prev_state;    /* sched_switch has the 4th argument (5.18) */
        unsigned char has_find_vma;      /* bpf_find_vma (5.17) */
        unsigned char has_preempt_count; /* the three offsets below are known */
        unsigned char has_hrtimer_bases;
        unsigned char has_timer_bases;
        unsigned char has_page_fault; /* page_fault_user, so that a fault's address is known */
        unsigned char padding[2];
        /* Offsets into the per-CPU area, from BTF: the address of this CPU's variable is that of its struct rq, which
         * any task leads to, plus a difference. (A __ksym would need CONFIG_KALLSYMS_ALL.) */
        long long preempt_count_offset; /* from struct rq */
        long long hrtimer_bases_offset; /* from struct rq */
        long long timer_bases_offset;   /* from struct rq */
        unsigned int timer_bases_number;
        unsigned int padding_end;
        unsigned long long secret[2]; /* mixed into numbers that are made of kernel addresses */
};

/* The operations of files that have no kind of their own in their inode; found by iter_kinds, which prismd shows one
 * descriptor of each. */
enum prism_file_type {
        PRISM_FILE_EPOLL,
        PRISM_FILE_EVENTFD,
        PRISM_FILE_TIMERFD,
        PRISM_FILE_SIGNALFD,
        PRISM_FILE_INOTIFY,
        PRISM_FILE_IO_URING,
        PRISM_FILE_SOCKET, /* has a kind, but is known sooner by them */
        _PRISM_FILE_MAX,
};

/* Written by prismd while programs run. A program reads `generation` first and the clock after it, so that a program
 * that uses a generation never has a time before that generation's start. */
struct prism_control {
        unsigned int generation; /* bit 0 chooses the half of each map */
        unsigned int active;     /* 0: nothing is tracked, programs leave at once */
        unsigned long long generation_start_ns[2];
        unsigned long long flush_ns; /* start of the last generation whose states in flight were all written out */
        unsigned int report_execs;   /* send PRISM_EVENT_EXEC */
        unsigned int mark_tgid;      /* iter_mark: the process to mark, in prismd's numbers; 0: release */
        unsigned int mark_follow;
        unsigned int mark_target;
#define PRISM_UNMARK_ALL 0xffffffffU
        unsigned int unmark_tgid;         /* iter_mark: the process to release, in the kernel's own numbers */
        unsigned int pid_namespace_level; /* of prismd's; 0: the host's. iter_mark finds it when there is nothing to mark */
        unsigned int look_at_watches;     /* iter_files: also write what epoll sets watch */
        unsigned int calls_epoch; /* grows each time the calls tier is switched on: older beginnings do not count */
        int file_descriptors[_PRISM_FILE_MAX]; /* iter_kinds: of prismd's own, -1: none */
        unsigned long long file_operations[_PRISM_FILE_MAX];
};

#endif
