#!/usr/bin/env bash
set -u
exec 3>&1 1>&2          # everything that is not protocol goes to stderr
say() { printf '%s\n' "$1" >&3; }
get() { local re="\"$1\"[[:space:]]*:[[:space:]]*\"([^\"]*)\""; [[ $2 =~ $re ]] && printf '%s' "${BASH_REMATCH[1]}"; }
esc() { local s=${1//\\/\\\\}; s=${s//\"/\\\"}; printf '%s' "$s"; }

while IFS= read -r line || [[ -n $line ]]; do
  case $(get type "$line") in
    handshake)
      echo "path_info starting"
      say '{"type":"handshake","manifest":{"plugin_id":"sh.path","plugin_version":"1.0.0","protocol_version":"rterm.plugin.v1","exposed_tools":["path.info"],"capabilities":["fs.read"]}}' ;;
    request)
      id=$(get request_id "$line")
      path=$(get path "$line")
      if [[ -z $path ]]; then
        say "{\"type\":\"response\",\"request_id\":\"$id\",\"status\":\"error\",\"error\":{\"code\":\"invalid_input\",\"message\":\"path is required\"}}"
        exit 64
      fi
      kind=missing; size=0; lines=0
      if [[ -d $path ]]; then kind=directory
      elif [[ -f $path ]]; then
        kind=file
        data=$(<"$path"); size=${#data}
        while IFS= read -r _ || [[ -n $_ ]]; do ((lines++)); done < "$path"
      fi
      say "{\"type\":\"response\",\"request_id\":\"$id\",\"status\":\"ok\",\"output\":{\"name\":\"$(esc "${path##*/}")\",\"kind\":\"$kind\",\"lines\":$lines},\"metadata\":{\"shell\":\"bash\"}}"
      exit 0 ;;
  esac
done
