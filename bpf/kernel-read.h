/* SPDX-License-Identifier: GPL-2.0-only */
/* Reading a field of a kernel object whose address is a mere number to the verifier: KERNEL_READ(pointer, field...), used as
 * BPF_CORE_READ() is. A read that faults gives 0.
 *
 * Where the kernel has bpf_rdonly_cast (6.2) it is a load of some 2 ns, else, with -DPRISM_PROBE_READS, a call of
 * bpf_probe_read_kernel() of some 20 ns; prismd has both and loads the one that fits. */
#ifndef PRISM_KERNEL_READ_H
#define PRISM_KERNEL_READ_H

#include "kernel.h"

#ifdef PRISM_PROBE_READS

#define kernel_load(size, address)                                             \
        ({                                                                     \
                __u64 _word = 0;                                               \
                                                                               \
                bpf_probe_read_kernel(&_word, size, (const void *) (address)); \
                _word;                                                         \
        })

#else

extern void *bpf_rdonly_cast(const void *object, __u32 type) __ksym;

/* A word is read as if it were in some structure that has one of this width: what is read so is a number again, which
 * global functions take and sums can be made of, also where it is a pointer. */
#define kernel_load_as(address, structure, field)                                                                    \
        (((structure *) bpf_rdonly_cast((const void *) ((__u64) (address) -bpf_core_field_offset(structure, field)), \
                          bpf_core_type_id_kernel(structure)))                                                       \
                                        ->field)
#define kernel_load(size, address)                                                                                 \
        ((size) == 8                                  ? (__u64) kernel_load_as(address, struct timespec64, tv_sec) \
                                        : (size) == 4 ? (__u32) kernel_load_as(address, struct upid, nr)           \
                                        : (size) == 2                                                              \
                                        ? (__u16) kernel_load_as(address, struct sockaddr_un, sun_family)          \
                                        : (__u8) kernel_load_as(address, struct in6_addr, in6_u.u6_addr8[0]))

#endif

#define KERNEL_READ_AT(type, address) ((type) kernel_load(sizeof(type), address))

#define kernel_read2(pointer, field)                                      \
        ((typeof((pointer)->field)) kernel_load(sizeof((pointer)->field), \
                        (__u64) (pointer) + bpf_core_field_offset(typeof(*(pointer)), field)))
#define kernel_read3(pointer, a, b) kernel_read2(kernel_read2(pointer, a), b)
#define kernel_read4(pointer, a, b, c) kernel_read2(kernel_read3(pointer, a, b), c)
#define KERNEL_READ(...) ___apply(kernel_read, ___narg(__VA_ARGS__))(__VA_ARGS__)

#endif
