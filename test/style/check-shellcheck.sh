#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Every shell script, found by its first line.
set -eu
git -c safe.directory='*' ls-files | while read -r file; do
	[ -f "$file" ] || continue
	if head -c 64 "$file" | head -n 1 | grep -qaE '^#!(/usr/bin/env |/bin/|/usr/bin/)(ba|da)?sh'; then
		echo "$file"
	fi
done | xargs shellcheck -x
