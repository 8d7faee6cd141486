package host

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/mortise-dev/mortise/internal/base/principal"
	"github.com/mortise-dev/mortise/internal/service/account"
	"github.com/mortise-dev/mortise/internal/service/bridge"
	"github.com/mortise-dev/mortise/internal/service/secret"
	"github.com/mortise-dev/mortise/plugin"
)

// A SecretInfo is a secret without its value, and a SecretRotation a change of the key that
// all are encrypted with.
type (
	SecretInfo     = secret.Info
	SecretRotation = secret.Rotation
)

// What secrets are kept with, and how long a value may be.
const (
	SecretOfUser   = secret.User   // the scope of one that is a principal's own
	SecretOfSystem = secret.System // the scope of one that is for every principal
	EveryPlugin    = secret.Anyone // the plugin of one that is for all of them
	MaxSecret      = secret.MaxValue
)

// SecretsPlugin is what stands for the secrets themselves where policy is asked
// who may configure them.
const SecretsPlugin = "mortise.secrets"

// Secrets are the secrets of the host's tenant, as one principal may see and
// change them: their own, and with the right to configure everybody's and those
// of the system. What is refused is on the record.
type Secrets struct {
	g       *Guard
	by      plugin.Principal
	vault   *secret.Vault
	plugins Plugins
}

// A SecretPlace says which secret is meant. The zero value of all but the name
// is one's own, for all plugins.
type SecretPlace struct {
	Name   string
	Plugin string // "" for all
	User   string // as the configuration names them; "" for oneself
	System bool
}

// setSecret is the action of [Secrets.Set]. A secret is kept for a principal that the
// configuration names, and deleted for one that it named.
const setSecret = "set"

// Set keeps a secret, in place of an earlier one.
func (s Secrets) Set(ctx context.Context, p SecretPlace, value string) (secret.Info, error) {
	name, err := s.place(ctx, p, setSecret)
	if err != nil {
		return secret.Info{}, err
	}
	if name.Owner == SignInsPlugin {
		if err := s.checkSignIn(ctx, name, value); err != nil {
			return secret.Info{}, err
		}
	}
	if err := s.mayProve(ctx, name); err != nil {
		return secret.Info{}, err
	}
	if err := s.vault.Ready(ctx); err != nil {
		return secret.Info{}, err
	}
	return infoOf(name), s.g.Store.Write(ctx, func(tx Tx) error {
		if most := s.g.MostSecrets; most > 0 {
			had, err := tx.Secret(ctx, name)
			if err == nil && had == nil {
				var n int
				n, err = tx.Owned(ctx, ownedSecrets, name.Tenant, most, name.Scope, name.Subject)
				err = errors.Join(err, ownedSecrets.Most(n, most, "limits.principal_secrets"))
			}
			if err != nil {
				return err
			}
		}
		return s.vault.PutIn(ctx, tx, name, secret.Value{Text: value}, s.evidence())
	})
}

// mayProve refuses who may not link identities and let others in, for the secret by which the
// deliveries of a channel prove who sent them: who knows it is each of the channel's senders.
func (s Secrets) mayProve(ctx context.Context, name secretName) error {
	if name.Scope != secret.System || name.Owner != secret.Anyone {
		return nil
	}
	rows, err := s.g.Store.Agents(ctx, s.g.Tenant)
	if err != nil {
		return err
	}
	for i := range rows {
		for _, channel := range agentOf(&rows[i]).Settings.Channels {
			if strings.TrimSuffix(name.Name, ".next") == channel.Secret || name.Name == channel.Secret {
				u := s.use("set", name.Name)
				u.what = "set the secret of a channel"
				return s.g.maySetSenders(ctx, s.by, s.plugins.caller, u)
			}
		}
	}
	return nil
}

// infoOf is what may be said of a secret.
func infoOf(n secretName) secret.Info {
	return secret.Info{Name: n.Name, Plugin: n.Owner, Scope: n.Scope, Subject: member(n.Subject)}
}

// member returns a subject as the configuration names principals.
func member(subject string) string { return principal.Name(principal.Parse(subject)) }

// Delete takes a secret away.
func (s Secrets) Delete(ctx context.Context, p SecretPlace) (secret.Info, error) {
	name, err := s.place(ctx, p, "delete")
	if err != nil {
		return secret.Info{}, err
	}
	found, err := s.vault.Delete(ctx, name, s.evidence())
	if err == nil && !found {
		err = plugin.Errorf(plugin.CodeNotFound, "there is no secret %.128q of that scope; 'mortise secrets list' shows all there are", p.Name)
	}
	return infoOf(name), err
}

// mayAll refuses who may not change the keys of secrets, which are those of all tenants:
// the owner of the site has them, and no one of another tenant.
func (s Secrets) mayAll(ctx context.Context, action string) error {
	if s.g.Divided {
		u := use{kind: plugin.EntrySecretRefused, subject: "*", action: action}
		return s.g.refuse(ctx, s.by, u, plugin.Errorf(plugin.CodePolicyDenied, "the keys of secrets are the site's, and not of a tenant"), plugin.Decision{})
	}
	return s.may(ctx, action, "*")
}

// DeleteAll takes all secrets away, with their keys.
func (s Secrets) DeleteAll(ctx context.Context) (int, error) {
	if err := s.mayAll(ctx, "delete all"); err != nil {
		return 0, err
	}
	return s.vault.DeleteAll(ctx, s.g.Tenant, s.evidence())
}

