package setup

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/base/alive"
	"github.com/mortise-dev/mortise/internal/base/filelock"
	"github.com/mortise-dev/mortise/plugin"
)

// ServeLock is the file whose lock the one host has that serves a data directory.
// Its first line is the host's process id, the second why its ledger is not written,
// and empty where it is.
const ServeLock = "serve.lock"

// servingSize is the length of that file, whatever it says: noting something else
// in it needs no room on a disk that is full.
const servingSize = 512

func servingNote(pid int, why string) []byte {
	text := fmt.Appendf(nil, "%d\n%s", pid, strings.Join(strings.Fields(why), " "))
	text = append(text[:min(len(text), servingSize-1)], bytes.Repeat([]byte(" "), max(0, servingSize-1-len(text)))...)
	return append(text, '\n')
}

// KeepServingNote notes in the lock file, until ctx ends, whether the ledger of this
// host is written: 'mortise doctor' is another process.
func KeepServingNote(ctx context.Context, home string, writing func() error, log *slog.Logger) {
	tick := time.NewTicker(time.Second)
	defer tick.Stop()
	noted := ""
	for {
		why := ""
		if err := writing(); err != nil {
			why = err.Error()
		}
		if why != noted {
			if err := noteServing(home, why); err != nil {
				log.Warn("whether the ledger is written could not be noted for 'mortise doctor'", "cause", err.Error())
			}
			noted = why
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

func noteServing(home, why string) error {
	if pid, _ := readServing(home); pid != os.Getpid() {
		return nil // it serves without a directory of its own
	}
	file, err := os.OpenFile(filepath.Join(home, ServeLock), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(servingNote(os.Getpid(), why), 0)
	return errors.Join(err, file.Close())
}

func readServing(home string) (pid int, why string) {
	raw, err := os.ReadFile(filepath.Join(home, ServeLock))
	if err != nil {
		return 0, ""
	}
	first, rest, _ := strings.Cut(string(raw), "\n")
	if pid, err = strconv.Atoi(strings.TrimSpace(first)); err != nil || pid <= 0 {
		return 0, ""
	}
	return pid, strings.TrimSpace(rest)
}

// Serving returns the process that serves a data directory, 0 if there is none, and
// why it does not write its ledger at the moment, "" where it does. Its lock is not
// tried, which would be in the way of one that is about to.
func Serving(home string) (pid int, why string) {
	pid, why = readServing(home)
	if !alive.Process(pid) {
		return 0, ""
	}
	return pid, why
}

// LeaveServing takes the id of this process out of the note, so that no caller waits for a
// host that ends. The lock is held until it has.
func LeaveServing(home string) error {
	if pid, _ := readServing(home); pid != os.Getpid() {
		return nil
	}
	file, err := os.OpenFile(filepath.Join(home, ServeLock), os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	_, err = file.WriteAt(servingNote(0, ""), 0)
	return errors.Join(err, file.Close())
}

// AwaitUnserved returns when no process has the lock of a data directory any more, or with
// the cause of ctx.
func AwaitUnserved(ctx context.Context, home string) error {
	path := filepath.Join(home, ServeLock)
	if _, err := os.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	type turn struct {
		lock *filelock.Lock
		err  error
	}
	got := make(chan turn, 1)
	go func() { // it ends with the process that has the lock, or with this one
		lock, err := filelock.Acquire(path)
		got <- turn{lock, err}
	}()
	select {
	case t := <-got:
		if t.err == nil {
			t.lock.Remove()
		}
		return t.err
	case <-ctx.Done():
		go func() {
			if t := <-got; t.err == nil {
				t.lock.Remove()
			}
		}()
		return context.Cause(ctx)
	}
}

// Served reports whether a process has the lock of a data directory. It tries the lock, so
// that a host which is about to take it may find it taken for a moment: it is for where the
// note of [Serving] names a process that does not answer.
func Served(home string) bool {
	lock, err := filelock.Try(filepath.Join(home, ServeLock))
	if err != nil || lock == nil {
		return lock == nil && err == nil
	}
	lock.Remove()
	return false
}

// Exclusive makes this process the one that serves a data directory, until
// release is called or the process ends, however it ends.
func Exclusive(home string) (release func(), err error) {
	if err := os.MkdirAll(home, 0o700); err != nil {
		return nil, &Error{fmt.Errorf("the data directory cannot be used: %w; --home or MORTISE_HOME names another", err)}
	}
	path := filepath.Join(home, ServeLock)
	lock, err := filelock.Try(path)
	if err != nil {
		return nil, &Error{err}
	}
	if lock == nil {
		who := "another process"
		if pid, _ := readServing(home); pid != 0 {
			who = fmt.Sprint("process ", pid)
		}
		return nil, plugin.Errorf(plugin.CodeUnavailable, "%s serves %s already; stop it, or name another data directory with --home", who, home)
	}
	if err := os.WriteFile(path, servingNote(os.Getpid(), ""), 0o600); err != nil {
		lock.Remove()
		return nil, &Error{err}
	}
	return lock.Remove, nil
}
