# Built from the wheels of a release (.github/workflows/release.yml). docs/limits.md says how to run it.
FROM python:3.13-slim-bookworm
COPY dist/ /dist/
RUN pip install --no-cache-dir /dist/wsgiload-*-cp311-abi3-manylinux*_"$(uname -m)".whl \
    && rm -r /dist \
    && useradd --create-home wsgiload
USER wsgiload
WORKDIR /app
ENTRYPOINT ["wsgiload"]
