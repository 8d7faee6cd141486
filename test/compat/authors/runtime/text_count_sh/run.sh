#!/bin/sh
# text.count in plain sh and awk. The JSON reader knows flat strings with the usual escapes, nothing more.
PATH=${PATH:-/usr/local/bin:/usr/bin:/bin}; export PATH

field() { # field NAME LINE: the raw (still escaped) string value
  printf '%s\n' "$2" | sed -n 's/.*"'"$1"'"[[:space:]]*:[[:space:]]*"\(\([^"\\]\|\\.\)*\)".*/\1/p'
}

IFS= read -r hello || exit 1
proto=$(field protocol_version "$hello")
printf '{"type":"handshake","manifest":{"plugin_id":"sh.count","plugin_version":"0.1.0","protocol_version":"%s","exposed_tools":["text.count"],"capabilities":[]}}\n' "$proto"

IFS= read -r req || [ -n "$req" ] || exit 0
id=$(field request_id "$req")
case $req in
  *'"text"'*) ;;
  *) printf '{"type":"response","request_id":"%s","status":"error","error":{"code":"invalid_input","message":"text is required"}}\n' "$id"; exit 0 ;;
esac
text=$(field text "$req" | sed 's/\\n/\
/g; s/\\t/	/g; s/\\"/"/g; s/\\\\/\\/g')
printf '%s' "$text" | awk -v id="$id" '
  { lines++; words += NF }
  END { printf "{\"type\":\"response\",\"request_id\":\"%s\",\"status\":\"ok\",\"output\":{\"lines\":%d,\"words\":%d},\"metadata\":{}}", id, lines, words }'
# no newline at the end: the last line is still a line