// Rotate replaces the keys and encrypts everything again.
func (s Secrets) Rotate(ctx context.Context) (secret.Rotation, error) {
	if err := s.mayAll(ctx, "rotate"); err != nil {
		return secret.Rotation{}, err
	}
	return s.vault.Rotate(ctx, s.g.Tenant, s.evidence())
}

// All reports whether they may see and change the secrets of everybody and of the system.
func (s Secrets) All() bool { return s.g.right(SecretsPlugin, s.by).Verdict == plugin.Allow }

// List returns what may be seen of the secrets, by name: one's own and, with the
// right to configure, all.
func (s Secrets) List(ctx context.Context) ([]secret.Info, error) {
	all, err := s.vault.List(ctx, s.g.Tenant)
	if err != nil {
		return nil, err
	}
	all = slices.DeleteFunc(all, func(i secret.Info) bool { return i.Plugin == account.SecretOwner || i.Plugin == SignInsPlugin })
	if own := secret.Subject(s.by); !s.All() {
		all = slices.DeleteFunc(all, func(i secret.Info) bool { return i.Scope != secret.User || i.Subject != own })
	}
	for i := range all {
		all[i].Subject = member(all[i].Subject)
	}
	return all, nil
}

// A SecretState is a secret that an operation needs, and whether it is there.
type SecretState struct {
	Plugin    string `json:"plugin"`
	Version   string `json:"version"`
	Operation string `json:"operation"`
	Name      string `json:"name"`
	Scope     string `json:"allowed_scope"`
	Optional  bool   `json:"optional"`
	There     string `json:"there"` // the scope in which it is, "" where it is missing
}

// Check returns the secrets that the operations of a plugin need, or of all
// plugins where none is named.
func (s Secrets) Check(ctx context.Context, name string) ([]SecretState, error) {
	infos, err := s.plugins.List(ctx)
	if err != nil {
		return nil, err
	}
	states, found := []SecretState{}, false
	for _, info := range infos {
		if name != "" && info.Name != name {
			continue
		}
		found = true
		m := info.Plugin()
		for _, op := range m.Operations {
			own, err := secretStates(ctx, s.vault, s.g.Tenant, s.by, m, op)
			if err != nil {
				return nil, err
			}
			states = append(states, own...)
		}
	}
	if name != "" && !found {
		return nil, plugin.Errorf(plugin.CodeNotFound, "no plugin is called %.200s", name)
	}
	return states, nil
}

// secretStates returns the secrets that an operation needs of a principal, and whether each is
// there.
func secretStates(ctx context.Context, vault *secret.Vault, tenant string, by plugin.Principal, m *plugin.Manifest, op *plugin.Operation) ([]SecretState, error) {
	var states []SecretState
	for _, need := range bridge.SecretNeeds(m, op) {
		there, err := vault.Where(ctx, secret.NeedOf(tenant, m.Name, by, need.Name, need.AllowedScope))
		if err != nil {
			return nil, err
		}
		states = append(states, SecretState{m.Name, m.Version, op.Name, need.Name, need.AllowedScope, need.Optional, there})
	}
	return states, nil
}

// place returns where a secret is kept, if it may be changed there.
func (s Secrets) place(ctx context.Context, p SecretPlace, what string) (secretName, error) {
	n := secretName{Tenant: s.g.Tenant, Owner: p.Plugin, Scope: secret.User, Subject: secret.Subject(s.by), Name: p.Name}
	if n.Owner == "" {
		n.Owner = secret.Anyone
	}
	switch {
	case p.Plugin == account.SecretOwner:
		return n, plugin.Errorf(plugin.CodeInvalidInput, "accounts are connected and removed, and not set: mortise connect, mortise accounts remove")
	case p.Plugin == SignInsPlugin && !p.System:
		return n, plugin.Errorf(plugin.CodeInvalidInput, "sign-ins are of the system: mortise mcp sign-in, mortise mcp sign-out")
	case p.System && p.User != "":
		return n, plugin.Errorf(plugin.CodeInvalidInput, "a secret is a user's or the system's, not both")
	case p.System:
		n.Scope, n.Subject = secret.System, ""
	case p.User != "":
		n.Subject = secret.Subject(principal.Parse(p.User))
	}
	if n.Scope == secret.User && n.Subject == secret.Subject(s.by) {
		return n, s.recent(ctx, what, p.Name)
	}
	if err := s.may(ctx, what, p.Name); err != nil {
		return n, err
	}
	if what == setSecret && p.User != "" && !s.g.Known(s.g.Tenant, principal.Parse(p.User)) {
		return n, plugin.Errorf(plugin.CodeNotFound, "there is no principal %.255q; mortise.yaml names %s", p.User, strings.Join(s.g.now().names, ", "))
	}
	return n, nil
}

func (s Secrets) evidence() secret.By { return secret.By{Principal: principal.Name(s.by)} }

// may refuses an unauthorized principal, and an old sign-in, and records the refusal.
func (s Secrets) may(ctx context.Context, what, name string) error {
	if err := s.g.authorise(ctx, s.by, s.g.part(SecretsPlugin), s.use(what, name)); err != nil {
		return err
	}
	return s.recent(ctx, what, name)
}

func (s Secrets) recent(ctx context.Context, what, name string) error {
	return s.g.recent(ctx, s.plugins.caller, s.use(what, name))
}

func (s Secrets) use(what, name string) use {
	return use{plugin.EntrySecretRefused, name[:min(len(name), secret.MaxName)], what, what + " secrets of others"}
}
