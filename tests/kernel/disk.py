# SPDX-License-Identifier: LGPL-2.1-or-later
"""A disk with a volatile cache, served by the NBD protocol: when the power goes, what was written and not flushed is lost in
part, sector by sector and in no order, as disks may do it. (A file of the host would keep all of it: the host lives on.)"""

import pathlib
import random
import socket
import struct
import threading

SECTOR = 512

# The protocol, by its public specification.
INIT_MAGIC, OPTION_MAGIC, REPLY_MAGIC = 0x4E42444D41474943, 0x49484156454F5054, 0x0003E889045565A9
REQUEST_MAGIC, SIMPLE_REPLY_MAGIC = 0x25609513, 0x67446698
FIXED_NEWSTYLE, NO_ZEROES = 1, 2
OPTION_EXPORT_NAME, OPTION_ABORT, OPTION_GO = 1, 2, 7
REPLY_ACK, REPLY_INFO, REPLY_UNSUPPORTED = 1, 3, (1 << 31) + 1
INFO_EXPORT = 0
HAS_FLAGS, SEND_FLUSH, SEND_FUA = 1, 4, 8
READ, WRITE, DISCONNECT, FLUSH = 0, 1, 2, 3
FUA = 1
EINVAL = 22


class Disk:
    """The file `path` is what is safe. One connection at a time, from socket_path."""

    def __init__(self, path, socket_path):
        self.path = pathlib.Path(path)
        self.socket_path = str(socket_path)
        self.size = self.path.stat().st_size
        self.cache = {}  # sector number: what a flush would make safe
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.socket_path)
        self.listener.listen(1)
        self.file = open(self.path, "r+b")
        self.thread = threading.Thread(target=self._serve, daemon=True)
        self.thread.start()

    @property
    def address(self):
        """As qemu writes it."""
        return f"nbd:unix:{self.socket_path}"

    def cut_power(self):
        """After the machine is off. Yields how many sectors were in the cache, and how many of them were lost."""
        self.thread.join(30)
        held = sorted(self.cache)
        kept = [sector for sector in held if random.random() < 0.5]
        self._write_back(kept)
        lost = len(self.cache)
        self.cache.clear()
        return len(held), lost

    def close(self):
        """Without a cut it keeps all."""
        self.listener.close()
        if not self.file.closed:
            self._write_back(sorted(self.cache))
            self.file.close()

    def _serve(self):
        connection, _ = self.listener.accept()
        with connection, connection.makefile("rwb") as stream:
            try:
                self._negotiate(stream)
                while self._answer(stream):
                    pass
            except (EOFError, OSError):
                pass  # the machine is off

    def _negotiate(self, stream):
        stream.write(struct.pack(">QQH", INIT_MAGIC, OPTION_MAGIC, FIXED_NEWSTYLE | NO_ZEROES))
        stream.flush()
        read(stream, 4)
        flags = HAS_FLAGS | SEND_FLUSH | SEND_FUA
        while True:
            _, option, length = struct.unpack(">QII", read(stream, 16))
            read(stream, length)
            if option == OPTION_GO:
                info = struct.pack(">HQH", INFO_EXPORT, self.size, flags)
                stream.write(struct.pack(">QIII", REPLY_MAGIC, option, REPLY_INFO, len(info)) + info)
                stream.write(struct.pack(">QIII", REPLY_MAGIC, option, REPLY_ACK, 0))
                stream.flush()
                return
            if option == OPTION_EXPORT_NAME:
                stream.write(struct.pack(">QH", self.size, flags))
                stream.flush()
                return
            if option == OPTION_ABORT:
                raise EOFError
            stream.write(struct.pack(">QIII", REPLY_MAGIC, option, REPLY_UNSUPPORTED, 0))
            stream.flush()

    def _answer(self, stream):
        """One request; False after the last."""
        _, flags, kind, handle, offset, length = struct.unpack(">IHHQQI", read(stream, 28))
        data, error = b"", 0
        if kind == READ:
            data = self._read(offset, length)
        elif kind == WRITE:
            first = offset // SECTOR
            written = read(stream, length)
            for i in range(length // SECTOR):
                self.cache[first + i] = written[i * SECTOR:(i + 1) * SECTOR]
            if flags & FUA:
                self._write_back(range(first, first + length // SECTOR))
        elif kind == FLUSH:
            self._write_back(sorted(self.cache))
        elif kind == DISCONNECT:
            return False
        else:
            error = EINVAL
        stream.write(struct.pack(">IIQ", SIMPLE_REPLY_MAGIC, error, handle) + data)
        stream.flush()
        return True

    def _read(self, offset, length):
        self.file.seek(offset)
        data = bytearray(self.file.read(length))
        first = offset // SECTOR
        for i in range(length // SECTOR):
            if first + i in self.cache:
                data[i * SECTOR:(i + 1) * SECTOR] = self.cache[first + i]
        return bytes(data)

    def _write_back(self, sectors):
        for sector in sectors:
            self.file.seek(sector * SECTOR)
            self.file.write(self.cache.pop(sector))
        self.file.flush()


def read(stream, length):
    data = stream.read(length)
    if len(data) < length:
        raise EOFError
    return data
