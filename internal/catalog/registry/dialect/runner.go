package dialect

import (
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/plugin"
)

// processRunner is the kind of runner that starts a process.
const processRunner = "process"

// defaultEntries are looked for where a manifest does not say what to run.
var defaultEntries = []string{"plugin.py", "plugin.ts", "plugin.js", "plugin.mjs"}

// runner reads how a plugin's code is reached.
func (v value) runner() plugin.Runner {
	runner := plugin.Runner{Kind: processRunner, Protocol: "2"}
	if v.there && !v.mapping("kind", "entry", "command", "protocol", "url", "secret") {
		return runner
	}
	switch kind := v.get("kind"); kind.oneOf(processRunner, processRunner, scriptRunner, webhookRunner, "mcp") {
	case processRunner:
	case webhookRunner:
		return v.webhookRunner()
	case scriptRunner:
		kind.problem("scripts run in the host where they stand as plugins and hooks have it: a manifest.json beside an index.ts")
	default:
		kind.problem("a runner of this kind needs a later version of Mortise")
	}
	for _, key := range []string{"url", "secret"} {
		if place := v.get(key); place.there {
			place.problem("only a runner of kind %s has it", webhookRunner)
		}
	}
	runner.Protocol = v.get("protocol").protocol()
	entry, command := v.get("entry"), v.get("command")
	switch {
	case entry.there && command.there:
		command.problem("there is an entry too; keep one of them")
	case command.there:
		runner.Command = command.command()
	case entry.there:
		runner.Entry = entry.entry()
	default:
		runner.Entry = v.defaultEntry()
	}
	return runner
}

// protocol reads "1" or "2"; YAML makes numbers of them where quotes were forgotten.
func (v value) protocol() string {
	if n, isNumber := v.is.(number); isNumber {
		v.is = string(n)
	}
	return v.oneOf("2", "1", "2")
}

// entry reads the name of a source file in the package.
func (v value) entry() string {
	name := v.word()
	if name == "" {
		return ""
	}
	if !slices.Contains(Extensions, path.Ext(name)) {
		v.problem("%s is none of %s; anything else is run by command", clip(name), strings.Join(Extensions, ", "))
		return ""
	}
	if _, err := v.page.files.regular(name); err != nil {
		v.problem("%s: %v", clip(name), err)
		return ""
	}
	return strings.TrimPrefix(name, "./")
}

// defaultEntry is the one file that can only be the plugin.
func (v value) defaultEntry() string {
	var found []string
	for _, name := range defaultEntries {
		if _, err := v.page.files.regular(name); err == nil {
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		v.problem("it does not say what to run, and there is no %s: give an entry or a command", strings.Join(defaultEntries, ", "))
	case 1:
		return found[0]
	default:
		v.problem("it does not say which to run of %s: give an entry", strings.Join(found, ", "))
	}
	return ""
}

// command reads a program and its arguments.
func (v value) command() []string {
	items := v.list()
	if _, isList := v.is.([]any); isList && len(items) == 0 {
		v.problem("a program belongs here, at least")
	}
	var command []string
	for i, item := range items {
		text, isText := item.is.(string)
		switch {
		case !isText:
			item.wrong("text")
		case strings.ContainsRune(text, 0):
			item.problem("it holds a zero byte")
		case i == 0:
			item.program(text)
		}
		command = append(command, text)
	}
	return command
}

// program checks what a command starts with.
func (v value) program(name string) {
	if reason := badWord(name); reason != "" {
		v.problem("%s", reason)
		return
	}
	switch {
	case strings.HasPrefix(name, "./"):
		info, err := v.page.files.regular(name)
		switch {
		case err != nil:
			v.problem("%s: %v", clip(name), err)
		case info.Mode()&0o100 == 0 && runtime.GOOS != "windows":
			v.problem("%s: it is not executable", clip(name))
		}
	case filepath.IsAbs(name), !strings.ContainsAny(name, `/\`):
	default:
		v.problem("%q is neither a file of the package (./file), nor the name of a program, nor an absolute path", clip(name))
	}
}
