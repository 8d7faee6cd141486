package store

import "github.com/mortise-dev/mortise/internal/base/filelock"

// A Lock is a [filelock.Lock].
type Lock = filelock.Lock

// AcquireLock is [filelock.Acquire].
func AcquireLock(path string) (*Lock, error) { return filelock.Acquire(path) }

// TryLock is [filelock.Try].
func TryLock(path string) (*Lock, error) { return filelock.Try(path) }
