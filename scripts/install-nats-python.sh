#!/usr/bin/env bash
# Makes a Python environment with what docs/guide/nats.md asks for, which test/journeys/nats.test.ts runs as an independent consumer: the
# folder python of NATS_ASSETS. Usage: install-nats-python.sh FOLDER
set -euo pipefail
python3 -m venv --clear "$1"
"$1/bin/pip" install --quiet --disable-pip-version-check grpcio-tools==1.85.1 protobuf==7.36.2 nats-py==2.16.0
