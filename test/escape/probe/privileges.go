//go:build linux && amd64

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/test/escape/canary"
)

// privileges are attempts to become someone else or to be more than before.
var privileges = []probe{
	{"priv.setuid_root", func(canary.Config) result { return became(unix.Setuid(0)) }},
	{"priv.setresuid_root", func(canary.Config) result { return became(unix.Setresuid(0, 0, 0)) }},
	{"priv.setfsuid_root", func(canary.Config) result {
		_, _ = unix.SetfsuidRetUid(0)
		now, err := unix.SetfsuidRetUid(-1)
		if err == nil && now == 0 {
			return allowed("file system uid 0")
		}
		return denied("file system uid %d", now)
	}},
	{"priv.setgid_root", func(canary.Config) result { return judge(unix.Setgid(0)) }},
	{"priv.setgroups", func(canary.Config) result { return judge(unix.Setgroups([]int{0, 6})) }},
	{"priv.setuid_other", func(canary.Config) result { return judge(unix.Setresuid(12345, 12345, 12345)) }},
	{"priv.capset_everything", func(canary.Config) result {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		data := [2]unix.CapUserData{{Effective: 1 << unix.CAP_DAC_OVERRIDE, Permitted: 1 << unix.CAP_DAC_OVERRIDE}}
		return judge(unix.Capset(&header, &data[0]))
	}},
	{"priv.ambient", func(canary.Config) result {
		header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
		var data [2]unix.CapUserData
		if err := unix.Capget(&header, &data[0]); err != nil {
			return judge(err)
		}
		data[0].Inheritable |= 1 << unix.CAP_NET_RAW
		if err := unix.Capset(&header, &data[0]); err != nil {
			return judge(err)
		}
		return judge(unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_RAISE, unix.CAP_NET_RAW, 0, 0))
	}},
	{"priv.securebits", func(canary.Config) result { return judge(unix.Prctl(unix.PR_SET_SECUREBITS, 1<<4, 0, 0, 0)) }},
	{"priv.drop_bounding", func(canary.Config) result {
		return judge(unix.Prctl(unix.PR_CAPBSET_DROP, unix.CAP_AUDIT_READ, 0, 0, 0))
	}},
	{"priv.setuid_program", func(c canary.Config) result {
		return runsAs(filepath.Join(c.Package, "setuid"), func(w who) bool { return w.euid != os.Geteuid() })
	}},
	{"priv.setgid_program", func(c canary.Config) result {
		return runsAs(filepath.Join(c.Package, "setgid"), func(w who) bool { return w.egid != os.Getegid() })
	}},
	{"priv.program_with_capabilities", func(c canary.Config) result {
		return runsAs(filepath.Join(c.Package, "capable"), func(w who) bool { return w.caps&(1<<unix.CAP_NET_RAW) != 0 })
	}},
	{"priv.setuid_program_in_scratch", func(c canary.Config) result {
		path, err := copied(c, "escalate")
		if err != nil {
			return judge(err)
		}
		if err := unix.Chown(path, 12345, -1); err != nil {
			return judge(err)
		}
		if err := unix.Chmod(path, 0o4755); err != nil {
			return judge(err)
		}
		return runsAs(path, func(w who) bool { return w.euid == 12345 })
	}},
	{"priv.file_capabilities", func(c canary.Config) result {
		value := [20]byte{0: 1, 3: 2, 4: 1 << 5} // version 2, effective
		return judge(unix.Setxattr(own(c, "capable"), "security.capability", value[:], 0))
	}},
	{"priv.trusted_attribute", func(c canary.Config) result {
		return judge(unix.Setxattr(own(c, "trusted"), "trusted.probe", []byte("1"), 0))
	}},
	{"priv.chown_in_scratch", func(c canary.Config) result { return judge(unix.Chown(own(c, "given"), 12345, 12345)) }},
	{"priv.raise_open_files", raises(unix.RLIMIT_NOFILE)},
	{"priv.raise_processes", raises(unix.RLIMIT_NPROC)},
	{"priv.raise_locked_memory", raises(unix.RLIMIT_MEMLOCK)},
	{"priv.raise_file_size", func(canary.Config) result {
		// With the cage off there is no limit: one is set first, and then lifted.
		var have unix.Rlimit
		if err := unix.Getrlimit(unix.RLIMIT_FSIZE, &have); err != nil {
			return judge(err)
		}
		low := unix.Rlimit{Cur: min(have.Max, 1<<20), Max: min(have.Max, 1<<20)}
		if err := unix.Setrlimit(unix.RLIMIT_FSIZE, &low); err != nil {
			return judge(err)
		}
		return raises(unix.RLIMIT_FSIZE)(canary.Config{})
	}},
	{"priv.nice", func(canary.Config) result { return judge(unix.Setpriority(unix.PRIO_PROCESS, 0, -10)) }},
	{"priv.realtime", func(canary.Config) result {
		priority := int32(1)
		return call(nil, unix.SYS_SCHED_SETSCHEDULER, 0, 1, pointer(&priority)) // SCHED_FIFO
	}},
	{"priv.realtime_io", func(canary.Config) result { return call(nil, unix.SYS_IOPRIO_SET, 1, 0, 1<<13) }},
	{"priv.lock_memory", func(canary.Config) result {
		area, err := unix.Mmap(-1, 0, 256<<20, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON)
		if err != nil {
			return judge(err)
		}
		return call(nil, unix.SYS_MLOCK2, pointer(&area[0]), uintptr(len(area)), 1) // on fault: touches nothing
	}},
}

// A who is what a program started by a probe says of itself.
type who struct {
	euid, egid int
	caps       uint64
}

// whoami prints who this process is, for runsAs.
func whoami() {
	caps, _ := statusOf("CapEff")
	fmt.Printf("%d %d %x\n", os.Geteuid(), os.Getegid(), caps)
}

// runsAs starts a program and looks at what it has become.
func runsAs(path string, escalated func(who) bool) result {
	var out bytes.Buffer
	cmd := exec.Command(path, "whoami")
	cmd.Stdout = &out
	if err := cmd.Run(); err != nil {
		return judge(err)
	}
	var w who
	if _, err := fmt.Sscanf(out.String(), "%d %d %x", &w.euid, &w.egid, &w.caps); err != nil {
		return denied("it said %q", out.String())
	}
	if escalated(w) {
		return allowed("it ran as %s", strings.TrimSpace(out.String()))
	}
	return denied("it ran as %s", strings.TrimSpace(out.String()))
}

// became says whether a change to root took place, and was one: root stays root without
// any privilege.
func became(err error) result {
	if err == nil && os.Geteuid() != 0 {
		return denied("no error, and uid %d", os.Geteuid())
	}
	return judge(err)
}

// raises tries to lift a hard limit.
func raises(resource int) func(canary.Config) result {
	return func(canary.Config) result {
		var have unix.Rlimit
		if err := unix.Getrlimit(resource, &have); err != nil {
			return judge(err)
		}
		if have.Max == unix.RLIM_INFINITY {
			return allowed("there is no limit")
		}
		return judge(unix.Setrlimit(resource, &unix.Rlimit{Cur: have.Max, Max: have.Max + 1}))
	}
}

// copied makes a copy of this program in scratch.
func copied(c canary.Config, file string) (string, error) {
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return "", err
	}
	path := filepath.Join(c.Scratch, file)
	return path, os.WriteFile(path, text, 0o755)
}
