# SPDX-License-Identifier: GPL-2.0-or-later
"""What is in each image: packages on top of the common base, files, and Docker's configuration."""

import dataclasses

PATH = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclasses.dataclass(frozen=True)
class Recipe:
    """One image. files maps a path to (mode, text); script is shell, run in the image as root."""

    config: dict  # as `docker inspect` shows it under Config
    packages: tuple = ()
    files: dict = dataclasses.field(default_factory=dict)
    script: str = ""
    on_base: bool = True  # False: nothing but what builder (in layers.py) puts in


# started as root, the server runs as redis: as gosu or su-exec do in images of this kind
REDIS_ENTRYPOINT = """\
#!/bin/sh
set -e
if [ "$1" = redis-server ] && [ "$(id -u)" = 0 ]; then
    chown -R redis:redis /data
    exec setpriv --reuid=redis --regid=redis --clear-groups "$0" "$@"
fi
exec "$@"
"""

NGINX_CONF = """\
daemon off;
user www-data;
worker_processes 4;
pid /run/nginx.pid;
error_log stderr;
events { worker_connections 512; }
http {
    access_log /dev/stdout;
    sendfile on;
    server {
        listen 80;
        root /srv/www;
    }
}
"""

POSTGRES_ENTRYPOINT = """\
#!/bin/sh
set -e
PATH=/usr/lib/postgresql/15/bin:$PATH
if [ "$1" = postgres ] && [ ! -s "$PGDATA/PG_VERSION" ]; then
    initdb --auth=trust --encoding=UTF8 --locale=C.UTF-8
    echo "host all all all trust" >> "$PGDATA/pg_hba.conf"
fi
exec "$@"
"""

BASE = Recipe(config={})

RECIPES = {
    "busybox": Recipe(
        config={"Cmd": ["sh"], "Env": [PATH]},
        packages=("busybox-static",),
        on_base=False,
    ),
    "redis": Recipe(
        config={
            "Entrypoint": ["/usr/local/bin/entrypoint"],
            "Cmd": ["redis-server", "--protected-mode", "no", "--save", ""],
            "Env": [PATH], "WorkingDir": "/data", "Volumes": {"/data": {}},
            "ExposedPorts": {"6379/tcp": {}}, "Labels": {"org.opencontainers.image.title": "redis"},
        },
        packages=("redis-server",),
        files={"/usr/local/bin/entrypoint": (0o755, REDIS_ENTRYPOINT)},
        script="mkdir /data && chown redis:redis /data",
    ),
    "nginx": Recipe(
        config={
            "Cmd": ["nginx"], "Env": [PATH], "ExposedPorts": {"80/tcp": {}},
            "StopSignal": "SIGQUIT", "Labels": {"org.opencontainers.image.title": "nginx"},
        },
        packages=("nginx-light",),
        files={"/etc/nginx/nginx.conf": (0o644, NGINX_CONF),
               "/srv/www/index.html": (0o644, "<title>nginx</title>\n")},
    ),
    "postgres": Recipe(
        config={
            "Entrypoint": ["/usr/local/bin/entrypoint"],
            "Cmd": ["postgres", "-c", "listen_addresses=*"], "User": "postgres",
            "Env": [PATH, "PGDATA=/var/lib/postgresql/data", "LANG=C.UTF-8"],
            "Volumes": {"/var/lib/postgresql/data": {}}, "ExposedPorts": {"5432/tcp": {}},
            "StopSignal": "SIGINT", "Labels": {"org.opencontainers.image.title": "postgres"},
        },
        packages=("postgresql-15",),
        files={"/usr/local/bin/entrypoint": (0o755, POSTGRES_ENTRYPOINT),
               # Debian would create a cluster of its own at installation
               "/etc/postgresql-common/createcluster.conf":
                   (0o644, "create_main_cluster = false\n")},
        script="install -d -o postgres -g postgres -m 700 /var/lib/postgresql/data",
    ),
    "python": Recipe(
        config={"Cmd": ["python3"], "Env": [PATH, "PYTHONUNBUFFERED=1"]},
        packages=("python3",),
    ),
}
