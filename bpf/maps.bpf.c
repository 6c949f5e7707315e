// SPDX-License-Identifier: GPL-2.0-only
/* Defines what maps.bpf.h and subject.bpf.h declare. The linker wants definitions of maps before their use. */
#include "subject.bpf.h"

const volatile struct prism_settings settings = {};
struct prism_control control = {};
__u64 losses[_PRISM_LOSS_MAX] = {};
__u64 next_thread = 0;
__u32 next_slot = 0;

struct threads_map threads SEC(".maps");
struct thread_info_map thread_info SEC(".maps");
struct thread_time_map thread_time SEC(".maps");
struct free_slots_map free_slots SEC(".maps");
struct slices_map slices SEC(".maps");
struct events_map events SEC(".maps");
struct objects_map objects SEC(".maps");
struct object_scratch_map object_scratch SEC(".maps");
struct works_map works SEC(".maps");

/* Their inner maps are made by prismd (the linker of libbpf 1.1 loses static ones). */
struct wait_generations_map wait_generations SEC(".maps");
struct instead_generations_map instead_generations SEC(".maps");
struct call_generations_map call_generations SEC(".maps");

char LICENSE[] SEC("license") = "GPL";
