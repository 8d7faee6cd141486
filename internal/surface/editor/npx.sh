#!/bin/sh
# Installs a package of npm below HOME and starts its program. The sandbox runs no file that lies
# where a server may write, so node is given the program to read. Usage: npx.sh PACKAGE ARGUMENT...
set -e
package=$1
shift
export npm_config_cache="$HOME/.npm" npm_config_update_notifier=false npm_config_audit=false npm_config_fund=false
mkdir -p "$HOME/server"
echo '{}' > "$HOME/server/package.json"
npm install --prefix "$HOME/server" --loglevel=error --ignore-scripts -- "$package" >&2
program=$(node -e '
  const { readFileSync } = require("node:fs"), { join } = require("node:path")
  const read = dir => JSON.parse(readFileSync(join(dir, "package.json"), "utf8"))
  const [name] = Object.keys(read(process.argv[1]).dependencies)
  const dir = join(process.argv[1], "node_modules", name), { bin } = read(dir)
  const own = name.slice(name.indexOf("/") + 1)
  const files = typeof bin === "string" ? { [own]: bin } : bin ?? {}
  const file = files[own] ?? (Object.keys(files).length === 1 ? Object.values(files)[0] : undefined)
  if (!file) throw new Error(`${name} has no program ${own}: it has ${Object.keys(files).join(", ") || "none"}`)
  console.log(join(dir, file))
' "$HOME/server")
exec node "$program" "$@"
