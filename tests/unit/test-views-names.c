/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* store/views.sql, the views that say what things are: sockets and their peers, processes and containers, and the names
 * of numbers. The others: test-views.c. */
#include <linux/magic.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "views.h"

static void write_sockets(Store *s) {
        write_row(s, socket,
                        &(BatchSocket){ .resource_key = UNIX_SERVER,
                                        .family = AF_UNIX,
                                        .type = SOCK_STREAM,
                                        .path = "/run/server",
                                        .peer_resource_key = UNIX_CLIENT });
        write_row(s, socket, &(BatchSocket){ .resource_key = UNIX_CLIENT, .family = AF_UNIX, .type = SOCK_STREAM });
        write_row(s, socket,
                        &(BatchSocket){ .resource_key = TCP_SERVER,
                                        .family = AF_INET,
                                        .type = SOCK_STREAM,
                                        .protocol = IPPROTO_TCP,
                                        .netns = 4026531840,
                                        .local_addr = "127.0.0.1",
                                        .local_port = 5432,
                                        .remote_addr = "127.0.0.1",
                                        .remote_port = 40112,
                                        .peer_resource_key = TCP_CLIENT });
        write_row(s, socket,
                        &(BatchSocket){ .resource_key = TCP_CLIENT,
                                        .family = AF_INET,
                                        .type = SOCK_STREAM,
                                        .protocol = IPPROTO_TCP,
                                        .netns = 4026531840,
                                        .local_addr = "127.0.0.1",
                                        .local_port = 40112,
                                        .remote_addr = "127.0.0.1",
                                        .remote_port = 5432,
                                        .peer_resource_key = TCP_SERVER });
        write_row(s, socket,
                        &(BatchSocket){ .resource_key = TCP_LISTEN,
                                        .family = AF_INET,
                                        .type = SOCK_STREAM,
                                        .protocol = IPPROTO_TCP,
                                        .netns = 4026531840,
                                        .local_addr = "0.0.0.0",
                                        .local_port = 5432,
                                        .remote_addr = "0.0.0.0" });
        write_row(s, socket,
                        &(BatchSocket){ .resource_key = TCP_AWAY,
                                        .family = AF_INET6,
                                        .type = SOCK_STREAM,
                                        .protocol = IPPROTO_TCP,
                                        .netns = 4026531840,
                                        .local_addr = "fd00::1",
                                        .local_port = 9,
                                        .remote_addr = "fd00::2",
                                        .remote_port = 80 });
}

START_TEST(test_socket_context) {
        _cleanup_(store_closep) Store *s = open_described();

        write_sockets(s);
        assert_answer(s,
                        "SELECT sc.machine_id, sc.inode_id, fdesc.const_name, tdesc.const_name, pdesc.const_name "
                        "FROM socket_context sc "
                        "LEFT JOIN linux_consts fdesc ON fdesc.const_type = 'socket_family' AND fdesc.value = "
                        "sc.family "
                        "LEFT JOIN linux_consts tdesc ON tdesc.const_type = 'socket_type' AND tdesc.value = sc.type "
                        "LEFT JOIN linux_consts pdesc ON pdesc.const_type = 'family_protocol' "
                        "AND pdesc.value = sc.protocol WHERE sc.inode_id IN (51, 54, 61) ORDER BY sc.inode_id",
                        "4000000000 51 AF_INET SOCK_STREAM IPPROTO_TCP; "
                        "4000000000 54 AF_INET6 SOCK_STREAM IPPROTO_TCP; "
                        "4000000000 61 AF_UNIX SOCK_STREAM IPPROTO_IP");
        ck_assert_int_eq(number(s, "SELECT count(*) FROM socket_context"), 6);
}
END_TEST

START_TEST(test_socket_inet) {
        _cleanup_(store_closep) Store *s = open_described();

        write_sockets(s);
        assert_answer(s,
                        "SELECT inode_id, netns_cookie, src_address, src_port, dst_address, dst_port, "
                        "CASE WHEN dst_address NOT IN ('0', '::') THEN 'connected' ELSE 'listen' END "
                        "FROM socket_inet WHERE machine_id = {{ machine_id }} ORDER BY inode_id",
                        "51 4026531840 127.0.0.1 5432 127.0.0.1 40112 connected; "
                        "52 4026531840 127.0.0.1 40112 127.0.0.1 5432 connected; "
                        "53 4026531840 0.0.0.0 5432 0 0 listen; "
                        "54 4026531840 fd00::1 9 fd00::2 80 connected");
        execute(s, "UPDATE socket SET local_addr = NULL, remote_addr = NULL");
        assert_answer(s, "SELECT DISTINCT src_address, dst_address FROM socket_inet ORDER BY 1", "0.0.0.0 0; :: ::");
}
END_TEST

