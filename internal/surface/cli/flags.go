package cli

import (
	"cmp"
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/plugin"
)

// labelFlag adds the flag that says what something is tainted with: what is "it is" or the like.
func labelFlag(cmd *cobra.Command, labels *[]string, what string) {
	cmd.Flags().StringArrayVar(labels, "label", nil, "what "+what+" tainted with: untrusted or private (repeatable)")
}

func checkLabels(labels []string) error {
	for _, label := range labels {
		if label != plugin.Untrusted && label != plugin.Private {
			return usage{fmt.Errorf("--label %s: there are %s and %s", label, plugin.Untrusted, plugin.Private)}
		}
	}
	return nil
}

// agentFlag adds a flag that names an agent.
func (c *command) agentFlag(cmd *cobra.Command, id *string, use string) {
	cmd.Flags().StringVar(id, "agent", "", use)
	_ = cmd.RegisterFlagCompletionFunc("agent", func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		return c.agentIDs(cmd), cobra.ShellCompDirectiveNoFileComp
	})
}

// sessionFlag adds the flag that says which session is meant.
func (c *command) sessionFlag(cmd *cobra.Command, session *string) {
	cmd.Flags().StringVar(session, "session", "", "the session's id (or MORTISE_SESSION)")
	_ = cmd.RegisterFlagCompletionFunc("session", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return c.completeSessions(cmd, nil, typed)
	})
}

// whichSession returns the session that is meant.
func whichSession(flag string) (string, error) {
	if id := cmp.Or(flag, os.Getenv("MORTISE_SESSION")); id != "" {
		return id, nil
	}
	return "", usage{errors.New("which session? --session or MORTISE_SESSION says; 'mortise sessions create' begins one")}
}

// reasonFlag adds the flag that says why something is decided.
func reasonFlag(cmd *cobra.Command, reason *string) {
	cmd.Flags().StringVar(reason, "reason", "", "why, for the record")
}

// setFlag adds the flag that sets members of the input.
func setFlag(cmd *cobra.Command, set *[]string) {
	cmd.Flags().StringArrayVarP(set, "set", "s", nil, "set a member of the input: key=value, or outer.inner=value (repeatable)")
}

// planWaitFlag adds the flag that stays until a plan has ended.
func planWaitFlag(cmd *cobra.Command, wait *bool) {
	cmd.Flags().BoolVar(wait, "wait", false, "stay until the plan has ended, and show each step as it ends")
}

// An idempotencyKey is the value of --key. One that is given is not empty: a script whose
// variable is unset would run without a key.
type idempotencyKey struct{ to *string }

// String implements [pflag.Value].
func (k idempotencyKey) String() string {
	if k.to == nil {
		return ""
	}
	return *k.to
}

// Type implements [pflag.Value].
func (k idempotencyKey) Type() string { return "string" }

// Set implements [pflag.Value].
func (k idempotencyKey) Set(text string) error {
	if text == "" {
		return errors.New("the key is not 1 to 255 printable ASCII characters")
	}
	*k.to = text
	return nil
}
