package bridge

import (
	"context"
	"encoding/json"
	"strings"

	json2 "github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/core/placeholder"
	"github.com/mortise-dev/mortise/internal/service/account"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/plugin"
)

// A Filler fills in what the input of a call leaves to the host: secrets, what the
// caller is called elsewhere, and what an administrator wrote for the plugin.
type Filler struct {
	Vault    *secret.Vault
	Accounts *account.Accounts
	Env      map[string]map[string]string // of plugins, by name

	// Subscribed refuses a call of a plugin that may not act for its principal.
	Subscribed func(ctx context.Context, t *plugin.Target, call *plugin.Call) error

	// Identity tells who a call is of.
	Identity func(ctx context.Context, call *plugin.Call, field string) (value string, found bool, err error)
}

// Fill refuses a call whose secrets or accounts are not there, and returns the
// input that its plugin gets, with the labels of what it fills in.
func (f Filler) Fill(ctx context.Context, t *plugin.Target, call *plugin.Call) (input json.RawMessage, labels []string, err error) {
	if f.Subscribed != nil {
		if err := f.Subscribed(ctx, t, call); err != nil {
			return nil, nil, err
		}
	}
	gaps, err := placeholder.Gaps(t.Operation, call.Input)
	if err != nil {
		return nil, nil, plugin.Errorf(plugin.CodeInvalidInput, "%s: input: %w", t.Name(), err)
	}
	needs, err := secretsOf(t, gaps)
	if err != nil {
		return nil, nil, err
	}
	if len(needs) > 0 {
		if err := f.present(ctx, t, call, needs); err != nil {
			return nil, nil, err
		}
	}
	if err := CheckAccounts(ctx, f.Accounts, t, call); err != nil {
		return nil, nil, err
	}
	if len(gaps) == 0 {
		return call.Input, nil, nil
	}
	values := map[placeholder.Gap]string{}
	for _, gap := range gaps {
		value, found, err := f.value(ctx, t, call, gap)
		if err != nil {
			return nil, nil, err
		}
		if found {
			values[gap], labels = value.Text, plugin.Labels(labels, value.Labels)
		}
	}
	input, err = placeholder.Fill(call.Input, values)
	return input, labels, err
}

// Judged returns the input of a call as policy judges it, and the labels of the
// secrets that the host fills in. Those of a secret that cannot be read are not
// known, and it counts as untrusted.
func (f Filler) Judged(ctx context.Context, t *plugin.Target, call *plugin.Call) (input json.RawMessage, labels []string, err error) {
	if input, err = f.Seen(ctx, t, call); err != nil || len(t.Operation.Secrets) == 0 {
		return input, nil, err
	}
	gaps, err := placeholder.Gaps(t.Operation, call.Input)
	if err != nil {
		return nil, nil, err
	}
	for _, gap := range gaps {
		if _, declared := t.Operation.Secrets[gap.Name]; gap.Source != placeholder.Secret || !declared { // Fill refuses the latter
			continue
		}
		value, _, err := f.value(ctx, t, call, gap)
		if err != nil { // for which Fill refuses the call
			value.Labels = []string{plugin.Untrusted}
		}
		labels = plugin.Labels(labels, value.Labels)
	}
	return input, labels, nil
}

// Seen returns the input of a call as a person is shown it.
func (f Filler) Seen(ctx context.Context, t *plugin.Target, call *plugin.Call) (json.RawMessage, error) {
	return placeholder.Seen(t.Operation, call.Input, func(gap placeholder.Gap) (string, bool, error) {
		value, found, err := f.value(ctx, t, call, gap)
		return value.Text, found, err
	})
}

// secretsOf returns the secrets that a call needs: those of [SecretNeeds], and those that its
// input names. Only a secret that the operation declares may stand in its input.
func secretsOf(t *plugin.Target, gaps []placeholder.Gap) ([]SecretNeed, error) {
	needs := SecretNeeds(t.Manifest, t.Operation)
	for _, gap := range gaps {
		if gap.Source != placeholder.Secret {
			continue
		}
		need, declared := t.Operation.Secrets[gap.Name]
		if !declared {
			return nil, plugin.Errorf(plugin.CodeServiceDenied, "%s declares no secret %.128q, so none of its input can stand for one; name it in its manifest, under op_auth: %s: secrets or, natively, operations: %s: secrets",
				t.Name(), gap.Name, t.Operation.Name, t.Operation.Name)
		}
		if gap.Property == "" { // who names it wants it
			need.Optional = false
			needs = withNeed(needs, gap.Name, need)
		}
	}
	return needs, nil
}

// present refuses a call whose secrets are not there.
func (f Filler) present(ctx context.Context, t *plugin.Target, call *plugin.Call, needs []SecretNeed) error {
	var missing, scopes []string
	for _, need := range needs {
		if need.Optional {
			continue
		}
		n := secret.NeedOf(call.Tenant, t.Manifest.Name, call.Principal, need.Name, need.AllowedScope)
		there, err := f.Vault.Where(ctx, n)
		if err != nil {
			return err
		}
		if there == "" {
			missing, scopes = append(missing, need.Name), append(scopes, n.Scope)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	whose := ""
	if scopes[0] == plugin.SecretOfSystem {
		whose = " --system"
	}
	details, err := json2.Marshal(map[string]any{"missing": missing, "scopes": scopes}, json2.Deterministic(true))
	if err != nil {
		return err
	}
	e := plugin.Errorf(plugin.CodeMissingSecrets, "%s needs %s, which %s not set for %s; 'mortise secrets set %s --plugin %s%s' sets one",
		t.Name(), strings.Join(missing, ", "), isOrAre(len(missing)), principal.Name(call.Principal), missing[0], t.Manifest.Name, whose)
	e.Details = json.RawMessage(details)
	return e
}

func isOrAre(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// value returns what fills a gap. One that a schema asks for may be missing: the
// schema says whether the operation does without.
func (f Filler) value(ctx context.Context, t *plugin.Target, call *plugin.Call, gap placeholder.Gap) (value secret.Value, found bool, err error) {
	switch gap.Source {
	case placeholder.Identity:
		value.Text, found, err = f.Identity(ctx, call, gap.Name)
		return value, found, err
	case placeholder.Env:
		value.Text, found = f.Env[t.Manifest.Name][gap.Name]
		return value, found, nil
	}
	n := secret.NeedOf(call.Tenant, t.Manifest.Name, call.Principal, gap.Name, t.Operation.Secrets[gap.Name].AllowedScope)
	return f.Vault.Get(ctx, n)
}
