"""What may be shown and stored: names whose values are harmless. Every other value is a secret.
docs/secrets.md lists them."""

from __future__ import annotations


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


VARIABLES = _words("""
    CONN_MAX_AGE DATABASE_HOST DATABASE_NAME DATABASE_PORT DB_HOST DB_NAME DB_POOL_SIZE DB_PORT
    DEBUG DJANGO_CONFIGURATION DJANGO_DEBUG DJANGO_SETTINGS_MODULE FLASK_APP FLASK_DEBUG FLASK_ENV
    HOME HOST LANG LANGUAGE LC_ALL LC_COLLATE LC_CTYPE LC_MESSAGES LC_MONETARY LC_NUMERIC LC_TIME
    LD_LIBRARY_PATH LD_PRELOAD LOGLEVEL LOG_LEVEL MALLOC_ARENA_MAX OMP_NUM_THREADS PATH PGDATABASE
    PGHOST PGPORT POOL_SIZE PORT PYTHONASYNCIODEBUG PYTHONDEVMODE PYTHONDONTWRITEBYTECODE
    PYTHONFAULTHANDLER PYTHONHASHSEED PYTHONMALLOC PYTHONOPTIMIZE PYTHONPATH PYTHONSAFEPATH
    PYTHONUNBUFFERED PYTHONUTF8 PYTHONWARNINGS PYTHON_GIL REDIS_HOST REDIS_PORT TERM THREADS TMPDIR
    TZ VIRTUAL_ENV WEB_CONCURRENCY WORKERS WSGILOAD_RUNNER_APP WSGILOAD_RUNNER_THREADS
    WSGILOAD_UPSTREAM
""")
HEADER_FIELDS = _words("""
    accept accept-charset accept-encoding accept-language cache-control connection
    content-encoding content-language content-length content-type date dnt expect host
    if-modified-since if-none-match keep-alive origin pragma priority range sec-fetch-dest
    sec-fetch-mode sec-fetch-site sec-fetch-user te transfer-encoding upgrade
    upgrade-insecure-requests user-agent x-forwarded-host x-forwarded-port x-forwarded-proto
    x-requested-with
""")
URL_PARAMETERS = _words("""
    desc dir fields format lang limit locale offset order page page_size per_page size sort
""")
# JSON fields of a quoted response, most of which are error messages.
RESPONSE_FIELDS = _words("""
    cause description detail details error errors exception field instance loc message method msg
    path reason status timestamp title type
""")
# Fields of connection strings such as `host=db dbname=shop user=ada password=…`.
CONNECTION_FIELDS = _words("""
    database dbname defaultendpointsprotocol endpointsuffix host hostaddr port server
""") | {"data source", "initial catalog"}
# Schemes of URLs whose path is the name of a database.
DATABASE_SCHEMES = _words("""
    amqp amqps clickhouse cockroachdb mariadb memcached mongodb mongodb+srv mssql mysql
    mysql+pymysql oracle postgis postgres postgresql postgresql+asyncpg postgresql+psycopg
    postgresql+psycopg2 redis rediss
""")
# Schemes of URLs whose path may be a secret.
HOST_SCHEMES = _words("http https")

# Values that are no secrets elsewhere: hidden in their own place, but not where text repeats them.
ORDINARY_WORDS = _words("""
    0.0.0.0 127.0.0.1 application application/json cherrypy development fastpysgi gunicorn hypercorn
    localhost meinheld mod_wsgi password postgres postgresql production pyruvate supervisor username
    waitress werkzeug wsgiload
""")
