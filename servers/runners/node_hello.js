// Sends the responses of wsgiload's apps `hello` and `conformance` from Node.js.
// Takes the same options as the Python runners.
"use strict";
const http = require("http");

const options = {};
for (let index = 2; index + 1 < process.argv.length; index += 2) {
  options[process.argv[index].slice(2)] = process.argv[index + 1];
}

const GREETING = Buffer.from("Hello, World!\n");
const HOLD_MS = 500;
const BUSY_MS = 20;
const nowNs = () => process.hrtime.bigint();

function send(response, status, body) {
  response.writeHead(status, { "Content-Type": "text/plain; charset=utf-8", "Content-Length": Buffer.byteLength(body) });
  response.end(body);
}

const routes = {
  "/worker": (request, response) => {
    const until = nowNs() + BigInt(BUSY_MS * 1e6);
    while (nowNs() < until);
    send(response, 200, String(process.pid));
  },
  "/stream": (request, response) => {
    response.writeHead(200, { "Content-Type": "text/plain; charset=utf-8" });
    response.write("one\n");
    response.write("two\n");
    response.end("three\n");
  },
  "/echo": (request, response) => {
    const parts = [];
    request.on("data", (part) => parts.push(part));
    request.on("end", () => send(response, 200, Buffer.concat(parts)));
  },
  "/cookie": (request, response) => send(response, 200, request.headers.cookie || ""),
  "/missing": (request, response) => send(response, 404, "not here\n"),
  "/broken": (request, response) => send(response, 500, "broken as asked\n"),
  "/hold": (request, response) => {
    const entered = nowNs();
    setTimeout(() => send(response, 200, `${entered} ${nowNs()}`), HOLD_MS);
  },
};

// Allows large cookies; by default, a request head is limited to 16 KiB.
const limits = options.keepalive ? { maxHeaderSize: 65536 } : {};
const server = http.createServer(limits, (request, response) => {
  const route = routes[request.url];
  return route ? route(request, response) : send(response, 200, GREETING);
});
if (options.keepalive) {
  server.keepAliveTimeout = Number(options.keepalive) * 1000;
  server.requestTimeout = 0;
}
server.listen({ host: options.host, port: Number(options.port), backlog: options.backlog && Number(options.backlog) });