/* Which processes talk over unix sockets. */
START_TEST(test_socket_map) {
        _cleanup_(store_closep) Store *s = open_described();

        write_sockets(s);
        write_wait(s, MAIN, UNIX_SERVER, "receive", 1000, 1000, 1, 100, 5);
        write_wait(s, OTHER, UNIX_CLIENT, "send", 1000, 1000, 1, 100, 5);
        assert_answer(s, "SELECT * FROM socket_map ORDER BY sock1_inode_id", "4000000000 61 62; 4000000000 62 61");
        assert_answer(s,
                        "WITH pid_sock AS (SELECT DISTINCT machine_id, pid, inode_id FROM vfs "
                        "LEFT JOIN linux_consts lc ON vfs.fs_magic = lc.value AND lc.const_type = 'fs_magic' "
                        "WHERE lc.const_name = 'SOCKFS_MAGIC') "
                        "SELECT l.pid, r.pid, COUNT(*) AS connections FROM socket_map us "
                        "INNER JOIN pid_sock l ON us.machine_id = l.machine_id AND us.sock1_inode_id = l.inode_id "
                        "INNER JOIN pid_sock r ON us.machine_id = r.machine_id AND us.sock2_inode_id = r.inode_id "
                        "GROUP BY 1, 2 ORDER BY 1",
                        "77 1302804 1; 1302804 77 1");
}
END_TEST

START_TEST(test_tcp_discovery) {
        _cleanup_(store_closep) Store *s = open_described();

        write_sockets(s);
        write_row(s, socket_sample,
                        &(BatchSocketSample){
                                        .ts_ns = START + 2 * SECOND, .dt_ns = SECOND, .resource_key = TCP_SERVER });
        write_row(s, socket_sample,
                        &(BatchSocketSample){ .ts_ns = START + SECOND, .dt_ns = SECOND, .resource_key = TCP_SERVER });
        /* Only other programs write what is known of other machines. */
        execute(s, "INSERT INTO machine VALUES (5, 'away', '6.1', 'x86_64', 1)");
        execute(s, "INSERT INTO boot VALUES (100, 5, 'ffffffffffffffffffffffffffffffff')");
        execute(s, "INSERT INTO resource VALUES (1000, 5, 100, 'inet', 'inode:900', NULL)");
        execute(s,
                        "INSERT INTO socket (resource_id, family, type, protocol, cookie, peer_machine_id, "
                        "peer_cookie) "
                        "VALUES (1000, 10, 1, 6, 4711, 6, 4712)");
        execute(s, "INSERT INTO resource VALUES (1001, 5, 100, 'inet', 'inode:901', NULL)");
        execute(s, "INSERT INTO socket (resource_id, family, type, protocol, cookie) VALUES (1001, 10, 1, 6, 4713)");
        execute(s, "UPDATE socket SET peer_machine_id = 5, peer_cookie = 4711 WHERE remote_port = 80");

        assert_answer(s,
                        "SELECT local_machine_id, local_inode_id, remote_machine_id, remote_inode_id, inserted_at "
                        "FROM tcp_discovery ORDER BY local_inode_id",
                        "4000000000 51 4000000000 52 2026-11-30 11:02:11.000000; "
                        "4000000000 52 4000000000 51 NULL; 4000000000 54 5 900 NULL; 5 900 6 0 NULL");
        /* Connections whose other end is not known. */
        assert_answer(s,
                        "SELECT si.inode_id FROM socket_inet si LEFT JOIN (SELECT * FROM tcp_discovery "
                        "WHERE remote_machine_id <> 0 AND remote_inode_id <> 0) td "
                        "ON si.machine_id = td.local_machine_id AND si.inode_id = td.local_inode_id "
                        "WHERE td.local_inode_id IS NULL ORDER BY 1",
                        "53; 900; 901");
}
END_TEST

/* The three views that give processes their service names. */
static void write_containers(Store *s) {
        execute(s, "UPDATE process SET container_id = 'aa', container_name = 'db' WHERE pid = 1302804");
        execute(s,
                        "UPDATE process SET container_id = 'bb', container_name = 'web', pod = 'web-1', "
                        "namespace = 'shop' WHERE pid = 77");
}

