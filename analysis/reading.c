/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Objects are described by prepared queries, once each. */
#include "reading.h"

/* The kernel's own number of kthreadd, the parent of all kernel threads. */
#define KTHREADD_PID 2

int reading_begin(Store *s, int64_t start_ns, int64_t end_ns, const char *target, Reading **ret, char **ret_error) {
        _cleanup_(reading_freep) Reading *r = NULL;

        r = calloc(1, sizeof(*r));
        if (!r)
                return -ENOMEM;
        r->store = s;
        r->start_ns = start_ns;
        r->end_ns = end_ns;
        r->target = target;
        r->machines = TALLY(Machine);
        r->processes = TALLY(Process);
        r->threads = TALLY(Thread);
        r->resources = TALLY(Resource);

        if (sqlite3_exec(store_database(s), "BEGIN", NULL, NULL, NULL) != SQLITE_OK)
                return statement_error(s, ret_error);
        r->is_open = true;

        *ret = TAKE_PTR(r);
        return 0;
}

void reading_end(Reading *r) {
        sqlite3_stmt **statements[] = {
                &r->describe_machine,
                &r->describe_process,
                &r->describe_thread,
                &r->describe_resource,
        };

        for (size_t i = 0; i < ELEMENTSOF(statements); i++) {
                sqlite3_finalize(*statements[i]);
                *statements[i] = NULL;
        }
        if (r->is_open)
                sqlite3_exec(store_database(r->store), "ROLLBACK", NULL, NULL, NULL);
        r->is_open = false;
}

Reading *reading_free(Reading *r) {
        if (!r)
                return NULL;

        reading_end(r);
        for (size_t i = 0; i < r->machines.n; i++) {
                Machine *m = r->machines.objects[i];

                free(m->hostname);
                free(m->kernel);
        }
        for (size_t i = 0; i < r->processes.n; i++) {
                Process *p = r->processes.objects[i];

                free(p->comm);
                free(p->cmdline);
                free(p->unit);
                free(p->target);
        }
        for (size_t i = 0; i < r->threads.n; i++)
                free(((Thread *) r->threads.objects[i])->comm);
        for (size_t i = 0; i < r->resources.n; i++) {
                Resource *o = r->resources.objects[i];

                free(o->kind);
                free(o->ident);
                free(o->name);
        }
        for (size_t i = 0; i < r->n_words; i++)
                free(r->words[i]);

        tally_done(&r->machines);
        tally_done(&r->processes);
        tally_done(&r->threads);
        tally_done(&r->resources);
        free(r->words);
        free(r);
        return NULL;
}

void share_times_add(ShareTimes *sum, const ShareTimes *t) {
        sum->total_ns += t->total_ns;
        sum->run_ns += t->run_ns;
        sum->runqueue_ns += t->runqueue_ns;
        sum->sleep_ns += t->sleep_ns;
        sum->block_ns += t->block_ns;
        sum->iowait_ns += t->iowait_ns;
        sum->throttled_ns += t->throttled_ns;
        sum->healed_ns += t->healed_ns;
        sum->switches += t->switches;
        sum->preemptions += t->preemptions;
}

bool reading_wants(const Reading *r, const Thread *t) {
        return !r->target || (t->process->target && streq(t->process->target, r->target));
}

bool reading_knows_resource(Reading *r, int64_t id) {
        return tally_find(&r->resources, &(TallyKey){ { (uint64_t) id } }) != NULL;
}

/* There are as many different words as the kernel has system calls at most, and few of them are used. */
int reading_word(Reading *r, const char *word, const char **ret) {
        char *copy;

        if (!word)
                word = "";

        for (size_t i = 0; i < r->n_words; i++)
                if (r->words[i][0] == word[0] && streq(r->words[i], word)) {
                        *ret = r->words[i];
                        return 0;
                }

        if (GROW(r->words, r->n_words, r->c_words) < 0)
                return -ENOMEM;
        copy = strdup(word);
        if (!copy)
                return -ENOMEM;
        *ret = r->words[r->n_words++] = copy;
        return 0;
}

/* The object of an id. 1: it is new, and *q stands at its description; 0: it is there, or new and not described. */
static int get(Reading *r, Tally *tally, int64_t id, sqlite3_stmt **q, const char *sql, void **ret, bool *ret_new,
                char **ret_error) {
        int k;

        k = tally_get(tally, &(TallyKey){ { (uint64_t) id } }, ret);
        if (k < 0)
                return k;
        *ret_new = k > 0;
        if (k == 0)
                return 0;

        if (!*q) {
                k = statement_prepare(r->store, sql, q, ret_error);
                if (k < 0)
                        return k;
        }
        sqlite3_bind_int64(*q, 1, id);
        return statement_step(r->store, *q, ret_error);
}

