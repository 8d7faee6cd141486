package secret

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/go-json-experiment/json"

	"github.com/mortise-dev/mortise/plugin"
)

// A Vault keeps secrets in a store. It is safe for concurrent use.
type Vault struct {
	st       Store
	place    Place
	scrubber *Scrubber

	mu      sync.Mutex // guards masters
	masters []master   // as the place had them last
}

// New returns a vault. What it gives out is told to the scrubber.
func New(st Store, place Place, scrubber *Scrubber) *Vault {
	return &Vault{st: st, place: place, scrubber: scrubber}
}

// A By is who changes a secret, for the ledger.
type By struct {
	Principal string
	Plugin    string // that asked for it; "" for a person
	Call      string
}

// Find is Get for the host's own use. What it returns reaches no plugin: its
// labels are lost.
func (v *Vault) Find(ctx context.Context, n Need) (value string, found bool, err error) {
	is, found, err := v.Get(ctx, n)
	return is.Text, found, err
}

// Get returns the secret that an operation needs, if there is one in a scope that
// it may read. Whatever learns the value inherits its labels.
func (v *Vault) Get(ctx context.Context, n Need) (value Value, found bool, err error) {
	row, err := v.find(ctx, n)
	if err != nil || row == nil {
		return Value{}, false, err
	}
	keys, err := v.st.SecretKeys(ctx)
	if err != nil {
		return Value{}, false, err
	}
	if !has(keys, row.Key) { // it was re-encrypted in the meantime
		if row, err = v.st.Secret(ctx, row.SecretName); err != nil || row == nil {
			return Value{}, false, err
		}
	}
	if value, err = v.decrypt(ctx, keys, row); err != nil {
		return Value{}, false, err
	}
	if err := v.scrubber.Keep(n.Tenant+"/"+n.Plugin, value.Text); err != nil {
		return Value{}, false, err
	}
	return value, true, nil
}

// Learn has tokens, which are a part of what is kept, taken out of everything that the host says.
func (v *Vault) Learn(values ...string) (err error) {
	for _, value := range values {
		err = errors.Join(err, v.scrubber.Learn(value))
	}
	return err
}

func has(keys []secretKeyRow, n int64) bool {
	return slices.ContainsFunc(keys, func(k secretKeyRow) bool { return k.N == n })
}

// Where returns the scope in which the secret is that an operation needs, "" if
// it is nowhere that the operation may read.
func (v *Vault) Where(ctx context.Context, n Need) (string, error) {
	row, err := v.find(ctx, n)
	if err != nil || row == nil {
		return "", err
	}
	return row.Scope, nil
}

func (v *Vault) find(ctx context.Context, n Need) (*secretRow, error) {
	for _, name := range n.places() {
		if row, err := v.st.Secret(ctx, name); err != nil || row != nil {
			return row, err
		}
	}
	return nil, nil
}

// List returns what may be seen of a tenant's secrets, by name. It does not run a
// command that prints the master key only to show labels.
func (v *Vault) List(ctx context.Context, tenant string) ([]Info, error) {
	rows, err := v.st.Secrets(ctx, secretFilter{Tenant: tenant})
	if err != nil {
		return nil, err
	}
	keys, err := v.st.SecretKeys(ctx)
	if err != nil {
		return nil, err
	}
	open := len(v.place.Command) == 0 || len(v.known()) > 0
	all := make([]Info, len(rows))
	for i := range rows {
		all[i] = infoOf(&rows[i])
		if !open {
			continue
		}
		value, err := v.decrypt(ctx, keys, &rows[i])
		open = err == nil || errors.Is(err, errSealed)
		all[i].Labels = value.Labels
	}
	return all, nil
}

// Ready makes sure that there is a master key, and makes the host's own where
// nothing is encrypted yet.
func (v *Vault) Ready(ctx context.Context) error {
	masters, err := v.read(ctx)
	if err != nil || len(masters) > 0 {
		return err
	}
	keys, err := v.st.SecretKeys(ctx)
	if err != nil {
		return err
	}
	if len(keys) > 0 {
		return v.missing(keys[len(keys)-1].Master)
	}
	if err := v.place.create(); err != nil {
		return err
	}
	_, err = v.read(ctx)
	return err
}

