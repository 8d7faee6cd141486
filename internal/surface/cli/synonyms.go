package cli

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
)

// synonyms are what other programs call a command, and what it is called here: the first
// that the group has is suggested. None of them runs anything.
var synonyms = map[string][]string{
	"ls":        {"list", "plugins list"},
	"ps":        {"list", "calls list"},
	"all":       {"list"},
	"rm":        {"delete", "remove", "unlink", "plugins delete"},
	"remove":    {"delete", "unlink", "plugins delete"},
	"delete":    {"remove", "unlink", "plugins delete"},
	"del":       {"delete", "remove"},
	"uninstall": {"delete", "plugins delete"},
	"destroy":   {"delete"},
	"get":       {"show", "plugins show"},
	"describe":  {"show", "plugins show"},
	"info":      {"show", "plugins show"},
	"inspect":   {"show", "calls show"},
	"view":      {"show"},
	"cat":       {"get", "show"},
	"download":  {"get"},
	"add":       {"create", "register", "set", "put", "link", "submit", "plugins register"},
	"new":       {"create", "register"},
	"create":    {"add", "register", "set", "put", "link", "submit", "new"},
	"make":      {"create"},
	"install":   {"register", "plugins register"},
	"register":  {"create", "add", "plugins register"},
	"import":    {"add", "register"},
	"upload":    {"add"},
	"update":    {"set", "put", "rotate"},
	"edit":      {"set", "put"},
	"change":    {"set"},
	"rename":    {"set"},
	"exec":      {"run"},
	"execute":   {"run"},
	"call":      {"run"},
	"invoke":    {"run"},
	"trigger":   {"run"},
	"logs":      {"follow", "ledger list"},
	"log":       {"follow", "ledger list"},
	"audit":     {"ledger list"},
	"history":   {"ledger list"},
	"tail":      {"follow", "calls follow"},
	"watch":     {"follow", "calls follow"},
	"await":     {"wait", "calls wait"},
	"kill":      {"cancel", "stop", "calls cancel"},
	"abort":     {"cancel", "calls cancel"},
	"stop":      {"cancel", "pause", "close", "calls cancel"},
	"status":    {"show", "doctor"},
	"health":    {"doctor"},
	"start":     {"resume", "serve"},
	"server":    {"serve"},
	"up":        {"serve"},
	"daemon":    {"serve"},
	"approve":   {"approvals approve"},
	"accept":    {"approve", "approvals approve"},
	"deny":      {"approvals deny"},
	"reject":    {"deny", "approvals deny"},
	"refuse":    {"deny", "approvals deny"},
	"find":      {"search", "route", "kb search"},
	"search":    {"route", "kb search"},
	"query":     {"search", "kb search"},
	"validate":  {"check", "verify"},
	"lint":      {"check"},
	"verify":    {"check", "ledger verify"},
	"login":     {"connect"},
	"init":      {"new", "create"},
	"talk":      {"chat"},
	"ask":       {"submit", "chat"},
	"secret":    {"secrets set"},
	"users":     {"identities list"},
	"schedule":  {"create", "feeds create"},
	"cron":      {"feeds create"},
}

// noCommand says that a group has no such command, and which may be meant: what another
// word for it is called here, or what is spelled nearly so.
func noCommand(group *cobra.Command, name string) error {
	meant := synonymOf(group, name)
	if meant == "" {
		group.SuggestionsMinimumDistance = 2
		if near := group.SuggestionsFor(name); len(near) > 0 {
			meant = near[0]
		}
	}
	if meant != "" {
		meant = fmt.Sprintf("; did you mean %s?", meant)
	}
	return usage{fmt.Errorf("there is no command %q in '%s'%s; see '%s --help'", name, group.CommandPath(), meant, group.CommandPath())}
}

// synonymOf returns what a group has under another word, "" for nothing.
func synonymOf(group *cobra.Command, name string) string {
	for _, here := range synonyms[strings.ToLower(name)] {
		if found, rest, err := group.Find(strings.Fields(here)); err == nil && len(rest) == 0 && found != group {
			return here
		}
	}
	return ""
}
