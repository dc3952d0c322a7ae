#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Words that are right although codespell doubts them: test/style/words. Other people's text is not ours to mend.
set -eu
git -c safe.directory='*' ls-files -z | grep -zvE '^(LICENSE|test/fuzz/corpus/|.*\.patch$)' | xargs -0 codespell --ignore-words test/style/words
