"""Stands between a client and its server, and keeps what the client sends, byte for byte.

Only what differs from run to run is replaced: the host and the session's id, which become `{host}` and `{session}`.
"""

import contextlib
import pathlib
import re
import socket
import threading


class Capture:
    """Forwards to the server at `url`, and writes each request into a file of its own: `directory/NN.http`."""

    def __init__(self, url, directory):
        self.server = re.search(r"//([^/]+)/", url)[1]
        self.directory = pathlib.Path(directory)
        self.directory.mkdir(parents=True, exist_ok=True)
        self.count = 0
        self.lock = threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = url.replace(self.server, f"127.0.0.1:{self.listener.getsockname()[1]}")
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            client, _ = self.listener.accept()
            host, _, port = self.server.partition(":")
            server = socket.create_connection((host, int(port)))
            threading.Thread(target=self.keep, args=(client, server), daemon=True).start()
            threading.Thread(target=lambda: list(pump(server, client)), daemon=True).start()

    def keep(self, client, server):
        received = b""
        for piece in pump(client, server):
            received += piece
            while (request := whole(received)) is not None:
                received = received[len(request) :]
                self.write(request)

    def write(self, request):
        request = re.sub(rb"(?im)^(host: )[^\r]+", rb"\1{host}", request)
        request = re.sub(rb"(?im)^(mcp-session-id: )[^\r]+", rb"\1{session}", request)
        with self.lock:
            self.count += 1
            (self.directory / f"{self.count:02}.http").write_bytes(request)


def whole(received):
    """The first request, if all of it is there. Every client known here sends bodies with a length."""
    head, end, rest = received.partition(b"\r\n\r\n")
    if not end:
        return None
    length = re.search(rb"(?im)^content-length: (\d+)", head)
    length = int(length[1]) if length else 0
    return head + end + rest[:length] if len(rest) >= length else None


def pump(source, sink):
    """Forwards until either side is gone."""
    try:
        while piece := source.recv(65536):
            sink.sendall(piece)
            yield piece
    except OSError:
        pass
    finally:
        # Wakes the other direction too.
        for end in (source, sink):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
