#!/bin/sh
# Plays assistant.py and holds it against baseline.json. Exit code 0: passed, 1: failed, 2: bad input, 3: inconclusive.
# `sh gate.sh --update --arm mine` writes baseline.json first, `sh gate.sh --update` accepts what changed.
set -eu
cd "$(dirname "$0")"
rm -rf runs/gate
skg-bench run users=40 weeks=8 out=runs/gate '~arms.skg' \
  '+arms.mine=[assistant=python,assistant.file=assistant.py:Assistant]'
skg-bench gate --baseline baseline.json "$@" runs/gate
