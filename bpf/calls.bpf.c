// SPDX-License-Identifier: GPL-2.0-only
/* The calls tier: system calls, also those that do not block, by what they are about. Attached only while it is wanted,
 * since being attached alone costs every system call of the host (docs/cost.md). */
#include "calls.bpf.h"
#include "object.bpf.h"
#include "resource.bpf.h"
#include "row.bpf.h"

int call_add(struct thread_state *st, struct prism_resource *resource, __u64 user_address, __u64 file,
                struct call_result *result) {
        __u32 generation = current_generation(), bucket;
        void *map = bpf_map_lookup_elem(&call_generations, &generation);
        struct prism_call_value *value;
        struct prism_call_key key = {};
        int r;

        if (!map)
                return false;
        if (!st || !resource || !result)
                return false;
        bucket = histogram_bucket(result->length_ns) & (PRISM_HISTOGRAM_BUCKETS - 1);
        key.thread = st->thread;
        key.resource = *resource;
        value = bpf_map_lookup_elem(map, &key);
        if (!value) {
                struct work *w = work_of(WORK_TASK);
                struct prism_call_value *fresh;

                if (!w)
                        return false;
                fresh = &w->counted;
                __builtin_memset(fresh, 0, sizeof(*fresh));
                fresh->bytes = result->bytes;
                fresh->total_ns = fresh->max_ns = result->length_ns;
                fresh->user_address = user_address;
                fresh->count = result->count;
                fresh->errors = result->errors;
                fresh->histogram[bucket] = result->count;
                r = bpf_map_update_elem(map, &key, fresh, BPF_NOEXIST);
                if (r != 0) {
                        count_loss(r == -E2BIG ? PRISM_LOSS_CALL_FULL : PRISM_LOSS_CALL_BUSY);
                        return false;
                }
                if (is_described(resource->kind) && (resource->space || resource->address)) {
                        struct prism_object_key object = {
                                .kind = resource->kind,
                                .space = resource->space,
                                .address = resource->address,
                        };

                        if (!object_describe(SCRATCH_TASK, &object, file, st, file ? (int) user_address : -1)) {
                                count_loss(PRISM_LOSS_OBJECT_FULL);
                                return false;
                        }
                }
                return true;
        }
        value->bytes += result->bytes;
        value->total_ns += result->length_ns;
        value->count += result->count;
        value->errors += result->errors;
        value->histogram[bucket] += result->count;
        if (value->max_ns < result->length_ns)
                value->max_ns = result->length_ns;
        return true;
}

/* What a call without an object of its own, or one whose object is charged otherwise, is not counted. */
static __always_inline bool is_counted(__u32 class) {
        switch (class) {
        case SYSCALL_OTHER:
        case SYSCALL_SLEEP:
        case SYSCALL_CHILD:
        case SYSCALL_VFORK:
        case SYSCALL_CLONE:
        case SYSCALL_CLONE3:
        case SYSCALL_SIGNAL:
        case SYSCALL_RESTART:
                return false;
        }
        return true;
}

/* The file of these is known when they have ended, or their path is in memory only then. */
static __always_inline bool is_late(__u32 class) {
        switch (class) {
        case SYSCALL_OPEN:
        case SYSCALL_OPEN_AT:
        case SYSCALL_PATH:
        case SYSCALL_PATH_AT:
                return true;
        }
        return false;
}

static __always_inline bool moves_bytes(const struct call *c) {
        if (c->compat)
                switch (c->number) {
                case 3:
                case 4:
                case 145:
                case 146:
                case 180:
                case 181:
                case 187:
                case 239: /* read ... sendfile64 */
                case 313:
                case 315:
                case 316:
                case 333:
                case 334:
                case 377:
                case 378:
                case 379: /* splice ... pwritev2 */
                case 369:
                case 370:
                case 371:
                case 372: /* sendto ... recvmsg */
                        return true;
                default:
                        return false;
                }
        switch (c->number) {
        case 0:
        case 1:
        case 17:
        case 18:
        case 19:
        case 20: /* read, write, pread64, pwrite64, readv, writev */
        case 40:
        case 44:
        case 45:
        case 46:
        case 47: /* sendfile, sendto, recvfrom, sendmsg, recvmsg */
        case 275:
        case 276:
        case 278: /* splice, tee, vmsplice */
        case 295:
        case 296:
        case 326:
        case 327:
        case 328: /* preadv, pwritev, copy_file_range, preadv2, pwritev2 */
                return true;
        default:
                return false;
        }
}

/* EAGAIN, EINTR, EINPROGRESS and what the kernel restarts say that there is nothing now, not that it failed. */
static __always_inline bool is_failure(long result) {
        return result < 0 && result >= -4095 && result != -11 && result != -4 && result != -115 &&
                        !(result <= -512 && result >= -516);
}

/* Of calls that take a path only those are told apart by it that do something to the file. What is merely looked for would be
 * one object each, mostly ones that are not there. */
