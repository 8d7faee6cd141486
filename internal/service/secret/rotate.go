package secret

import (
	"context"
	"fmt"

	"github.com/mortise-dev/mortise/internal/base/filelock"
	"github.com/mortise-dev/mortise/plugin"
)

// rotateBatch is how many secrets are re-encrypted in one transaction.
const rotateBatch = 100

// A Rotation is what came of a change of keys.
type Rotation struct {
	Master  string `json:"master"`  // the fingerprint of the key that is used now
	Secrets int    `json:"secrets"` // how many were re-encrypted
	Resumed bool   `json:"resumed"` // an earlier change was brought to its end
}

// Rotate changes the keys: it makes another master key if that is the host's own,
// another key for secrets, and re-encrypts everything. Each step leaves everything
// readable, and the old keys stay until nothing needs them: after a crash, rotating
// again completes the change.
func (v *Vault) Rotate(ctx context.Context, tenant string, by By) (r Rotation, err error) {
	if err := v.Ready(ctx); err != nil {
		return r, err
	}
	if v.place.Own() { // two at a time would each take the other's key away
		lock, err := filelock.Try(v.place.path() + ".lock")
		if err != nil {
			return r, v.place.wrong("it cannot be locked: %w", err)
		}
		if lock == nil {
			return r, plugin.Errorf(plugin.CodeUnavailable, "another process is changing the keys of secrets; rotate again when it has finished")
		}
		defer lock.Remove()
	}
	masters, err := v.read(ctx)
	if err != nil {
		return r, err
	}
	if v.place.Own() {
		if r.Resumed = len(masters) > 1; !r.Resumed {
			if err := v.place.replace(append([]master{masterOf(newKey())}, masters...)...); err != nil {
				return r, err
			}
			if masters, err = v.read(ctx); err != nil {
				return r, err
			}
		}
	}
	r.Master = masters[0].print
	last, resumed, err := v.renew(ctx, masters[0])
	if err != nil {
		return r, err
	}
	r.Resumed = r.Resumed || resumed
	for {
		n, err := v.reencrypt(ctx, last)
		r.Secrets += n
		if err != nil {
			return r, err
		}
		if n == 0 {
			break
		}
	}
	err = v.st.Write(ctx, func(tx Tx) error {
		if _, err := tx.DeleteSecretKeys(last); err != nil {
			return err
		}
		return note(tx, plugin.EntrySecretRotated, tenant, "secrets", by, map[string]any{"master": r.Master, "key": last, "secrets": r.Secrets, "resumed": r.Resumed})
	})
	if err != nil || !v.place.Own() {
		return r, err
	}
	if err := v.forget(ctx, masters[0]); err != nil {
		return r, err
	}
	_, err = v.read(ctx)
	return r, err
}

// renew encrypts all keys with this master, and adds one unless an earlier change
// is still under way. It returns the number of the last.
func (v *Vault) renew(ctx context.Context, m master) (last int64, resumed bool, err error) {
	err = v.st.Write(ctx, func(tx Tx) error {
		last = 0
		rows, err := tx.SecretKeys(ctx)
		if err != nil {
			return err
		}
		resumed = len(rows) > 1
		for _, row := range rows {
			last = row.N
			if row.Master == m.print {
				continue
			}
			k, err := v.unwrap(ctx, row)
			if err != nil {
				return err
			}
			won, err := tx.RewrapSecretKey(row.N, row.Master, m.print, m.seal(k[:], keyPurpose(row.N)))
			if err == nil && !won {
				err = plugin.Errorf(plugin.CodeUnavailable, "another process is changing the keys of secrets; rotate again when it has finished")
			}
			if err != nil {
				return err
			}
		}
		if resumed {
			return nil
		}
		last++
		added, err := tx.InsertSecretKey(keyRow(last, newKey(), m))
		if err == nil && !added {
			err = plugin.Errorf(plugin.CodeUnavailable, "another process is changing the keys of secrets; rotate again when it has finished")
		}
		return err
	})
	return last, resumed, err
}

// reencrypt brings some of the secrets under earlier keys under the last one,
// and returns how many.
func (v *Vault) reencrypt(ctx context.Context, last int64) (n int, err error) {
	err = v.st.Write(ctx, func(tx Tx) error {
		n = 0
		keys, err := tx.SecretKeys(ctx)
		if err != nil {
			return err
		}
		rows, err := tx.Secrets(ctx, secretFilter{Before: last, Limit: rotateBatch})
		if err != nil {
			return err
		}
		unwrapped := map[int64]key{}
		for _, k := range keys {
			if unwrapped[k.N], err = v.unwrap(ctx, k); err != nil {
				return err
			}
		}
		for _, row := range rows {
			old, known := unwrapped[row.Key]
			if !known {
				return fmt.Errorf("the secret %s is encrypted with key %d, which is not there", row.Name, row.Key)
			}
			value, err := old.openValue(row.SecretName, row.Ciphertext)
			if err != nil {
				return plugin.Errorf(plugin.CodeUnavailable, "the secret %s of %s cannot be decrypted: %w; delete it or set it again, then rotate again", row.Name, row.Tenant, err)
			}
			if row.Ciphertext, err = unwrapped[last].sealValue(row.SecretName, value); err != nil {
				return err
			}
			row.Key = last
			current, err := tx.PutSecret(row)
			if err == nil && !current {
				err = plugin.Errorf(plugin.CodeUnavailable, "another process is changing the keys of secrets; rotate again when it has finished")
			}
			if err != nil {
				return err
			}
			n++
		}
		return nil
	})
	return n, err
}

// forget takes the old masters out of the host's own file, once no key in the
// store needs them.
func (v *Vault) forget(ctx context.Context, m master) error {
	keys, err := v.st.SecretKeys(ctx)
	if err != nil {
		return err
	}
	for _, k := range keys {
		if k.Master != m.print {
			return plugin.Errorf(plugin.CodeUnavailable, "key %d of the secrets is not encrypted with the new master key yet; rotate again", k.N)
		}
	}
	return v.place.replace(m)
}

// DeleteAll takes away all secrets with their keys: the way out where the master
// key is lost.
func (v *Vault) DeleteAll(ctx context.Context, tenant string, by By) (n int, err error) {
	err = v.st.Write(ctx, func(tx Tx) error {
		rows, err := tx.Secrets(ctx, secretFilter{})
		if err != nil {
			return err
		}
		n = len(rows)
		for _, row := range rows {
			if _, err := tx.DeleteSecret(row.SecretName); err != nil {
				return err
			}
			if err := note(tx, plugin.EntrySecretDeleted, row.Tenant, row.Name, by, evidence(row.SecretName, by)); err != nil {
				return err
			}
		}
		keys, err := tx.SecretKeys(ctx)
		if err != nil || len(keys) == 0 {
			return err
		}
		_, err = tx.DeleteSecretKeys(keys[len(keys)-1].N + 1)
		return err
	})
	return n, err
}
