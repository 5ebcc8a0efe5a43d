"""Starts a WSGI server on a Unix socket and nginx in front of it, and stops both together.

It imports few modules, because its memory counts as the server's.
"""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

ADMINISTRATION_FOLDERS = "/usr/local/sbin:/usr/sbin:/sbin"
OPTIONS = ("--host", "--port", "--socket", "--protocol", "--backlog", "--connections")

CONFIGURATION = """
daemon off;
pid {folder}/nginx.pid;
{user}
worker_processes 1;
worker_rlimit_nofile 65536;
error_log stderr error;
events {{ worker_connections {connections}; }}
http {{
  access_log {access_log};
  client_body_temp_path {folder}/body; proxy_temp_path {folder}/proxy;
  uwsgi_temp_path {folder}/uwsgi;
  fastcgi_temp_path {folder}/fastcgi; scgi_temp_path {folder}/scgi;
  client_max_body_size 16m;
  {client_side}
  upstream app {{ server unix:{socket}; {upstream} }}
  server {{
    listen {host}:{port} {listen};
    location / {{ {forwarding} }}
  }}
}}
"""
# By protocol and profile. The uwsgi protocol has no keep-alive, so nginx opens a connection per
# request.
FORWARDING = {
    (
        "http",
        True,
    ): 'proxy_pass http://app; proxy_http_version 1.1; proxy_set_header Connection ""; '
    "proxy_set_header Host $http_host; proxy_read_timeout 1d;",
    ("http", False): "proxy_pass http://app;",
    (
        "uwsgi",
        True,
    ): 'include /etc/nginx/uwsgi_params; uwsgi_param SCRIPT_NAME ""; uwsgi_pass app; '
    "uwsgi_read_timeout 1d;",
    (
        "uwsgi",
        False,
    ): 'include /etc/nginx/uwsgi_params; uwsgi_param SCRIPT_NAME ""; uwsgi_pass app;',
}


def configure(options: dict[str, str], folder: Path) -> Path:
    """Write nginx.conf. Without a backlog, nginx's defaults apply."""
    is_tuned = "--backlog" in options
    text = CONFIGURATION.format(
        folder=folder,
        host=options["--host"],
        port=options["--port"],
        socket=options["--socket"],
        user="user root;"
        if os.geteuid() == 0
        else "",  # only this user may enter the folder of the sockets
        # Two connections per request (client and server side), and a few for listening sockets.
        connections=2 * int(options["--connections"]) + 64 if "--connections" in options else 512,
        access_log="off" if is_tuned else f"{folder}/access.log",
        client_side="keepalive_requests 1000000000; keepalive_timeout 1d; tcp_nodelay on; "
        "large_client_header_buffers 4 64k;"
        if is_tuned
        else "",
        upstream="keepalive 64; keepalive_requests 1000000000; keepalive_timeout 1d;"
        if is_tuned
        else "",
        listen=f"backlog={options['--backlog']}" if is_tuned else "",
        forwarding=FORWARDING[options["--protocol"], is_tuned],
    )
    path = folder / "nginx.conf"
    path.write_text(text)
    return path


def main() -> int:
    """Run both until SIGTERM, or until one of them exits."""
    separator = sys.argv.index("--")
    options = dict(zip(sys.argv[1:separator:2], sys.argv[2:separator:2], strict=True))
    unknown = set(options) - set(OPTIONS)
    if unknown:
        raise SystemExit(f"unknown options {sorted(unknown)}")
    folder = Path(options["--socket"]).parent
    path = f"{os.environ.get('PATH', os.defpath)}:{ADMINISTRATION_FOLDERS}"
    nginx = ["nginx", "-c", str(configure(options, folder)), "-e", "stderr"]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM, signal.SIGCHLD})
    children = [_start(command, path) for command in (sys.argv[separator + 1 :], nginx)]
    is_stopped = signal.sigwait({signal.SIGTERM, signal.SIGCHLD}) == signal.SIGTERM
    for child in reversed(children):  # nginx first, so that it never connects to a stopped server
        try:
            os.kill(child, signal.SIGTERM)
        except ProcessLookupError:
            is_stopped = False
        os.waitpid(child, 0)
    return 0 if is_stopped else 1


def _start(command: list[str], path: str) -> int:
    child = os.fork()
    if child == 0:
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGTERM, signal.SIGCHLD})
        os.environ["PATH"] = path
        try:
            os.execvp(command[0], command)
        except OSError as error:
            os.write(2, f"{command[0]}: {error.strerror}\n".encode())
            os._exit(127)
    return child


if __name__ == "__main__":
    sys.exit(main())
