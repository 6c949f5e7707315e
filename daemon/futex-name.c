/* SPDX-License-Identifier: LGPL-2.1-or-later */
#include "futex-name.h"

#include <dirent.h>
#include <fcntl.h>
#include <gelf.h>
#include <libelf.h>

#include "proc.h"

#define MAPS_LIMIT (4 * 1024 * 1024)
#define SYMBOLS_LIMIT (32 * 1024 * 1024) /* bytes of a symbol table, and of its names */
#define SYMBOL_TABLES_LIMIT 2            /* .symtab and .dynsym */
#define STACKS_LIMIT 256                 /* threads whose stack pointer is read to find the owner of a mapping */

bool mapping_parse(char *line, Mapping *ret) {
        unsigned long long start, end, offset, inode;
        unsigned major, minor;
        char permissions[5] = "";
        int n = 0;

        if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu%n", &start, &end, permissions, &offset, &major, &minor, &inode,
                            &n) < 7 ||
                        n == 0)
                return false;
        line += n;
        *ret = (Mapping){
                .start = start,
                .end = end,
                .offset = offset,
                .inode = inode,
                .device = (uint64_t) major << 20 | minor,
                .shared = permissions[3] == 's',
                .path = line + strspn(line, " "),
        };
        return true;
}

/* Whether the tables of an ELF file are of the size that programs have: libelf takes memory for as many as the file claims to
 * hold when their numbers do not fit into the header, and the file is the target's. */
static bool elf_is_modest(int fd) {
        union {
                unsigned char ident[EI_NIDENT];
                Elf32_Ehdr narrow;
                Elf64_Ehdr wide;
        } h;

        if (pread(fd, &h, sizeof(h), 0) != sizeof(h) || memcmp(h.ident, ELFMAG, SELFMAG) != 0)
                return false;
        if (h.ident[EI_CLASS] == ELFCLASS32)
                return h.narrow.e_shnum > 0 && h.narrow.e_phnum != PN_XNUM;
        return h.wide.e_shnum > 0 && h.wide.e_phnum != PN_XNUM;
}

/* The address as the file was linked. A page can hold the end of one segment and the beginning of the next, so the byte itself tells
 * which it is; behind the bytes of the file (.bss), a segment that is larger in memory and can be written. */
static bool elf_address(Elf *elf, uint64_t offset, bool behind_file, uint64_t *ret) {
        size_t n = 0;

        if (elf_getphdrnum(elf, &n) != 0)
                return false;
        for (int in_memory = behind_file; in_memory <= 1; in_memory++)
                for (size_t i = 0; i < n; i++) {
                        GElf_Phdr segment;

                        if (!gelf_getphdr(elf, (int) i, &segment) || segment.p_type != PT_LOAD ||
                                        offset < segment.p_offset)
                                continue;
                        if (in_memory && (!(segment.p_flags & PF_W) || offset - segment.p_offset < segment.p_filesz))
                                continue;
                        if (offset - segment.p_offset >= (in_memory ? segment.p_memsz : segment.p_filesz))
                                continue;
                        *ret = segment.p_vaddr + (offset - segment.p_offset);
                        return true;
                }
        return false;
}

static bool section_is_modest(Elf_Scn *section) {
        GElf_Shdr header;

        return gelf_getshdr(section, &header) && header.sh_size <= SYMBOLS_LIMIT;
}

/* The data symbol that covers a place in an ELF file, which is counted from the first byte of a mapping of it. The file is read and
 * not mapped: its owner could cut it meanwhile, and that would be our end. */
static char *elf_symbol(int fd, uint64_t file_offset, bool behind_file, uint64_t distance) {
        _cleanup_free_ char *best = NULL;
        Elf_Scn *section = NULL;
        uint64_t address = 0;
        unsigned tables = 0;
        bool found;
        Elf *elf;

        if (elf_version(EV_CURRENT) == EV_NONE || !elf_is_modest(fd))
                return NULL;
        elf = elf_begin(fd, ELF_C_READ, NULL);
        if (!elf)
                return NULL;
        found = elf_address(elf, file_offset + distance, behind_file, &address);

        while (found && !best && tables < SYMBOL_TABLES_LIMIT && (section = elf_nextscn(elf, section))) {
                GElf_Shdr header;
                Elf_Data *data;

                if (!gelf_getshdr(section, &header) || (header.sh_type != SHT_SYMTAB && header.sh_type != SHT_DYNSYM) ||
                                header.sh_entsize < sizeof(Elf32_Sym))
                        continue;
                tables++;
                if (!section_is_modest(section) || !section_is_modest(elf_getscn(elf, header.sh_link)))
                        continue;
                data = elf_getdata(section, NULL);
                for (size_t i = 0; data && i < header.sh_size / header.sh_entsize; i++) {
                        const char *name;
                        GElf_Sym symbol;

                        if (!gelf_getsym(data, (int) i, &symbol) || GELF_ST_TYPE(symbol.st_info) != STT_OBJECT ||
                                        address < symbol.st_value || address >= symbol.st_value + symbol.st_size)
                                continue;
                        name = elf_strptr(elf, header.sh_link, symbol.st_name);
                        if (!name || name[0] == '\0')
                                continue;
                        if (address == symbol.st_value)
                                best = strdup(name);
                        else if (asprintf(&best, "%s+0x%llx", name, (unsigned long long) (address - symbol.st_value)) <
                                        0)
                                best = NULL;
                        break;
                }
        }
        elf_end(elf);
        return TAKE_PTR(best);
}

