#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# C files are formatted as .clang-format says (make format), in the folders that match a
# line of test/style/formatted.
set -eu
git -c safe.directory='*' ls-files -z '*.[ch]' | grep -zf test/style/formatted | xargs -0 clang-format --dry-run --Werror
