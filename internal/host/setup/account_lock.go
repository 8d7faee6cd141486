package setup

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"path/filepath"
	"time"

	"github.com/mortise-dev/mortise/internal/base/filelock"
)

// lockWait is how often it is looked whether another host is done.
const lockWait = 50 * time.Millisecond

// AccountLock returns what keeps other hosts of a data directory from renewing an account,
// by locks in a directory.
func AccountLock(dir string) func(ctx context.Context, name string) (release func(), err error) {
	return func(ctx context.Context, name string) (release func(), err error) {
		sum := sha256.Sum256([]byte(name))
		path := filepath.Join(dir, "account-"+hex.EncodeToString(sum[:8])+".lock")
		for {
			lock, err := filelock.Try(path)
			if err != nil {
				return nil, err
			}
			if lock != nil {
				return func() { lock.Remove() }, nil
			}
			select {
			case <-time.After(lockWait):
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			}
		}
	}
}
