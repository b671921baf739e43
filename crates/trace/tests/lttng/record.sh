#!/usr/bin/env bash
# Builds kinds.c and records it with LTTng in several ways, one folder each below OUT:
#   uid      per-user buffers, contexts, several processes and threads
#   pid      per-process buffers
#   lossy    sub-buffers far too small, discard mode
#   rotated  one session in several trace chunks
#   snapshot overwrite mode, two overlapping snapshots
# Uses a session daemon of its own (as an unprivileged user when run by root), so nothing else is disturbed.
# Usage: record.sh OUT        exit status 77: something needed is missing (said on stderr)
set -euo pipefail

here=$(cd "$(dirname "$0")" && pwd)
out=${1:?usage: record.sh OUT}
for tool in lttng lttng-sessiond cc; do
	command -v "$tool" >/dev/null || { echo "record.sh: $tool is not installed" >&2; exit 77; }
done

mkdir -p "$out"
out=$(cd "$out" && pwd)
work=$(mktemp -d /tmp/tracewing-lttng.XXXXXX)
chmod 755 "$work"
if ! cc -g -O1 -I"$here" -o "$work/kinds" "$here/kinds.c" "$here/kinds-tp.c" -llttng-ust -lpthread -ldl -lm 2>"$work/cc.log"; then
	echo "record.sh: kinds.c does not build (is liblttng-ust-dev installed?): $(head -n 1 "$work/cc.log")" >&2
	rm -rf "$work"
	exit 77
fi

run=()
mkdir "$work/home" "$work/traces"
if [ "$(id -u)" = 0 ]; then
	chown 65534:65534 "$work/home" "$work/traces"
	run=(setpriv --reuid 65534 --regid 65534 --clear-groups --)
fi
export HOME=$work/home LTTNG_HOME=$work/home LTTNG_UST_REGISTER_TIMEOUT=5000
lttng() { "${run[@]}" lttng --no-sessiond "$@" >>"$work/log" 2>&1 </dev/null; }
kinds() { "${run[@]}" "$work/kinds" "$@"; }

"${run[@]}" lttng-sessiond --no-kernel >>"$work/log" 2>&1 </dev/null &
daemon=$!
finish() {
	status=$?
	kill "$daemon" 2>/dev/null || true
	wait "$daemon" 2>/dev/null || true
	[ "$status" = 0 ] || { echo "record.sh: failed; what lttng said:" >&2; tail -n 20 "$work/log" >&2; }
	rm -rf "$work"
	exit "$status"
}
trap finish EXIT
for _ in $(seq 100); do
	lttng list && break
	sleep 0.05
done

contexts() {
	for context in vpid vtid procname pthread_id ip; do
		lttng add-context -s "$1" -u -c channel -t "$context"
	done
}
start() { # NAME [enable-channel options]
	local name=$1
	shift
	[ "$name" = snapshot ] || lttng create "$name" --output="$work/traces/$name"
	[ "$name" != snapshot ] || lttng create "$name" --snapshot --output="$work/traces/$name"
	lttng enable-channel -s "$name" -u channel "$@"
	lttng enable-event -s "$name" -u -c channel -a
}

start uid --subbuf-size 64k --num-subbuf 16
contexts uid
lttng start uid
kinds 4 3 & kinds 2 2 & wait %2 %3
lttng stop uid
lttng destroy uid

start pid --buffers-pid
lttng start pid
kinds 2 2 & kinds 3 1 & wait %2 %3
lttng destroy pid

start lossy --subbuf-size 4k --num-subbuf 2 --discard
lttng start lossy
kinds 4 5000 big & kinds 2 2000 big & wait %2 %3
lttng destroy lossy

start rotated
lttng start rotated
kinds 2 1
lttng rotate rotated
kinds 2 1
lttng rotate rotated
kinds 1 1
lttng destroy rotated

start snapshot --subbuf-size 4k --num-subbuf 4 --overwrite
lttng start snapshot
kinds 2 1
lttng snapshot record -s snapshot -n first
kinds 1 1
lttng snapshot record -s snapshot -n second
lttng destroy snapshot

cp -r "$work/traces/." "$out/"
