#!/usr/bin/env bash
# Compares what `tracewing list` and babeltrace2 print for a trace: events and losses, byte for byte.
# Usage: same-as-babeltrace2.sh TRACE… [options]     TRACEWING: the command to test (default: tracewing)
# For an empty string babeltrace2 2.0.4 prints what an earlier event left in memory; such lines differ rightly.
set -euo pipefail
tracewing=${TRACEWING:-tracewing}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
"$tracewing" list "$@" >"$work/ours" 2>"$work/ours.err"
# Its --begin and --end are called --from and --to here; everything else has the same name.
theirs=("${@/#--from=/--begin=}")
babeltrace2 "${theirs[@]/#--to=/--end=}" >"$work/theirs" 2>"$work/theirs.err" || {
	cat "$work/theirs.err" >&2
	exit 2
}
diff "$work/ours" "$work/theirs" && diff "$work/ours.err" "$work/theirs.err" &&
	echo "same: $(wc -l <"$work/ours") events, $(wc -l <"$work/ours.err") losses"
