# SPDX-License-Identifier: LGPL-2.1-or-later
"""D-Bus by hand, for clients that behave badly: a connection to a private socket, and messages byte by byte."""

import os
import socket
import struct

PATH, INTERFACE = "/org/prism/Prism1", "org.prism.Prism1.Manager"
NO_OPTIONS = struct.pack("<I", 0) + b"\0" * 4  # an empty a{sv}: its length, and the padding before its first entry
METHOD_CALL, METHOD_RETURN, ERROR = 1, 2, 3


def _pad(data, to):
    return data + b"\0" * (-len(data) % to)


def _string(text):
    raw = text.encode()
    return struct.pack("<I", len(raw)) + raw + b"\0"


def message(member="GetStatus", serial=1, path=PATH, interface=INTERFACE, signature="a{sv}", body=NO_OPTIONS):
    """A method call, little endian."""
    fields = b""
    for code, kind, text in ((1, "o", path), (2, "s", interface), (3, "s", member)):
        fields = _pad(fields, 8) + bytes([code, 1]) + kind.encode() + b"\0" + _string(text)
    fields = _pad(fields, 8) + bytes([8, 1]) + b"g\0" + bytes([len(signature)]) + signature.encode() + b"\0"
    head = b"l" + bytes([METHOD_CALL, 0, 1]) + struct.pack("<III", len(body), serial, len(fields))
    return _pad(head + fields, 8) + body


class Connection:
    def __init__(self, path, timeout=20, authenticate=True):
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self.socket.settimeout(timeout)
        self.serial = 0
        self.buffer = b""
        try:
            self.socket.connect(path)
            if authenticate:
                self.authenticate()
        except BaseException:
            self.socket.close()
            raise

    def authenticate(self):
        self.socket.sendall(b"\0AUTH EXTERNAL " + str(os.geteuid()).encode().hex().encode() + b"\r\n")
        line = b""
        while not line.endswith(b"\r\n"):
            data = self.socket.recv(1)
            if not data:
                raise ConnectionResetError("closed during authentication")
            line += data
        if not line.startswith(b"OK "):
            raise ConnectionError(line)
        self.socket.sendall(b"BEGIN\r\n")

    def send(self, data):
        self.socket.sendall(data)

    def _read(self, size):
        while len(self.buffer) < size:
            data = self.socket.recv(65536)
            if not data:
                raise ConnectionResetError("closed by prismd")
            self.buffer += data
        data, self.buffer = self.buffer[:size], self.buffer[size:]
        return data

    def receive(self):
        """The next message: its type, the serial it answers (0: none), its body."""
        head = self._read(16)
        order = "<" if head[:1] == b"l" else ">"
        body_size, _, fields_size = struct.unpack(order + "III", head[4:])
        fields = self._read(fields_size + -fields_size % 8)
        body = self._read(body_size)
        answers = 0
        at = fields.find(b"\x05\x01u\0")
        if at >= 0:
            answers = struct.unpack(order + "I", fields[at + 4:at + 8])[0]
        return head[1], answers, body

    def call(self, member="GetStatus", **parts):
        """Its answer; signals that come before it are left out."""
        self.serial += 1
        self.send(message(member, serial=self.serial, **parts))
        while True:
            kind, answers, body = self.receive()
            if kind in (METHOD_RETURN, ERROR) and answers == self.serial:
                return kind, body

    def close(self):
        self.socket.close()

    def __enter__(self):
        return self

    def __exit__(self, kind, value, trace):
        self.close()
