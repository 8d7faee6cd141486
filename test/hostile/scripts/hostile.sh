# A hostile plugin as a shell script: what goes wrong with one in a way of its
# own. It needs nothing but the shell: a cage may hold no other program.
#
# The session's name says what it does: "exits|9" is the behaviour exits with
# the parameter 9. Started with "list" it prints their names.

behaviours="good exits fails dies unbound busy hangs stops deaf prints traces reads half closes_stdout closes_stderr subshell
background orphan orphan_exits pipeline becomes twice flood errors spaces quotes forks own_file"

# between TEXT BEFORE AFTER sets found to what is between them.
between() {
	found=${1#*"$2"}
	found=${found%%"$3"*}
}

hear() {
	IFS= read -r line || exit 0
	case $line in
	*'"method":"describe"'*) between "$line" '"id":' ',' && printf '{"jsonrpc":"2.0","id":%s,"error":{"code":-32601,"message":"no such method"}}\n' "$found" ;;
	*'"method":"shutdown"'*) between "$line" '"id":' ',' && printf '{"jsonrpc":"2.0","id":%s,"result":{}}\n' "$found" && exit 0 ;;
	esac
}

answer() {
	printf '{"jsonrpc":"2.0","id":%s,"result":{"status":"succeeded","data":1}}\n' "$id"
}

rest() {
	answer
	while hear; do
		case $line in *'"method":"execute"'*) between "$line" '"id":' ',' && id=$found && answer ;; esac
	done
}

# forever reads from a pipe without a writer.
forever() {
	while :; do hear; done
}

good() { rest; }
exits() { exit "$1"; }
fails() { set -e; false; }
dies() { kill -"$1" $$; forever; }
unbound() { set -u; echo "$nowhere"; }
busy() { while :; do :; done; }
hangs() { forever; }
stops() { kill -STOP $$; rest; }
deaf() { trap '' TERM HUP INT; rest; }
prints() { echo "$1 files checked"; rest; }
traces() { set -x; rest; }
reads() { (while hear; do :; done) & wait; forever; }
half() { printf '{"jsonrpc":"2.0","id":%s,' "$id"; exit 0; }
closes_stdout() { exec >&-; forever; }
closes_stderr() { exec 2>&-; rest; }
subshell() { (exit 3); rest; }
background() { (trap '' TERM; while :; do :; done) & rest; }
orphan() { ( (trap '' TERM HUP; while :; do :; done) & ) ; rest; }
orphan_exits() { ( (trap '' TERM HUP; while :; do :; done) & ) ; exit 0; }
pipeline() { (while :; do echo x; done) | while read -r _; do :; done; }
becomes() { exec /nowhere/at/all; }
twice() { answer; rest; }
flood() { while :; do echo '{"jsonrpc":"2.0","method":"log","params":{"level":"debug","message":"x"}}'; done; }
errors() { n=0; while [ $n -lt "$1" ]; do echo "line $n" >&2; n=$((n + 1)); done; rest; }
spaces() { printf '   '; rest; }
quotes() { printf "{'jsonrpc':'2.0','id':%s}\n" "$id"; forever; }
forks() { bomb() { bomb | bomb & }; bomb; forever; }
own_file() { if (: >>"$0") 2>/dev/null; then exit 98; fi; rest; }

if [ "${1:-}" = list ]; then
	printf '%s\n' $behaviours
	exit 0
fi

hear
between "$line" '"id":' ','
id=$found
between "$line" '"kind":"session","id":"' '"'
found=${found#*~} # a number that makes it one of its own
name=${found%%|*}
case $found in *"|"*) parameter=${found#*|} ;; *) parameter=0 ;; esac
printf '{"jsonrpc":"2.0","id":%s,"result":{"protocol":"2","plugins":[{"name":"hostile.shell","version":"1.0.0"}],"concurrency":1}}\n' "$id"
while hear; do
	case $line in *'"method":"execute"'*) break ;; esac
done
between "$line" '"id":' ','
id=$found
case " $(printf '%s ' $behaviours)" in
*" $name "*) "$name" "$parameter" ;;
*) echo "there is no behaviour $name" >&2; exit 99 ;;
esac
