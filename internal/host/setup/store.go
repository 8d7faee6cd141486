package setup

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	sqlite3 "modernc.org/sqlite/lib"

	"github.com/mortise-dev/mortise/internal/agent/plan"
	"github.com/mortise-dev/mortise/internal/core/ledger"
	"github.com/mortise-dev/mortise/internal/host/config"
	"github.com/mortise-dev/mortise/internal/store"
	"github.com/mortise-dev/mortise/internal/store/postgres"
	"github.com/mortise-dev/mortise/internal/store/sqlite"
	"github.com/mortise-dev/mortise/plugin"
)

// ChooseDatabase returns where a host's state is: what was asked for, or else
// what the configuration of the data directory says.
func ChooseDatabase(asked string, configured config.Database) (config.Database, error) {
	d := config.Database(asked)
	if d == "" {
		d = configured
	}
	if err := d.Check(); err != nil {
		return "", &Error{fmt.Errorf("%w; --database, MORTISE_DATABASE and database in %s say which", err, config.FileName)}
	}
	return d, nil
}

// OpenStore opens the store of a host, and the reserve of its disk; a database
// elsewhere has none.
func OpenStore(ctx context.Context, home string, d config.Database, lease time.Duration) (store.Store, *store.Reserve, error) {
	if d == "" {
		reserve := store.NewReserve(home, store.ReserveSize)
		st, err := sqlite.Open(ctx, home, sqlite.Options{Reserve: reserve})
		return st, reserve, others(home, err)
	}
	st, err := postgres.Open(ctx, d.URL(), postgres.Options{Home: home, Lease: lease})
	if err != nil {
		return nil, nil, away(d, err)
	}
	return st, nil, nil
}

// Reading opens the store of a host for reading alone. Where there is nothing
// to read the error's code is not_found.
func Reading(ctx context.Context, home string, d config.Database) (store.Store, error) {
	if d != "" {
		st, err := postgres.Open(ctx, d.URL(), postgres.Options{Home: home, ReadOnly: true})
		if err != nil {
			return nil, away(d, err)
		}
		return st, nil
	}
	if _, err := os.Stat(filepath.Join(home, sqlite.File)); errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR) {
		return nil, plugin.Errorf(plugin.CodeNotFound, "there is no ledger in %s yet; --home or MORTISE_HOME names another data directory", home)
	}
	st, err := sqlite.Open(ctx, home, sqlite.Options{ReadOnly: true})
	return st, others(home, err)
}

// others says of a store that could not be opened whose it is, where this user may not read
// its file.
func others(home string, err error) error {
	if err == nil {
		return nil
	}
	file, denied := os.Open(filepath.Join(home, sqlite.File))
	if denied == nil {
		return errors.Join(err, file.Close())
	}
	if !errors.Is(denied, fs.ErrPermission) {
		return err
	}
	return foreign(home)
}

// foreign says that a data directory is not this user's.
func foreign(home string) error {
	return plugin.Errorf(plugin.CodeUnavailable, "%s is the data directory of another user of this machine, and not open to this one: 'mortise login --server URL' asks the host that serves it, and --home or MORTISE_HOME names another", home)
}

// A MalformedError says that the file of a database is damaged.
type MalformedError = sqlite.MalformedError

// Read does something with the store of a host, opened for reading alone. Each row is
// held against its signature, and what is read is scrubbed of secrets.
func Read(ctx context.Context, home string, d config.Database, scrubber *Scrubber, do func(store.Store) error) (err error) {
	st, err := Reading(ctx, home, d)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	return sqlite.Explain(home, do(scrubber.Guard(store.Authorised(st, home), home)))
}

// HasDatabase reports whether a data directory has a database of its own.
func HasDatabase(home string) bool {
	_, err := os.Stat(filepath.Join(home, sqlite.File))
	return err == nil
}