START_TEST(test_process_context) {
        _cleanup_(store_closep) Store *s = open_described();

        write_time(s, MAIN, START + SECOND, SECOND);
        write_time(s, OTHER, START + SECOND, SECOND);
        assert_answer(s, "SELECT pid, cgroup, argv, exe FROM process_context WHERE {{ pid_filter }}",
                        "1302804 /system.slice/docker-aa.scope server --port 5432 /usr/bin/server");
        /* Those that are only named have none. */
        ck_assert_int_eq(number(s, "SELECT count(*) FROM process_context"), 2);
        write_containers(s);
        execute(s, "UPDATE process SET container_id = NULL, pod = NULL WHERE pid = 1302804");
        assert_answer(s,
                        "SELECT DISTINCT COALESCE(k.pod_name, d.name, tv.comm) AS service_name, pc.pid, pc.exe "
                        "FROM process_context pc LEFT JOIN docker d USING (machine_id, cgroup) "
                        "LEFT JOIN k8s k USING (machine_id, cgroup) "
                        "LEFT JOIN (SELECT DISTINCT machine_id, pid, tid, comm FROM taskstats_view WHERE pid = tid) tv "
                        "ON pc.pid = tv.pid AND pc.machine_id = tv.machine_id ORDER BY pc.pid",
                        "web-1 77 NULL; server 1302804 /usr/bin/server");
}
END_TEST

START_TEST(test_docker) {
        _cleanup_(store_closep) Store *s = open_described();

        ck_assert_int_eq(number(s, "SELECT count(*) FROM docker"), 0);
        write_containers(s);
        assert_answer(s,
                        "SELECT pc.pid, d.id, d.name, d.image_name FROM process_context pc "
                        "JOIN docker d USING (machine_id, cgroup)",
                        "1302804 aa db NULL");
}
END_TEST

START_TEST(test_k8s) {
        _cleanup_(store_closep) Store *s = open_described();

        ck_assert_int_eq(number(s, "SELECT count(*) FROM k8s"), 0);
        write_containers(s);
        assert_answer(s,
                        "SELECT pc.pid, k.id, k.namespace, k.pod_name, k.container_name FROM process_context pc "
                        "JOIN k8s k USING (machine_id, cgroup)",
                        "77 bb shop web-1 web");
}
END_TEST

START_TEST(test_linux_consts) {
        static const struct {
                const char *type, *name;
                int64_t value;
        } known[] = {
                { "socket_family", "AF_UNIX", AF_UNIX },
                { "socket_family", "AF_INET6", AF_INET6 },
                { "socket_family", "AF_VSOCK", AF_VSOCK },
                { "socket_type", "SOCK_STREAM", SOCK_STREAM },
                { "socket_type", "SOCK_SEQPACKET", SOCK_SEQPACKET },
                { "family_protocol", "IPPROTO_IP", IPPROTO_IP },
                { "family_protocol", "IPPROTO_TCP", IPPROTO_TCP },
                { "family_protocol", "IPPROTO_UDP", IPPROTO_UDP },
                { "fs_magic", "SOCKFS_MAGIC", SOCKFS_MAGIC },
                { "fs_magic", "PIPEFS_MAGIC", PIPEFS_MAGIC },
                { "fs_magic", "BTRFS_SUPER_MAGIC", BTRFS_SUPER_MAGIC },
        };
        _cleanup_(store_closep) Store *s = open_store(NULL);

        for (size_t i = 0; i < ELEMENTSOF(known); i++) {
                char sql[160];

                (void) snprintf(sql, sizeof(sql),
                                "SELECT value FROM linux_consts WHERE const_type = '%s' AND const_name = '%s'",
                                known[i].type, known[i].name);
                ck_assert_msg(number(s, sql) == known[i].value, "%s", known[i].name);
        }
        /* Two names of one number would double what is joined with them. */
        assert_answer(s,
                        "SELECT const_type, value FROM linux_consts WHERE const_type <> 'fs_magic' "
                        "GROUP BY 1, 2 HAVING count(*) > 1",
                        "");
        assert_answer(s, "SELECT const_name FROM linux_consts GROUP BY const_type, const_name HAVING count(*) > 1", "");
}
END_TEST

int main(void) {
        Suite *suite = suite_create("views-names");
        TCase *tests = tcase_create("views-names");

        tcase_add_test(tests, test_socket_context);
        tcase_add_test(tests, test_socket_inet);
        tcase_add_test(tests, test_socket_map);
        tcase_add_test(tests, test_tcp_discovery);
        tcase_add_test(tests, test_process_context);
        tcase_add_test(tests, test_docker);
        tcase_add_test(tests, test_k8s);
        tcase_add_test(tests, test_linux_consts);
        suite_add_tcase(suite, tests);
        return run_suite(suite);
}