static char *file_name(uint32_t pid, const char *path, uint64_t offset, bool behind_file, uint64_t distance) {
        _cleanup_free_ char *rooted = NULL, *symbol = NULL;
        _cleanup_close_ int fd = -1;
        char *name = NULL;

        if (asprintf(&rooted, "/proc/%u/root%s", pid, path) < 0)
                return NULL;
        /* Not waiting for a writer, in case the target put a FIFO where its program was. */
        fd = open(rooted, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
        if (fd >= 0)
                symbol = elf_symbol(fd, offset, behind_file, distance);
        if (symbol) {
                if (asprintf(&name, "%s:%s", path, symbol) < 0)
                        return NULL;
        } else if (asprintf(&name, "%s+0x%llx", path, (unsigned long long) (offset + distance)) < 0)
                return NULL;
        return name;
}

/* The thread whose stack pointer lies in the mapping. */
static char *stack_name(uint32_t pid, const Mapping *m, uint64_t address) {
        char path[64], *name = NULL;
        struct dirent *entry;
        unsigned looked_at = 0;
        DIR *d;

        snprintf(path, sizeof(path), "/proc/%u/task", pid);
        d = opendir(path);
        if (!d)
                return NULL;
        while (!name && looked_at++ < STACKS_LIMIT && (entry = readdir(d))) {
                _cleanup_free_ char *text = NULL, *comm = NULL;
                char file[sizeof(path) + sizeof(entry->d_name) + 16];
                unsigned long long pointer;
                const char *last;

                if (entry->d_name[0] == '.')
                        continue;
                /* "NUMBER ARGUMENTS... SP PC", "-1 SP PC", or "running" */
                snprintf(file, sizeof(file), "%s/%s/syscall", path, entry->d_name);
                if (read_file(file, 512, &text, NULL) < 0)
                        continue;
                last = strrchr(text, ' ');
                while (last && last > text && last[-1] != ' ')
                        last--;
                if (!last || sscanf(last, "%llx", &pointer) != 1 || pointer < m->start || pointer >= m->end)
                        continue;
                snprintf(file, sizeof(file), "%s/%s/comm", path, entry->d_name);
                if (read_file(file, 64, &comm, NULL) < 0)
                        continue;
                comm[strcspn(comm, "\n")] = '\0';
                if (asprintf(&name, "stack of %s/%s -0x%llx", comm, entry->d_name,
                                    (unsigned long long) (m->end - address)) < 0)
                        name = NULL;
        }
        closedir(d);
        return name;
}

char *futex_name(uint32_t pid, uint64_t address) {
        _cleanup_free_ char *text = NULL, *stack = NULL;
        Mapping m, file = {};
        char path[64], *save = NULL, *name = NULL;
        bool found = false;

        snprintf(path, sizeof(path), "/proc/%u/maps", pid);
        if (read_file(path, MAPS_LIMIT, &text, NULL) < 0)
                return NULL;
        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save)) {
                if (!mapping_parse(line, &m))
                        continue;
                if (address >= m.start && address < m.end) {
                        found = true;
                        break;
                }
                if (m.path[0] == '/')
                        file = m;
                else if (m.path[0] != '\0' || m.start != file.end)
                        file = (Mapping){};
        }
        if (!found)
                return NULL;

        unsigned long long distance = address - m.start;

        if (m.shared && startswith(m.path, "/dev/zero")) {
                if (asprintf(&name, "shared memory+0x%llx", (unsigned long long) m.offset + distance) < 0)
                        return NULL;
        } else if (m.path[0] == '/' && m.shared) {
                if (asprintf(&name, "%s+0x%llx", m.path, (unsigned long long) m.offset + distance) < 0)
                        return NULL;
        } else if (m.path[0] == '/')
                name = file_name(pid, m.path, m.offset, false, distance);
        else if (m.path[0] == '\0' && file.path && m.start == file.end)
                /* The end of .bss lies in anonymous memory behind the mapping of the file. */
                name = file_name(pid, file.path, file.offset, true, address - file.start);
        else if (m.path[0] != '\0') {
                if (asprintf(&name, "%s+0x%llx", m.path, distance) < 0)
                        return NULL;
        } else {
                stack = stack_name(pid, &m, address);
                if (stack)
                        name = TAKE_PTR(stack);
                else if (asprintf(&name, "anonymous memory 0x%llx", (unsigned long long) address) < 0)
                        return NULL;
        }
        return name;
}

int futex_is_private(uint32_t pid, uint64_t address) {
        _cleanup_free_ char *text = NULL;
        char path[64], *save = NULL;
        Mapping m;

        snprintf(path, sizeof(path), "/proc/%u/maps", pid);
        if (read_file(path, MAPS_LIMIT, &text, NULL) < 0)
                return -ESRCH;
        for (char *line = strtok_r(text, "\n", &save); line; line = strtok_r(NULL, "\n", &save))
                if (mapping_parse(line, &m) && address >= m.start && address < m.end)
                        return !m.shared;
        return -ESRCH;
}
