#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# build.sh [--stock] OUTDIR: builds CRIU as OUTDIR/criu, with the patches in series
# or, with --stock, without them. A second call with nothing changed does nothing.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
# A log that fails is shown this far back
tail_lines=40

usage() {
	echo "usage: build.sh [--stock] OUTDIR" >&2
	exit 2
}

stock=
if [ "${1:-}" = --stock ]; then
	stock=yes
	shift
fi
[ $# -eq 1 ] || usage
case $1 in -*) usage ;; esac

patches() {
	[ -n "$stock" ] || grep -v '^#' "$here/series"
}

stamp_of_inputs() {
	{
		cat "$here/BASE" "$here/fetch.sh" "$here/build.sh"
		for p in $(patches); do
			echo "$p"
			cat "$here/$p"
		done
	} | sha256sum | cut -d' ' -f1
}

build() {
	"$here/fetch.sh" "$tmp"
	cd "$tmp/criu"
	for p in $(patches); do
		echo "== $p"
		patch -p1 --fuzz=0 --batch --no-backup-if-mismatch <"$here/$p"
	done
	# CRIU caches what it learnt about the kernel in /run and trusts the cache if this
	# number is its own: let each set of patches have its own
	SOURCE_DATE_EPOCH=$((0x$(echo "$stamp" | cut -c1-7)))
	export SOURCE_DATE_EPOCH
	nice make -j"$(nproc)" criu
	strip -o "$out/criu.new" criu/criu
	"$out/criu.new" --version
}

mkdir -p "$1"
out=$(cd "$1" && pwd)
log=$out/build.log
stamp=$(stamp_of_inputs)
if [ -x "$out/criu" ] && [ "$(cat "$out/stamp" 2>/dev/null)" = "$stamp" ]; then
	exit 0
fi

tmp=$(mktemp -d "$out/build.XXXXXX")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
rm -f "$out/stamp"
# Not as "if ! build": set -e would be off inside
set +e
(
	set -e
	build
) >"$log" 2>&1
ret=$?
set -e
if [ $ret -ne 0 ]; then
	tail -n $tail_lines "$log" >&2
	echo "build.sh: CRIU was not built, the whole log is $log" >&2
	exit 1
fi
mv -f "$out/criu.new" "$out/criu"
echo "$stamp" >"$out/stamp"
