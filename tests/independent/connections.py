#!/usr/bin/env python3
# SPDX-License-Identifier: LGPL-2.1-or-later
"""Many TCP connections over loopback, both ends here: a workload as those of tests/truth. Each moved something before it is
ready; after the go small ones exchange messages and big ones move megabytes. They stay open until it is told to end."""

import json
import os
import socket
import sys
import threading

SMALL, BIG = 150, 6
GROUPS = 15  # of small connections; one after the other in each, as a lost message takes a while
MESSAGE, MESSAGES = 300, 20
BULK = 8 << 20


def receive(one, size):
    while size > 0:
        size -= len(one.recv(min(size, 1 << 16)))


def exchange(pairs, messages):
    for pair in pairs:
        for _ in range(messages):
            for here, there in (pair, reversed(pair)):
                here.sendall(bytes(MESSAGE))
                receive(there, MESSAGE)


def move(pair):
    sender = threading.Thread(target=pair[0].sendall, args=(bytes(BULK),))
    sender.start()
    receive(pair[1], BULK)
    sender.join()


def together(threads):
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def main():
    with socket.create_server(("127.0.0.1", 0), backlog=SMALL + BIG) as listener:
        pairs = []
        for _ in range(SMALL + BIG):
            one = socket.create_connection(listener.getsockname())
            other, _ = listener.accept()
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            pairs.append((one, other))
            exchange(pairs[-1:], 1)
        print("ready", os.getpid(), flush=True)
        sys.stdin.readline()
        movers = [threading.Thread(target=move, args=(pair,)) for pair in pairs[SMALL:]]
        talkers = [threading.Thread(target=exchange, args=(pairs[i:SMALL:GROUPS], MESSAGES)) for i in range(GROUPS)]
        together(movers + talkers)
        print(json.dumps({"inodes": [os.fstat(one.fileno()).st_ino for pair in pairs for one in pair]}), flush=True)
        sys.stdin.readline()


if __name__ == "__main__":
    main()
