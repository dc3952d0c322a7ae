#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
# run-fuzz.sh PROGRAM CORPUS SECONDS: let a libFuzzer program search for a bounded time. What it finds goes to a
# scratch folder, so that the corpus in the tree stays small; a crashing input is kept beside the program.
set -eu
program=$1
corpus=$2
seconds=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
trap 'exit 1' INT TERM
cp -r "$corpus"/. "$scratch"
"$program" -max_total_time="$seconds" -rss_limit_mb=512 -timeout=10 -print_final_stats=1 \
	-artifact_prefix="$program-crash-" "$scratch"
