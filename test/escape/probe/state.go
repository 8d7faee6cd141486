//go:build linux && amd64

package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/test/escape/canary"
)

// state are the facts of the process itself. Here allowed means that a wall which
// should stand is not there.
var state = []probe{
	{"state.shares_user_namespace", shares("user")},
	{"state.shares_pid_namespace", shares("pid")},
	{"state.shares_mnt_namespace", shares("mnt")},
	{"state.shares_net_namespace", shares("net")},
	{"state.shares_ipc_namespace", shares("ipc")},
	{"state.shares_uts_namespace", shares("uts")},
	{"state.effective_capabilities", status("CapEff", isSet)},
	{"state.permitted_capabilities", status("CapPrm", isSet)},
	{"state.bounding_capabilities", status("CapBnd", isSet)},
	{"state.new_privileges", status("NoNewPrivs", isZero)},
	{"state.no_seccomp", status("Seccomp", isZero)},
	{"state.user_is_root", func(canary.Config) result {
		if os.Geteuid() == 0 || os.Getuid() == 0 {
			return allowed("uid %d, euid %d", os.Getuid(), os.Geteuid())
		}
		return denied("uid %d", os.Getuid())
	}},
	{"state.supplementary_groups", func(canary.Config) result {
		groups, err := os.Getgroups()
		if err != nil {
			return judge(err)
		}
		for _, g := range groups {
			if g != os.Getgid() && g != 65534 {
				return allowed("group %d of %v", g, groups)
			}
		}
		return denied("groups %v, gid %d", groups, os.Getgid())
	}},
	{"state.inherited_descriptor", func(canary.Config) result {
		// Descriptors of the Go runtime close on exec, inherited ones cannot.
		for fd := 3; fd < 1024; fd++ {
			if flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFD, 0); err == nil && flags&unix.FD_CLOEXEC == 0 {
				path, _ := os.Readlink(fmt.Sprintf("/proc/self/fd/%d", fd))
				return allowed("descriptor %d: %s", fd, path)
			}
		}
		return denied("only 0, 1 and 2")
	}},
	{"state.environment_of_host", func(c canary.Config) result {
		for _, entry := range os.Environ() {
			if strings.Contains(entry, c.Secret) {
				return allowed("%s", entry)
			}
		}
		return denied("%d variables, none of them the canary", len(os.Environ()))
	}},
	{"state.loader_variables", func(canary.Config) result {
		for _, entry := range os.Environ() {
			for _, prefix := range []string{"LD_", "PYTHONPATH=", "PYTHONSTARTUP=", "NODE_OPTIONS=", "BASH_ENV=", "GCONV_PATH=", "GLIBC_TUNABLES="} {
				if strings.HasPrefix(entry, prefix) {
					return allowed("%s", entry)
				}
			}
		}
		return denied("none")
	}},
	{"state.core_dumps", limitAbove(unix.RLIMIT_CORE, 1)},
	{"state.core_handler", func(c canary.Config) result {
		// A program that core_pattern names is started by the kernel, as root of the
		// host, whatever the limit is, unless it is 1.
		var have unix.Rlimit
		switch err := unix.Getrlimit(unix.RLIMIT_CORE, &have); {
		case err != nil:
			return judge(err)
		case have.Max == 1:
			return denied("the hard limit is 1")
		case !strings.HasPrefix(c.CorePattern, "|"):
			return unavailable("this machine has no such program, only the pattern %q", strings.TrimSpace(c.CorePattern))
		}
		return allowed("%s", strings.TrimSpace(c.CorePattern))
	}},
	{"state.open_files_unlimited", limitAbove(unix.RLIMIT_NOFILE, 65536)},
	{"state.file_size_unlimited", limitAbove(unix.RLIMIT_FSIZE, 1<<40)},
}

// shares says whether a namespace is the host's.
func shares(kind string) func(canary.Config) result {
	return func(c canary.Config) result {
		own, err := os.Readlink("/proc/self/ns/" + kind)
		if err != nil {
			return judge(err)
		}
		if own == c.Namespaces[kind] {
			return allowed("%s is the host's", own)
		}
		return denied("%s is its own", own)
	}
}

// status looks at one number of /proc/self/status.
func status(field string, wrong func(n uint64) bool) func(canary.Config) result {
	return func(canary.Config) result {
		n, err := statusOf(field)
		if err != nil {
			return denied("%v", err)
		}
		if wrong(n) {
			return allowed("%s is %x", field, n)
		}
		return denied("%s is %x", field, n)
	}
}

func statusOf(field string) (uint64, error) {
	text, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for entry := range strings.Lines(string(text)) {
		if value, ok := strings.CutPrefix(entry, field+":"); ok {
			return strconv.ParseUint(strings.TrimSpace(value), 16, 64)
		}
	}
	return 0, fmt.Errorf("no %s in /proc/self/status", field)
}

func isSet(n uint64) bool  { return n != 0 }
func isZero(n uint64) bool { return n == 0 }

// limitAbove says whether a hard limit can be more than it should.
func limitAbove(resource int, most uint64) func(canary.Config) result {
	return func(canary.Config) result {
		var have unix.Rlimit
		if err := unix.Getrlimit(resource, &have); err != nil {
			return judge(err)
		}
		if have.Max > most {
			return allowed("the hard limit is %d", have.Max)
		}
		return denied("the hard limit is %d", have.Max)
	}
}
