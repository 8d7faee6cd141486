package cli

import (
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/surface/view"
)

func TestAnotherWordForACommandIsSuggested(t *testing.T) {
	t.Parallel()
	_, root := newCommand()
	for given, want := range map[string]string{
		"ls": "plugins list", "exec": "run", "call": "run", "logs": "ledger list", "status": "doctor", "install": "plugins register",
		"approve": "approvals approve", "start": "serve", "rm": "plugins delete", "rnu": "run", "LS": "plugins list",
		"agents ls": "list", "agents rm": "delete", "agents get": "show", "agents add": "create", "agents lst": "list",
		"accounts rm": "remove", "accounts delete": "remove", "reference create": "add", "plugins install": "register",
		"calls stop": "cancel", "calls tail": "follow", "approvals reject": "deny", "secrets add": "set", "identities add": "link",
		"feeds stop": "pause", "feeds start": "resume", "artifacts cat": "get", "policy add": "put",
	} {
		words := strings.Fields(given)
		group := root
		if len(words) == 2 {
			group, _, _ = root.Find(words[:1])
		}
		err := noCommand(group, words[len(words)-1])
		if !strings.Contains(err.Error(), "did you mean "+want+"?") {
			t.Errorf("%s: %v", given, err)
		}
	}
	for _, given := range []string{"zzzz", "agents zzzz"} {
		words := strings.Fields(given)
		group, _, _ := root.Find(words[:len(words)-1])
		if err := noCommand(group, "zzzz"); strings.Contains(err.Error(), "did you mean") {
			t.Errorf("%s: %v", given, err)
		}
	}
}

// TestEverySynonymLeadsSomewhere: each word that is suggested is a command of some group.
func TestEverySynonymLeadsSomewhere(t *testing.T) {
	t.Parallel()
	_, root := newCommand()
	groups := []*cobra.Command{root}
	for _, cmd := range root.Commands() {
		if cmd.HasSubCommands() {
			groups = append(groups, cmd)
		}
	}
	for word, here := range view.AllSynonyms() {
		for _, name := range here {
			found := false
			for _, group := range groups {
				cmd, rest, err := group.Find(strings.Fields(name))
				found = found || err == nil && len(rest) == 0 && cmd != group
			}
			if !found {
				t.Errorf("%s: there is no command %s", word, name)
			}
		}
	}
}
