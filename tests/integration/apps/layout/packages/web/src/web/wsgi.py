from pathlib import Path

import flask
from core import ANSWER

application = flask.Flask(__name__)
# A file named from the project's root, as many projects do.
TEXT = Path("data/greeting.txt").read_text()


@application.get("/")
def index():
    return TEXT.encode() + ANSWER
