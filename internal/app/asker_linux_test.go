package app_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/host"
)

// covers are what the creator of a user namespace may put over what says that they are
// in one: files and directories of their own, and those of a process outside of it.
var covers = map[string]func(dir, outside string) error{
	"nothing": func(string, string) error { return nil },
	"a table of their own": func(dir, _ string) error {
		return overFile(dir, "/proc/self/uid_map", "         0          0 4294967295\n")
	},
	"the table of another":      func(_, outside string) error { return over(outside+"/uid_map", "/proc/self/uid_map") },
	"the namespaces of another": func(_, outside string) error { return over(outside+"/ns", "/proc/self/ns") },
	"all of another":            func(_, outside string) error { return over(outside, "/proc/self") },
	"another as /proc":          func(_, outside string) error { return over(outside, "/proc") },
	"a /proc of their own": func(dir, _ string) error {
		if err := os.MkdirAll(filepath.Join(dir, "self", "ns"), 0o700); err != nil {
			return err
		}
		if err := os.Symlink("user:[4026531837]", filepath.Join(dir, "self", "ns", "user")); err != nil {
			return err
		}
		return over(dir, "/proc")
	},
	"no /proc": func(string, string) error { return unix.Mount("none", "/proc", "tmpfs", 0, "") },
}

func over(what, place string) error { return unix.Mount(what, place, "", unix.MS_BIND|unix.MS_REC, "") }

func overFile(dir, place, text string) error {
	path := filepath.Join(dir, "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		return err
	}
	return over(path, place)
}

// TestInAUserNamespaceNoUserIsKnown: there a user chooses which number they have, so that
// one would be as many persons as they like, and what /proc says of it is theirs to cover.
func TestInAUserNamespaceNoUserIsKnown(t *testing.T) {
	if name := os.Getenv("MORTISE_TEST_WHO"); name != "" {
		if err := covers[name](os.Getenv("MORTISE_TEST_DIR"), os.Getenv("MORTISE_TEST_OUTSIDE")); err != nil {
			fmt.Printf("cover=%v\n", err)
			return
		}
		fmt.Printf("asker=%s\n", host.OSUser())
		return
	}
	if !strings.HasPrefix(host.OSUser(), "os:") {
		t.Skip("this test runs in a user namespace itself and needs the first one; run it outside of a container without privileges")
	}
	for name := range covers {
		for _, uid := range []int{1234, os.Getuid()} {
			cmd := exec.Command(os.Args[0], "-test.run=^TestInAUserNamespaceNoUserIsKnown$", "-test.v")
			cmd.Env = append(os.Environ(), "MORTISE_TEST_WHO="+name, "MORTISE_TEST_DIR="+t.TempDir(), fmt.Sprintf("MORTISE_TEST_OUTSIDE=/proc/%d", os.Getpid()))
			cmd.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS,
				UidMappings: []syscall.SysProcIDMap{{ContainerID: uid, HostID: os.Getuid(), Size: 1}}, AmbientCaps: []uintptr{unix.CAP_SYS_ADMIN}}
			out, err := cmd.CombinedOutput()
			if err != nil && !strings.Contains(string(out), "asker=") {
				t.Skipf("this test needs user namespaces: %v; allow them with sysctl kernel.unprivileged_userns_clone=1 "+
					"or kernel.apparmor_restrict_unprivileged_userns=0", err)
			}
			if !strings.Contains(string(out), "asker=unknown: ") {
				t.Errorf("%s, as %d: %s", name, uid, out)
			}
		}
	}
}
