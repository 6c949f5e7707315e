// SPDX-License-Identifier: GPL-2.0-only
/* The kernel side as one unit: bpftool 7.1 does not link objects that call the same function of the kernel. */
#include "maps.bpf.c"
#include "sched.bpf.c"
#include "threads.bpf.c"
#include "calls.bpf.c"
#include "hints.bpf.c"
#include "file.bpf.c"
#include "object.bpf.c"
#include "subject.bpf.c"
#include "block.bpf.c"
