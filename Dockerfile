# The image of all processes: `headway up`, `api`, `scheduler`, `worker`, `migrate`. Build: make image

FROM python:3.12-slim-bookworm AS build
WORKDIR /source
COPY . .
# The wheel's build makes the page as well; Node comes with a package of the build's own.
RUN pip wheel --no-cache-dir --wheel-dir /wheels --constraint constraints.txt '.[all,otlp]'

FROM python:3.12-slim-bookworm
LABEL org.opencontainers.image.title="Headway" \
      org.opencontainers.image.licenses="MIT"
RUN groupadd --gid 10001 headway \
 && useradd --uid 10001 --gid headway --home-dir /data --no-create-home --shell /usr/sbin/nologin headway \
 && install --directory --owner headway --group headway --mode 0700 /data
# hadolint ignore=DL3013
RUN --mount=type=bind,from=build,source=/wheels,target=/wheels \
    pip install --no-cache-dir --no-index --find-links /wheels 'headway[all,otlp]'
ENV PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HEADWAY_DATA=/data \
    HEADWAY_HOST=0.0.0.0
WORKDIR /data
VOLUME /data
USER 10001:10001
EXPOSE 8000 9101 9102
# For processes with an API; workers and schedulers are asked at their metrics port (compose.yaml, Kubernetes).
HEALTHCHECK --interval=15s --timeout=5s --start-period=20s --retries=3 \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:8000/healthz', timeout=4)"]
ENTRYPOINT ["headway"]
CMD ["up"]
