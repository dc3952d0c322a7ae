#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# fetch.sh DIR: puts the source of the CRIU release in BASE into DIR/criu, checked.
# It comes from the cache folder $DMIGRATE_CACHE, else from Debian's pool through
# apt, else from upstream's release page.
set -eu

here=$(cd "$(dirname "$0")" && pwd)
version=
sha256=
tree_sha256=
# shellcheck source=criu-patches/BASE
. "$here/BASE"

archive=criu_$version.orig.tar.xz
upstream=https://github.com/checkpoint-restore/criu/archive/refs/tags/v$version.tar.gz

say() { echo "fetch.sh: $*" >&2; }

archive_is_right() {
	[ -f "$1" ] && echo "$sha256  $1" | sha256sum --check --status
}

from_cache() {
	[ -n "${DMIGRATE_CACHE:-}" ] || return 1
	archive_is_right "$DMIGRATE_CACHE/$archive" || return 1
	cp "$DMIGRATE_CACHE/$archive" "$1/$archive"
}

# The mirror that this machine uses for Debian; nothing on other distributions.
debian_mirror() {
	# shellcheck disable=SC2016 # apt expands these, not the shell
	apt-get indextargets --format '$(ORIGIN) $(LABEL) $(SITE)' 2>/dev/null |
		awk '$1 == "Debian" && $2 == "Debian" { print $3; exit }'
}

# Everything that apt writes goes below its first argument: /etc/apt and
# /var/lib/apt stay as they are.
private_apt() {
	state=$1
	shift
	apt-get -qq -o "Dir::Etc::SourceList=$state/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o "Dir::State::Lists=$state/lists" -o "Dir::Cache=$state/cache" \
		-o APT::Sandbox::User=root "$@"
}

from_debian() {
	command -v apt-get >/dev/null || return 1
	mirror=$(debian_mirror)
	[ -n "$mirror" ] || return 1
	state=$1/apt
	mkdir -p "$state/lists/partial" "$state/cache/archives/partial"
	for suite in sid testing; do
		echo "deb-src $mirror $suite main"
	done >"$state/sources.list"
	private_apt "$state" update || return 1
	# Any Debian revision has the same upstream archive
	revision=$(apt-cache -o "Dir::Etc::SourceList=$state/sources.list" -o Dir::Etc::SourceParts=/dev/null \
		-o "Dir::State::Lists=$state/lists" -o "Dir::Cache=$state/cache" showsrc criu |
		awk -v v="$version-" '$1 == "Version:" && index($2, v) == 1 { print $2; exit }')
	[ -n "$revision" ] || return 1
	(cd "$1" && private_apt "$state" source --tar-only "criu=$revision") || return 1
	archive_is_right "$1/$archive"
}

tree_hash() {
	(cd "$1" && find . -type f -print0 | LC_ALL=C sort -z | xargs -0 sha256sum | sha256sum | cut -d' ' -f1)
}

from_upstream() {
	helper=/usr/lib/apt/apt-helper
	if command -v curl >/dev/null; then
		curl -fsSL -o "$1/upstream.tar.gz" "$upstream" || return 1
	elif [ -x "$helper" ]; then
		"$helper" download-file "$upstream" "$1/upstream.tar.gz" || return 1
	else
		return 1
	fi
}

unpack() {
	mkdir "$1/criu"
	tar -xf "$2" -C "$1/criu" --strip-components=1 --no-same-owner
	# Also a check of what arrived over another road than Debian's
	[ "$(tree_hash "$1/criu")" = "$tree_sha256" ] || {
		say "the files in $2 are not those of CRIU $version"
		return 1
	}
}

dir=$1
mkdir -p "$dir"
rm -rf "${dir:?}/criu" "$dir/apt"
if from_cache "$dir" || from_debian "$dir"; then
	unpack "$dir" "$dir/$archive"
elif from_upstream "$dir"; then
	unpack "$dir" "$dir/upstream.tar.gz"
else
	say "no source of CRIU $version: not in DMIGRATE_CACHE, not in Debian's pool, not at $upstream"
	exit 1
fi
rm -rf "${dir:?}/apt" "${dir:?}/$archive" "$dir/upstream.tar.gz"