typedef struct TextColumn {
        int column;
        const char *instead_of_null;
        char **destination;
} TextColumn;

/* The last that is taken of a description, which ends here. */
static int copy_texts(sqlite3_stmt *q, bool described, const TextColumn *columns, size_t n) {
        int k = 0;

        for (size_t i = 0; i < n && k >= 0; i++) {
                const char *text = described ? (const char *) sqlite3_column_text(q, columns[i].column) : NULL;

                if (!text)
                        text = columns[i].instead_of_null;
                if (!text)
                        continue;
                *columns[i].destination = strdup(text);
                if (!*columns[i].destination)
                        k = -ENOMEM;
        }
        sqlite3_reset(q);
        return k;
}

static int read_machine(Reading *r, int64_t id, char **ret_error) {
        void *object;
        Machine *m;
        bool new;
        int k;

        k = get(r, &r->machines, id, &r->describe_machine, "SELECT hostname, kernel, cpus FROM machine WHERE id = ?1",
                        &object, &new, ret_error);
        if (k < 0 || !new)
                return k;

        m = object;
        m->id = id;
        if (k > 0)
                m->cpus = (unsigned) sqlite3_column_int(r->describe_machine, 2);
        return copy_texts(r->describe_machine, k > 0,
                        (const TextColumn[]){ { 0, "?", &m->hostname }, { 1, "?", &m->kernel } }, 2);
}

int reading_process(Reading *r, int64_t id, Process **ret, char **ret_error) {
        void *object;
        Process *p;
        bool new;
        int k;

        k = get(r, &r->processes, id, &r->describe_process,
                        "SELECT comm, cmdline, unit, target, machine_id, pid, host_pid, ppid FROM process WHERE id = "
                        "?1",
                        &object, &new, ret_error);
        if (k < 0)
                return k;
        p = object;
        if (!new) {
                *ret = p;
                return 0;
        }

        p->id = id;
        if (k > 0) {
                p->machine_id = sqlite3_column_int64(r->describe_process, 4);
                p->pid = sqlite3_column_int64(r->describe_process, 5);
                p->host_pid = sqlite3_column_int64(r->describe_process, 6);
                p->is_kernel = p->host_pid == KTHREADD_PID ||
                                sqlite3_column_int64(r->describe_process, 7) == KTHREADD_PID;
        }
        k = copy_texts(r->describe_process, k > 0,
                        (const TextColumn[]){ { 0, "?", &p->comm }, { 1, NULL, &p->cmdline }, { 2, NULL, &p->unit },
                                        { 3, NULL, &p->target } },
                        4);
        if (k >= 0 && p->machine_id != 0)
                k = read_machine(r, p->machine_id, ret_error);
        if (k < 0)
                return k;

        *ret = p;
        return 0;
}

int reading_thread(Reading *r, int64_t id, Thread **ret, char **ret_error) {
        int64_t process_id = 0;
        void *object;
        Thread *t;
        bool new;
        int k;

        /* Rows of one thread often follow each other. */
        if (r->last_thread && r->last_thread->id == id) {
                *ret = r->last_thread;
                return 0;
        }

        k = get(r, &r->threads, id, &r->describe_thread,
                        "SELECT comm, process_id, tid, host_tid FROM thread WHERE id = ?1", &object, &new, ret_error);
        if (k < 0)
                return k;
        t = object;
        if (new) {
                t->id = id;
                if (k > 0) {
                        process_id = sqlite3_column_int64(r->describe_thread, 1);
                        t->tid = sqlite3_column_int64(r->describe_thread, 2);
                        t->host_tid = sqlite3_column_int64(r->describe_thread, 3);
                }
                k = copy_texts(r->describe_thread, k > 0, (const TextColumn[]){ { 0, "?", &t->comm } }, 1);
                if (k < 0)
                        return k;
                k = reading_process(r, process_id, &t->process, ret_error);
                if (k < 0)
                        return k;
        }

        *ret = r->last_thread = t;
        return 0;
}

int reading_resource(Reading *r, int64_t id, Resource **ret, char **ret_error) {
        void *object;
        Resource *o;
        bool new;
        int k;

        k = get(r, &r->resources, id, &r->describe_resource, "SELECT kind, ident, name FROM resource WHERE id = ?1",
                        &object, &new, ret_error);
        if (k < 0)
                return k;
        o = object;
        if (new) {
                o->id = id;
                k = copy_texts(r->describe_resource, k > 0,
                                (const TextColumn[]){
                                                { 0, "?", &o->kind }, { 1, "?", &o->ident }, { 2, NULL, &o->name } },
                                3);
                if (k < 0)
                        return k;
        }

        *ret = o;
        return 0;
}
