"""The supported tools, one module each."""

from __future__ import annotations

from wsgiload.audit.run import AuditTool
from wsgiload.audit.tools.ab import AB
from wsgiload.audit.tools.bombardier import BOMBARDIER
from wsgiload.audit.tools.docker_stats import DOCKER_STATS
from wsgiload.audit.tools.funkload import FUNKLOAD
from wsgiload.audit.tools.hey import HEY
from wsgiload.audit.tools.httperf import HTTPERF
from wsgiload.audit.tools.k6 import K6
from wsgiload.audit.tools.locust import LOCUST
from wsgiload.audit.tools.oha import OHA
from wsgiload.audit.tools.table import TABLE
from wsgiload.audit.tools.vegeta import VEGETA
from wsgiload.audit.tools.wrk import WRK, WRK2

TOOLS: tuple[AuditTool, ...] = (
    *(WRK, WRK2, AB, HTTPERF, HEY, OHA, BOMBARDIER, VEGETA, K6, LOCUST, FUNKLOAD),
    *(DOCKER_STATS, TABLE),
)
