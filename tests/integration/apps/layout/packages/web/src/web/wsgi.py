from pathlib import Path

import flask
from core import ANSWER

application = flask.Flask(__name__)
# A path relative to the project's root, as in many projects.
TEXT = Path("data/greeting.txt").read_text()


@application.get("/")
def index():
    return TEXT.encode() + ANSWER
