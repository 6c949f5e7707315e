/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* prismd: options, and then the manager. */
#include <getopt.h>

#include "basic/parse.h"
#include "../dbus/names.h"
#include "log.h"
#include "manager.h"

#define ADDRESSES_MAX 16

static void usage(void) {
        printf("prismd [OPTIONS...]\n\n"
               "Records where the time of processes goes, and is driven over D-Bus (see prismctl).\n\n"
               "  --address ADDRESS    serve only there; repeatable. unix:path=/ABSOLUTE/PATH, or system\n"
               "                       for the system bus (default: the system bus if there is one, and\n"
               "                       " PRISM_DEFAULT_ADDRESS "; or PRISM_ADDRESS)\n"
               "  --state-dir DIR      where the database is (default: " PRISM_DEFAULT_STATE_DIR
               ", or PRISM_STATE_DIR)\n"
               "  --config FILE        settings (default: /etc/prism/prismd.conf if it is there)\n"
               "  --machine-id N       number of this machine in the database (default: from /etc/machine-id)\n"
               "  --log-level LEVEL    error, warning, info or debug (default: info)\n"
               "  --help --version\n\n"
               "It needs root, or CAP_BPF and CAP_PERFMON, and CAP_SYS_PTRACE and CAP_DAC_READ_SEARCH to name what\n"
               "other users' processes wait for. It stays in the foreground and ends at SIGTERM or SIGINT.\n");
}

/* Returns 1 to go on, 0 or -EINVAL when there is nothing more to do. */
static int parse_options(int argc, char *argv[], ManagerOptions *options, const char **addresses) {
        enum {
                OPTION_ADDRESS = 256,
                OPTION_STATE_DIR,
                OPTION_CONFIG,
                OPTION_MACHINE_ID,
                OPTION_LOG_LEVEL,
        };
        static const struct option longs[] = {
                { "address", required_argument, NULL, OPTION_ADDRESS },
                { "state-dir", required_argument, NULL, OPTION_STATE_DIR },
                { "config", required_argument, NULL, OPTION_CONFIG },
                { "machine-id", required_argument, NULL, OPTION_MACHINE_ID },
                { "log-level", required_argument, NULL, OPTION_LOG_LEVEL },
                { "help", no_argument, NULL, 'h' },
                { "version", no_argument, NULL, 'V' },
                {},
        };
        size_t n_addresses = 0;
        uint64_t number;
        int c, level;

        while ((c = getopt_long(argc, argv, "h", longs, NULL)) >= 0)
                switch (c) {
                case OPTION_ADDRESS:
                        if (n_addresses == ADDRESSES_MAX) {
                                log_error("at most %d addresses can be given", ADDRESSES_MAX);
                                return -EINVAL;
                        }
                        addresses[n_addresses++] = optarg;
                        break;
                case OPTION_STATE_DIR:
                        options->state_dir = optarg;
                        break;
                case OPTION_CONFIG:
                        options->config_file = optarg;
                        break;
                case OPTION_MACHINE_ID:
                        if (parse_u64(optarg, UINT32_MAX, &number) < 0 || number == 0) {
                                log_error("--machine-id wants a number from 1 to 4294967295, not \"%s\"", optarg);
                                return -EINVAL;
                        }
                        options->has_machine_id = true;
                        options->machine_id = (uint32_t) number;
                        break;
                case OPTION_LOG_LEVEL:
                        level = log_level_from_name(optarg);
                        if (level < 0) {
                                log_error("--log-level is error, warning, info or debug, not \"%s\"", optarg);
                                return -EINVAL;
                        }
                        log_set_level(level);
                        break;
                case 'h':
                        usage();
                        return 0;
                case 'V':
                        printf("prismd %s\n", PRISM_VERSION);
                        return 0;
                default:
                        return -EINVAL;
                }
        if (optind < argc) {
                log_error("prismd takes options only, not \"%s\"; see --help", argv[optind]);
                return -EINVAL;
        }
        if (n_addresses == 0 && !isempty(getenv("PRISM_ADDRESS")))
                addresses[n_addresses++] = getenv("PRISM_ADDRESS");
        return 1;
}

int main(int argc, char *argv[]) {
        static const char default_config[] = "/etc/prism/prismd.conf", default_drop_ins[] = "/etc/prism/prismd.conf.d";
        const char *addresses[ADDRESSES_MAX + 1] = {};
        _cleanup_(manager_freep) Manager *m = NULL;
        _cleanup_free_ char *error = NULL;
        ManagerOptions options = { .addresses = addresses };
        int r;

        options.state_dir = isempty(getenv("PRISM_STATE_DIR")) ? PRISM_DEFAULT_STATE_DIR : getenv("PRISM_STATE_DIR");
        if (access(default_config, F_OK) == 0 || access(default_drop_ins, F_OK) == 0)
                options.config_file = default_config;
        r = parse_options(argc, argv, &options, addresses);
        if (r <= 0)
                return r < 0 ? 2 : EXIT_SUCCESS;

        r = manager_new(&options, &m, &error);
        if (r < 0) {
                log_error("%s", error ?: strerror(-r));
                return EXIT_FAILURE;
        }
        r = manager_run(m);
        if (r < 0) {
                log_error("the event loop failed: %s", strerror(-r));
                return EXIT_FAILURE;
        }
        return EXIT_SUCCESS;
}