// Put keeps a secret, in place of an earlier one, with its entry.
func (v *Vault) Put(ctx context.Context, n Name, value string, by By) error {
	if err := check(n, value); err != nil {
		return err
	}
	if err := v.Ready(ctx); err != nil {
		return err
	}
	return v.st.Write(ctx, func(tx Tx) error { return v.PutIn(ctx, tx, n, Value{Text: value}, by) })
}

// Replace is Put where the secret still has the value was: one that was deleted or set meanwhile
// stays as it is. It reports whether it was.
func (v *Vault) Replace(ctx context.Context, n Name, was, value string, by By) (replaced bool, err error) {
	if err := check(n, value); err != nil {
		return false, err
	}
	err = v.st.Write(ctx, func(tx Tx) error {
		replaced = false
		row, err := tx.Secret(keeping(ctx), n)
		if err != nil || row == nil {
			return err
		}
		keys, err := tx.SecretKeys(ctx)
		if err != nil {
			return err
		}
		if now, err := v.decrypt(ctx, keys, row); err != nil || now.Text != was {
			return err
		}
		replaced = true
		return v.PutIn(ctx, tx, n, Value{Text: value}, by)
	})
	return replaced && err == nil, err
}

// PutIn is Put in a transaction of the caller's, once the vault is ready, for a
// value that may have labels. Those of an earlier value go with it: no part of it
// is left.
func (v *Vault) PutIn(ctx context.Context, tx Tx, n Name, value Value, by By) error {
	if err := check(n, value.Text); err != nil {
		return err
	}
	k, number, err := v.current(ctx, tx)
	if err != nil {
		return err
	}
	sealed, err := k.sealValue(n, value)
	if err != nil {
		return err
	}
	current, err := tx.PutSecret(secretRow{SecretName: n, Ciphertext: sealed, Key: number, UpdatedAt: now()})
	switch {
	case err != nil:
		return err
	case !current:
		return plugin.Errorf(plugin.CodeUnavailable, "the keys of secrets are being changed; set %s again", n.Name)
	}
	body := evidence(n, by)
	if len(value.Labels) > 0 {
		body["labels"] = value.Labels
	}
	return note(tx, plugin.EntrySecretSet, n.Tenant, n.Name, by, body)
}

// Delete reports whether there was such a secret to take away.
func (v *Vault) Delete(ctx context.Context, n Name, by By) (found bool, err error) {
	err = v.st.Write(ctx, func(tx Tx) (err error) {
		if found, err = tx.DeleteSecret(n); err != nil || !found {
			return err
		}
		return note(tx, plugin.EntrySecretDeleted, n.Tenant, n.Name, by, evidence(n, by))
	})
	return found, err
}

// DeleteIn is Delete in a transaction of the caller's. It returns the labels of
// what it deleted; a secret that cannot be decrypted counts as untrusted.
func (v *Vault) DeleteIn(ctx context.Context, tx Tx, n Name, by By) (found bool, labels []string, err error) {
	row, err := tx.Secret(ctx, n)
	if err != nil || row == nil {
		return false, nil, err
	}
	keys, err := tx.SecretKeys(ctx)
	if err != nil {
		return false, nil, err
	}
	was, err := v.decrypt(ctx, keys, row)
	if labels = was.Labels; err != nil {
		labels = []string{plugin.Untrusted}
	}
	if found, err = tx.DeleteSecret(n); err != nil || !found {
		return false, nil, err
	}
	return true, labels, note(tx, plugin.EntrySecretDeleted, n.Tenant, n.Name, by, evidence(n, by))
}

// current returns the key for new secrets, and makes the first.
func (v *Vault) current(ctx context.Context, tx Tx) (k key, number int64, err error) {
	rows, err := tx.SecretKeys(ctx)
	if err != nil {
		return k, 0, err
	}
	if len(rows) > 0 {
		last := rows[len(rows)-1]
		k, err = v.unwrap(ctx, last)
		return k, last.N, err
	}
	masters, err := v.read(ctx) // what was known of it may be over
	if err != nil {
		return k, 0, err
	}
	if len(masters) == 0 {
		return k, 0, v.missing("")
	}
	k = newKey()
	added, err := tx.InsertSecretKey(keyRow(1, k, masters[0]))
	if err == nil && !added {
		err = plugin.Errorf(plugin.CodeUnavailable, "another host is setting the first secret; set it again")
	}
	return k, 1, err
}

