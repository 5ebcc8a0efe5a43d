class Site:
    """As in a dashboard framework, the WSGI callable is an attribute of an object."""

    @staticmethod
    def server(environ, start_response):
        start_response("200 OK", [("Content-Length", "2")])
        return [b"ok"]


site = Site()
