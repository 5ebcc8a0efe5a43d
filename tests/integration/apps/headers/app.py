def app(environ, start_response):
    path = environ["PATH_INFO"]
    if path == "/many":  # a CSP-reporting, tracing, many-cookie app: 130 fields
        extra = [(f"X-F-{n}", "v") for n in range(130)]
    elif path == "/wide":  # a single header field of 70 kB
        extra = [("Content-Security-Policy", "script-src " + "'sha256-" + "a" * 70000 + "'")]
    else:
        extra = []
    start_response("200 OK", [("Content-Length", "2"), *extra])
    return [b"ok"]