func keyRow(n int64, k key, m master) secretKeyRow {
	return secretKeyRow{N: n, Master: m.print, Wrapped: m.seal(k[:], keyPurpose(n)), CreatedAt: now()}
}

// decrypt returns the value of a secret.
func (v *Vault) decrypt(ctx context.Context, keys []secretKeyRow, r *secretRow) (Value, error) {
	i := slices.IndexFunc(keys, func(k secretKeyRow) bool { return k.N == r.Key })
	if i < 0 {
		return Value{}, fmt.Errorf("the secret %s is encrypted with key %d, which is not there", r.Name, r.Key)
	}
	k, err := v.unwrap(ctx, keys[i])
	if err != nil {
		return Value{}, err
	}
	value, err := k.openValue(r.SecretName, r.Ciphertext)
	if err != nil {
		return Value{}, plugin.Errorf(plugin.CodeUnavailable, "the secret %s cannot be decrypted: %w; set it again", r.Name, err)
	}
	return value, nil
}

// unwrap returns a key of secrets.
func (v *Vault) unwrap(ctx context.Context, row secretKeyRow) (k key, err error) {
	m, err := v.master(ctx, row.Master)
	if err != nil {
		return k, err
	}
	raw, err := m.open(row.Wrapped, keyPurpose(row.N))
	if err != nil || len(raw) != len(k) {
		return k, plugin.Errorf(plugin.CodeUnavailable, "key %d of the secrets cannot be decrypted: it was changed in the database; restore that from its backup", row.N)
	}
	return key(raw), nil
}

// master returns the key of that fingerprint; one that is not known is looked
// for again, since it may have been changed elsewhere.
func (v *Vault) master(ctx context.Context, fingerprint string) (master, error) {
	is := func(m master) bool { return m.print == fingerprint }
	masters := v.known()
	if i := slices.IndexFunc(masters, is); i >= 0 {
		return masters[i], nil
	}
	masters, err := v.read(ctx)
	if err != nil {
		return master{}, err
	}
	if i := slices.IndexFunc(masters, is); i >= 0 {
		return masters[i], nil
	}
	return master{}, v.missing(fingerprint)
}

func (v *Vault) known() []master {
	v.mu.Lock()
	defer v.mu.Unlock()
	return v.masters
}

// read reads the place again.
func (v *Vault) read(ctx context.Context) ([]master, error) {
	masters, err := v.place.read(ctx)
	if err != nil {
		return nil, err
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.masters = masters
	return masters, nil
}

// missing says that a master key is not where it should be.
func (v *Vault) missing(fingerprint string) error {
	what := "restore it from its backup, or copy it from the host that made it"
	if !v.place.Own() {
		what = "put that key there too, on a line of its own after the one that is used"
	}
	if fingerprint != "" {
		fingerprint = " with the fingerprint " + fingerprint
	}
	return plugin.Errorf(plugin.CodeUnavailable, "the secrets cannot be used: they are encrypted with the master key%s, and %s does not have it; %s. "+
		"Without it the secrets are lost and have to be set again, after 'mortise secrets delete --all'", fingerprint, v.place, what)
}

// evidence is what the ledger keeps of a secret: never its value.
func evidence(n Name, by By) map[string]any {
	body := map[string]any{"name": n.Name, "plugin": n.Owner, "scope": n.Scope, "subject": n.Subject}
	if by.Call != "" {
		body["call_id"], body["set_by"] = by.Call, by.Plugin
	}
	return body
}

func note(tx Tx, kind plugin.EntryKind, tenant, subject string, by By, body map[string]any) error {
	raw, err := json.Marshal(body, json.Deterministic(true))
	if err != nil {
		return err
	}
	tx.Append(plugin.Entry{At: now(), Tenant: tenant, Kind: kind, Subject: subject, Principal: by.Principal, Body: raw})
	return nil
}

func now() time.Time { return time.Now().UTC().Truncate(time.Microsecond) }
