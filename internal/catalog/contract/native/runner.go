package native

import (
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/catalog/contract"
	"github.com/mortise-dev/mortise/plugin"
)

// defaultEntries are looked for where a manifest does not say what to run.
var defaultEntries = []string{"plugin.py", "plugin.ts", "plugin.js", "plugin.mjs"}

// runnerOf reads how a plugin's code is reached.
func runnerOf(v contract.Value) plugin.Runner {
	runner := plugin.Runner{Kind: contract.ProcessRunner, Protocol: "2"}
	if v.There && !v.Mapping("kind", "entry", "command", "protocol", "url", "secret", "env", "oauth") {
		return runner
	}
	switch kind := v.Get("kind"); kind.OneOf(contract.ProcessRunner, contract.ProcessRunner, contract.ScriptRunner, contract.WebhookRunner, contract.MCPRunner) {
	case contract.ProcessRunner:
	case contract.WebhookRunner:
		return webhookOf(v)
	case contract.MCPRunner:
		return serverOf(v)
	case contract.ScriptRunner:
		kind.Problem("scripts run in the host where they stand as plugins and hooks have it: a manifest.json beside an index.ts")
	}
	for key, of := range map[string]string{"url": contract.WebhookRunner + " or " + contract.MCPRunner, "secret": contract.WebhookRunner, "env": contract.MCPRunner, "oauth": contract.MCPRunner} {
		if place := v.Get(key); place.There {
			place.Problem("only a runner of kind %s has it", of)
		}
	}
	runner.Protocol = protocolOf(v.Get("protocol"))
	entry, command := v.Get("entry"), v.Get("command")
	switch {
	case entry.There && command.There:
		command.Problem("there is an entry too; keep one of them")
	case command.There:
		runner.Command = commandOf(command)
	case entry.There:
		runner.Entry = entryOf(entry)
	default:
		runner.Entry = defaultEntry(v)
	}
	return runner
}

// protocolOf reads "1" or "2"; YAML makes numbers of them where quotes were forgotten.
func protocolOf(v contract.Value) string {
	if n, isNumber := v.Is.(contract.Number); isNumber {
		v.Is = string(n)
	}
	return v.OneOf("2", "1", "2")
}

// entryOf reads the name of a source file in the package.
func entryOf(v contract.Value) string {
	name := v.Word()
	if name == "" {
		return ""
	}
	if !slices.Contains(contract.Extensions, path.Ext(name)) {
		v.Problem("%s is none of %s; anything else is run by command", contract.Clip(name), strings.Join(contract.Extensions, ", "))
		return ""
	}
	if _, err := v.Page.Files.Regular(name); err != nil {
		v.Problem("%s: %v", contract.Clip(name), err)
		return ""
	}
	return strings.TrimPrefix(name, "./")
}

// defaultEntry is the one file that can only be the plugin.
func defaultEntry(v contract.Value) string {
	var found []string
	for _, name := range defaultEntries {
		if _, err := v.Page.Files.Regular(name); err == nil {
			found = append(found, name)
		}
	}
	switch len(found) {
	case 0:
		v.Problem("it does not say what to run, and there is no %s: give an entry or a command", strings.Join(defaultEntries, ", "))
	case 1:
		return found[0]
	default:
		v.Problem("it does not say which to run of %s: give an entry", strings.Join(found, ", "))
	}
	return ""
}

// commandOf reads a program and its arguments.
func commandOf(v contract.Value) []string {
	items := v.List()
	if _, isList := v.Is.([]any); isList && len(items) == 0 {
		v.Problem("a program belongs here, at least")
	}
	var command []string
	for i, item := range items {
		text, isText := item.Is.(string)
		switch {
		case !isText:
			item.Wrong("text")
		case strings.ContainsRune(text, 0):
			item.Problem("it holds a zero byte")
		case i == 0:
			checkProgram(item, text)
		}
		command = append(command, text)
	}
	return command
}

// checkProgram checks what a command starts with.
func checkProgram(v contract.Value, name string) {
	if reason := contract.BadWord(name); reason != "" {
		v.Problem("%s", reason)
		return
	}
	switch {
	case strings.HasPrefix(name, "./"):
		info, err := v.Page.Files.Regular(name)
		switch {
		case err != nil:
			v.Problem("%s: %v", contract.Clip(name), err)
		case info.Mode()&0o100 == 0 && runtime.GOOS != "windows":
			v.Problem("%s: it is not executable", contract.Clip(name))
		}
	case filepath.IsAbs(name), !strings.ContainsAny(name, `/\`):
	default:
		v.Problem("%q is neither a file of the package (./file), nor the name of a program, nor an absolute path", contract.Clip(name))
	}
}
