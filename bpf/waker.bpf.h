/* SPDX-License-Identifier: GPL-2.0-only */
/* Who ends a wait: the running thread, or, in an interrupt that only happens to interrupt it, `irq` or `timer`. */
#ifndef PRISM_WAKER_H
#define PRISM_WAKER_H

#include "resource.bpf.h"

/* A packet to a socket of the same host is delivered in a softirq that the sender's own call runs. So if the thread that is
 * interrupted is in a call (*c) on the socket at the other end, it is the waker and not a bystander. `ports` are those of the
 * socket that the sleeper waits on, or of the watched one; of a set that of the `item`. Defined in file.bpf.c. */
extern __noinline int is_other_end(__u32 ports, __u64 item, struct call *c);

#define HRTIMER_CLOCK_BASES 8 /* four that expire in hard interrupts, four in softirq */
#define TIMER_BASES_MAX 3

/* Whether this CPU is running the callback of a timer now, in the part of the timer code that `hard` chooses. */
static __always_inline bool timer_is_running(const char *rq, bool hard) {
        int i;

        if (settings.has_hrtimer_bases) {
                const char *base = rq + settings.hrtimer_bases_offset +
                                bpf_core_field_offset(struct hrtimer_cpu_base, clock_base);

                for (i = 0; i < HRTIMER_CLOCK_BASES / 2; i++) {
                        int n = hard ? i : i + HRTIMER_CLOCK_BASES / 2;

                        if (KERNEL_READ_AT(__u64,
                                            base + n * bpf_core_type_size(struct hrtimer_clock_base) +
                                                            bpf_core_field_offset(struct hrtimer_clock_base, running)))
                                return true;
                }
        }
        if (!hard && settings.has_timer_bases) {
                const char *base = rq + settings.timer_bases_offset;

                for (i = 0; i < TIMER_BASES_MAX; i++) {
                        if (i >= settings.timer_bases_number)
                                break;
                        if (KERNEL_READ_AT(__u64,
                                            base + i * bpf_core_type_size(struct timer_base) +
                                                            bpf_core_field_offset(struct timer_base, running_timer)))
                                return true;
                }
        }
        return false;
}

static __always_inline __u8 waker_context(struct task_struct *current, struct thread_state *st) {
        const char *rq;
        __u32 count = interrupt_count(current);
        bool hard;

        if (!count)
                return PRISM_WAKER_THREAD;
        rq = (const char *) current->se.cfs_rq->rq;

        hard = count & (NMI_MASK | HARDIRQ_MASK);
        if (!hard) {
                __u64 item = st->via.kind == VIA_UNIDENTIFIED ? st->via.item : 0;
                __u32 ports = st->resource.kind == PRISM_KIND_INET ? st->ports
                                : st->via.kind == PRISM_KIND_INET  ? st->via.ports
                                                                   : 0;
                struct call c = {};

                if ((item || ports) && call_read(current, &c) && call_class(&c) == SYSCALL_DESCRIPTOR &&
                                is_other_end(ports, item, &c))
                        return PRISM_WAKER_THREAD;
        }
        return timer_is_running(rq, hard) ? PRISM_WAKER_TIMER : PRISM_WAKER_IRQ;
}

/* A vector of futexes was waited for: the waker's own call tells which one it was. */
static __always_inline void waitv_identify(struct task_struct *current, struct thread_state *st) {
        struct call c = {};
        bool private;

        if (!call_read(current, &c))
                return;
        switch (call_class(&c)) {
        case SYSCALL_FUTEX:
                if (!futex_command_wakes(c.arguments[1]))
                        return;
                private = c.arguments[1] & FUTEX_PRIVATE_FLAG;
                break;
        case SYSCALL_FUTEX2_WAKE:
                private
                = c.arguments[3] & FUTEX2_PRIVATE;
                break;
        default:
                return;
        }
        st->resource.op = PRISM_OP_FUTEX_WAITV;
        st->user_address = c.arguments[0];
        st->resource.space = address_space(current);
        st->resource.address = c.arguments[0];
        st->resource.shared = PRISM_FUTEX_PRIVATE;
        if (!private)
                futex_look_at_mapping(current, true, c.arguments[0], &st->resource);
}

/* Notes in the wakee's state who wakes it. A tracked waker is found again by its number and start; of others the rest
 * is kept too, since nobody else may know them. */
static __always_inline void waker_note(struct task_struct *task, struct thread_state *st) {
        struct task_struct *current = bpf_get_current_task_btf();
        struct thread_state *waker;

        /* A wake that is ahead of the switch belongs to a wait that is not known yet: the switch will ask. */
        st->via.kind = PRISM_KIND_NONE;
        if (st->state >= PRISM_STATE_SLEEP && st->resource.kind == PRISM_KIND_EPOLL)
                (void) epoll_via(st, false);
        else if (st->state >= PRISM_STATE_SLEEP && st->resource.kind == PRISM_KIND_POLL)
                (void) poll_via(READ_ONCE(st->task), st,
                                task->thread_info.flags & TIF_SIGPENDING ||
                                                waker_context(current, st) == PRISM_WAKER_TIMER,
                                false);
        st->waker_kind = waker_context(current, st);
        if (st->waker_kind != PRISM_WAKER_THREAD)
                return;

        waker = state_of(current);
        if (waker) {
                st->waker_tid = 0;
                st->waker = waker->thread;
        } else if (st->waker_tid != current->pid || st->waker != current->start_boottime) {
                /* Whoever woke it the last time is known already. */
                st->waker_tid = current->pid;
                st->waker_tgid = current->tgid;
                st->waker = current->start_boottime;
                st->waker_user_tgid = user_process_number(current);
                st->waker_user_tid = user_number(current);
                st->waker_process_start_ns = current->group_leader->start_boottime;
                bpf_probe_read_kernel_str(st->waker_comm, sizeof(st->waker_comm), current->comm);
        }
        if (st->state >= PRISM_STATE_SLEEP && st->resource.kind == PRISM_KIND_FUTEX &&
                        st->resource.op == PRISM_OP_FUTEX_WAITV_ANY)
                waitv_identify(current, st);
}

#endif
