#!/bin/sh
# A tour of a host, for `make run`: it serves a data directory on a free port of this machine,
# makes a token, has a plugin read a log over the API with that token, shows what the ledger
# has of it, and stops the host. Each command is printed before it is run.
#
#     MORTISE=bin/mortise MORTISE_HOME=DIR sh docs/tour.sh LOG
set -eu

log=${1:-}
if [ -z "$log" ] || [ ! -f "$log" ] || [ ! -r "$log" ]; then
	echo "no readable system log was found; name one: make run LOG=path" >&2
	exit 1
fi
unset MORTISE_SERVER MORTISE_TOKEN MORTISE_AS MORTISE_SESSION MORTISE_CONFIG 2>/dev/null || true
export MORTISE_HOME
work=$(mktemp -d)
host=

# finish ends the host, which lets what is under way end first, and waits for it.
finish() {
	trap - EXIT
	if [ -n "$host" ]; then
		kill -INT "$host" 2>/dev/null || true
		wait "$host" || true
	fi
	rm -rf "$work"
}
trap finish EXIT
trap 'echo "stopped" >&2; exit 130' INT
trap 'exit 143' TERM

# run prints a command of the program, and runs it.
run() {
	printf '\n$ mortise'
	printf ' %s' "$@"
	printf '\n'
	"$MORTISE" "$@"
}

# A request has at most 4 MiB: of a longer log the tour reads its end.
most=2000000
if [ "$(wc -c <"$log")" -gt $most ]; then
	echo "$log is long: these are its last $most bytes"
	tail -c $most "$log" >"$work/$(basename "$log")"
	log=$work/$(basename "$log")
fi

printf '%s\n' '$ mortise serve --listen 127.0.0.1:0 &'
"$MORTISE" serve --listen 127.0.0.1:0 2>"$work/serve" &
host=$!
until grep -q 'Ctrl-C stops$' "$work/serve"; do
	if ! kill -0 "$host" 2>/dev/null; then
		cat "$work/serve" >&2
		wait "$host" || true
		host=
		echo "the host did not start" >&2
		exit 1
	fi
	sleep 0.1
done
url=$(sed -n 's/^listening on //p' "$work/serve")
echo "a host serves $MORTISE_HOME at $url"

run tokens create tour --scope run --scope read --expires 15m >"$work/token" 2>"$work/said"
sed -n 1,2p "$work/token"
cat "$work/said"
MORTISE_TOKEN=$(sed -n 's/^mrt_/mrt_/p' "$work/token")
MORTISE_SERVER=$url
export MORTISE_TOKEN MORTISE_SERVER
echo "what follows asks $url with this token, as a program on another machine would"

run sessions create --name tour | tee "$work/session"
session=$(sed -n 's/^\(sess_[^ ]*\).*/\1/p' "$work/session")
run artifacts add --session "$session" "$log" | tee "$work/artifact"
artifact=$(sed -n 's/^\(art_[^ ]*\).*/\1/p' "$work/artifact")
run run pattern_extractor --session "$session" --artifact "$artifact"
run ledger list --last 3

unset MORTISE_TOKEN MORTISE_SERVER
run tokens revoke "$(sed -n 's/^token \([^ ]*\) for .*/\1/p' "$work/said")"
finish

cat <<END

The host is stopped; its ledger is in $MORTISE_HOME. To try next:
  export PATH="$(cd "$(dirname "$MORTISE")" && pwd):\$PATH" MORTISE_HOME="$MORTISE_HOME"
  mortise ledger verify               that nothing of it was changed
  mortise new hello                   a plugin of your own
  mortise run ./hello --set name=Ada  and call it
  make serve                          a host that stays, with a console in your browser
END
