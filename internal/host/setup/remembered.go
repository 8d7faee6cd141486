package setup

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
)

// Remembered keeps, in files of a data directory, which sessions had processes in any
// host there: what these kept in memory is gone with their host, and the next call of the
// session says so. A file has the host that served the session last, and whether another
// had before.
type Remembered struct {
	dir  string
	self string
	log  *slog.Logger
}

// OpenRemembered returns what remembers it in a directory of a host's, which is made when it is
// needed.
func OpenRemembered(dir string, log *slog.Logger) *Remembered {
	return &Remembered{dir, rand.Text(), log}
}

const rememberedBefore = " again"

// Earlier reports whether another host served a session before, and notes that this one
// does.
func (s *Remembered) Earlier(tenant, session string) bool {
	raw, err := os.ReadFile(s.path(tenant, session))
	host, before := strings.CutSuffix(string(raw), rememberedBefore)
	if host == s.self {
		return before
	}
	earlier, text := err == nil, s.self
	if earlier {
		text += rememberedBefore
	}
	err = os.MkdirAll(s.dir, 0o700)
	if err == nil {
		err = os.WriteFile(s.path(tenant, session), []byte(text), 0o600)
	}
	if err != nil {
		s.log.Warn("that a session has a process could not be noted; the next host will not say that it is lost", "session", session, "cause", err.Error())
	}
	return earlier
}

// Ends returns what ends the processes that a session has in a runner. Where the session is
// forgotten, a later one of its name has none before it.
func (s *Remembered) Ends(r interface {
	EndSession(ctx context.Context, tenant, session string, forget bool)
}) func(ctx context.Context, tenant, session string, forget bool) error {
	return func(ctx context.Context, tenant, session string, forget bool) error {
		r.EndSession(ctx, tenant, session, forget)
		if !forget {
			return nil
		}
		return s.Forget(tenant, session)
	}
}

// Forget takes away what is remembered of a session that is deleted.
func (s *Remembered) Forget(tenant, session string) error {
	if err := os.Remove(s.path(tenant, session)); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func (s *Remembered) path(tenant, session string) string {
	sum := sha256.Sum256([]byte(tenant + "\x00" + session))
	return filepath.Join(s.dir, hex.EncodeToString(sum[:8]))
}
