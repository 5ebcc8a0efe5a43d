"""Find out which of two servers has the lower p99 with one app.

    python better_server.py [MODULE:CALLABLE]

The sweep launches both servers again and again until the question is decided, for a minute at most.
"""

import sys

import wsgiload

SERVERS = ["gunicorn-gthread", "waitress"]
RATE = 200


def main(app: str | None) -> None:
    options = wsgiload.SweepOptions(budget=60)
    result = wsgiload.sweep(app=app, rates=[RATE], servers=SERVERS, options=options)

    for cell in result.summary.cells:
        if cell.failure is not None:
            print(f"{cell.id}: {cell.failure.message}")
    answer = result.summary.answer
    if answer is not None:
        print(f"{answer.status}: {answer.sentence}")
    print(f"report: {result.run_dir / 'report.html'}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else None)