// SettleDead settles what hosts left that were killed, as the next host to open
// would: calls that were running are taken up again, or are unknown. It begins
// nothing, and changes nothing where no host has died, or where the database is
// not the one that this data directory knows.
func SettleDead(ctx context.Context, home string, d config.Database) (err error) {
	if d == "" {
		if _, err := os.Stat(filepath.Join(home, sqlite.File)); err != nil {
			return nil // there is nothing to settle
		}
	}
	st, _, err := OpenStore(ctx, home, d, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, st.Close()) }()
	if missed, err := store.Missed(ctx, st, home); err != nil || len(missed) > 0 {
		return err // an older copy: the next host goes into recovery, and is to see it as it is
	}
	if _, err := os.Stat(filepath.Join(home, RestoredFile)); err == nil {
		return nil // likewise
	}
	l, err := ledger.Open(ctx, st, ledger.Options{Recover: plan.RecoverPlans})
	if err != nil {
		return err
	}
	return l.Close()
}

// CheckDatabase reads the whole database of a data directory and says what is
// wrong with it. A database elsewhere is for its server to check.
func CheckDatabase(ctx context.Context, home string, d config.Database) error {
	if d != "" {
		return nil
	}
	return sqlite.Check(ctx, home)
}

// away says which database cannot be used. One that does not answer may do so
// later.
func away(d config.Database, err error) error {
	var network net.Error
	if errors.As(err, &network) {
		return plugin.Errorf(plugin.CodeUnavailable, "the database %s does not answer: %w", d, err)
	}
	return &Error{fmt.Errorf("the database %s cannot be used: %w", d, err)}
}

// AboutDatabase says for people which database it is, of which version, and
// what a commit rests on.
func AboutDatabase(ctx context.Context, home string, d config.Database) (string, error) {
	if d != "" {
		about, err := postgres.About(ctx, d.URL())
		if err != nil {
			return "", away(d, err)
		}
		return about, nil
	}
	return fmt.Sprintf("SQLite %s, %s, synchronous FULL", sqlite3.SQLITE_VERSION, filepath.Join(home, sqlite.File)), nil
}

// Wall says that a database keeps the rows of tenants apart by itself, and the error why it
// does not. SQLite cannot: there is "" for it.
func Wall(ctx context.Context, d config.Database) (string, error) {
	if d == "" {
		return "", nil
	}
	return postgres.Wall(ctx, d.URL())
}

// Writable returns nil if a write to the database reaches the disk: one that leaves
// nothing behind is tried.
func Writable(ctx context.Context, st store.Store, tenant string) error {
	key := store.KVKey{Tenant: tenant, Owner: ":doctor", Key: "write"}
	err := st.Write(ctx, func(tx store.Tx) error {
		err := tx.PutKV(store.KVRow{KVKey: key, Value: []byte("1"), UpdatedAt: time.Now().UTC()})
		_, dropped := tx.DeleteKV(key)
		return errors.Join(err, dropped)
	})
	if err != nil {
		return fmt.Errorf("nothing can be written: %w; make room on the disk, or end what keeps the database locked", err)
	}
	return nil
}

// A Seal encrypts what clients keep for the host between two requests, with a key derived from
// ledger.key, which all nodes have and the database has not.
type Seal struct{ Home string }

// Seal encrypts a value for a place.
func (s Seal) Seal(plain []byte, place ...string) ([]byte, error) {
	key, err := store.ReadKey(s.Home)
	if err != nil {
		return nil, err
	}
	return key.Seal(plain, nil, place...)
}

// Unseal is the reverse of Seal, for the same place.
func (s Seal) Unseal(sealed []byte, place ...string) ([]byte, error) {
	key, err := store.ReadKey(s.Home)
	if err != nil {
		return nil, err
	}
	plain, _, err := key.Unseal(sealed, place...)
	return plain, err
}

// Leases returns what makes its caller the only one, among all hosts of a database, who changes
// what a name of a tenant says.
func Leases(st store.Store, tenant string) func(ctx context.Context, name string) (release func(), err error) {
	return func(ctx context.Context, name string) (release func(), err error) {
		return store.Lease(ctx, st, tenant, name)
	}
}