static __always_inline bool changes_path(const struct call *c) {
        switch (c->number | (c->compat ? PRISM_OP_COMPAT : 0)) {
        case 76:  /* truncate */
        case 82:  /* rename */
        case 87:  /* unlink */
        case 263: /* unlinkat */
        case 264: /* renameat */
        case 316: /* renameat2 */
        case PRISM_OP_COMPAT | 92:
        case PRISM_OP_COMPAT | 193:
        case PRISM_OP_COMPAT | 38:
        case PRISM_OP_COMPAT | 10:
        case PRISM_OP_COMPAT | 301:
        case PRISM_OP_COMPAT | 302:
        case PRISM_OP_COMPAT | 353:
                return true;
        default:
                return false;
        }
}

/* In entered_how: so that the end of a call need not read its registers again. */
#define ENTERED_LATE 1U
#define ENTERED_MOVES_BYTES 2U
#define ENTERED_FUTEX_WAKE 4U
#define ENTERED_SUBMIT 8U

/* Each system call of the host while the tier is on. Measured with both programs (docs/cost.md): 60 to 200 ns for their mere
 * presence; with that 220 ns for a call of a tracked thread that is not counted, 420 for one that is. */
SEC("tp_btf/sys_enter")
int BPF_PROG(sys_enter, struct pt_regs *regs, long number) {
        struct task_struct *current = bpf_get_current_task_btf();
        struct thread_state *st;
        struct subject *s;
        struct work *w;
        struct call *c;
        __u32 class, how = 0;

        st = state_of(current);
        if (!st)
                return 0;
        st->entered_ns = 0;
        w = work_of(WORK_TASK);
        if (!w)
                return 0;
        c = &w->call;
        s = &w->subject;
        if (!call_read(current, c))
                return 0;
        class = call_class(c);
        if (!is_counted(class))
                return 0;
        if (moves_bytes(c))
                how |= ENTERED_MOVES_BYTES;
        if (is_late(class))
                how |= ENTERED_LATE;
        else {
                __builtin_memset(s, 0, sizeof(*s));
                s->resource.kind = PRISM_KIND_OTHER;
                s->resource.op = call_op(c);
                class = subject_look_up(current, st, s, c, SUBJECT_CURRENT);
                if (class == SYSCALL_FUTEX && futex_command_wakes(c->arguments[1])) {
                        s->resource.op = PRISM_OP_FUTEX_WAKE;
                        how |= ENTERED_FUTEX_WAKE;
                }
                if (class == SYSCALL_AIO_SUBMIT) {
                        s->resource.op = PRISM_OP_SUBMIT;
                        how |= ENTERED_SUBMIT;
                }
                st->entered = s->resource;
                st->entered_address = s->user_address;
                st->entered_file = s->file;
        }
        st->entered_how = how;
        st->entered_epoch = control.calls_epoch;
        st->entered_ns = bpf_ktime_get_boot_ns();
        return 0;
}

SEC("tp_btf/sys_exit")
int BPF_PROG(sys_exit, struct pt_regs *regs, long result) {
        struct task_struct *current = bpf_get_current_task_btf();
        struct call_result done = { .count = 1 };
        struct thread_state *st;
        __u64 now;
        __u32 how;

        st = state_of(current);
        if (!st || !st->entered_ns)
                return 0;
        now = bpf_ktime_get_boot_ns();
        done.length_ns = now > st->entered_ns ? now - st->entered_ns : 0;
        st->entered_ns = 0;
        if (st->entered_epoch != control.calls_epoch)
                return 0;
        how = st->entered_how;
        done.errors = is_failure(result);
        if (result > 0 && how & ENTERED_MOVES_BYTES)
                done.bytes = result;

        if (how & ENTERED_LATE) {
                struct work *w = work_of(WORK_TASK);
                struct subject *s;
                struct call *c;
                __u32 class;

                if (!w)
                        return 0;
                c = &w->call;
                s = &w->subject;
                if (!call_read(current, c))
                        return 0;
                class = call_class(c);
                __builtin_memset(s, 0, sizeof(*s));
                s->resource.kind = PRISM_KIND_FILE;
                s->resource.op = call_op(c);
                if (class == SYSCALL_OPEN || class == SYSCALL_OPEN_AT) {
                        /* First the path: it may be all that is ever seen of a file that is closed soon. */
                        if (result >= 0) {
                                class = subject_look_up(current, st, s, c, SUBJECT_CURRENT);
                                (void) subject_set_file(c, st, s, result);
                                st->opened_file = s->file;
                        }
                } else if (result >= 0 && changes_path(c))
                        class = subject_look_up(current, st, s, c, SUBJECT_CURRENT | SUBJECT_UNINTERRUPTIBLE);
                st->entered = s->resource;
                st->entered_address = s->user_address;
                st->entered_file = s->file;
        }
        if (how & ENTERED_SUBMIT)
                done.count = result > 0 ? result : 0;
        if (how & ENTERED_FUTEX_WAKE && result > 0)
                done.bytes = result;
        (void) call_add(st, &st->entered, READ_ONCE(st->entered_address), READ_ONCE(st->entered_file), &done);
        st->opened_file = 0;
        return 0;
}
