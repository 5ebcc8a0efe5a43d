# The settings of a team that wants to measure exactly this configuration.
workers = 3
threads = 2
worker_class = "gthread"
max_requests = 200
max_requests_jitter = 50
preload_app = True
keepalive = 5
raw_env = ["POOL_URL=sqlite://"]


def post_fork(server, worker):
    import app

    app.connect()
