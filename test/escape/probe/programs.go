//go:build linux && amd64

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/test/escape/canary"
)

// programs are attempts to run what was not granted, or to run it in a way that
// leaves the cage behind.
var programs = []probe{
	{"exec.shell", runs("/bin/sh", "-c", "exit 0")},
	{"exec.id", runs("/usr/bin/id")},
	{"exec.setuid_su", runs("/usr/bin/su", "--version")},
	{"exec.setuid_passwd", runs("/usr/bin/passwd", "--help")},
	{"exec.setuid_mount", runs("/usr/bin/mount", "--version")},
	{"exec.unshare", runs("/usr/bin/unshare", "--version")},
	{"exec.other_package", func(c canary.Config) result {
		return runs(filepath.Join(c.Outside, "packages/other/program"), "whoami")(c)
	}},
	{"exec.by_loader", func(c canary.Config) result {
		// The loader runs a program that is not executable itself.
		loader := "/lib64/ld-linux-x86-64.so.2"
		return runs(loader, "/usr/bin/id")(c)
	}},
	{"exec.from_scratch", func(c canary.Config) result {
		path, err := copied(c, "program")
		if err != nil {
			return judge(err)
		}
		return runs(path, "whoami")(c)
	}},
	{"exec.from_scratch_reads_outside", func(c canary.Config) result {
		path, err := copied(c, "program-reads")
		if err != nil {
			return judge(err)
		}
		return asks(c, path, "read.ledger")
	}},
	{"exec.from_memory", func(c canary.Config) result {
		path, err := inMemory()
		if err != nil {
			return judge(err)
		}
		return runs(path, "whoami")(c)
	}},
	{"exec.from_memory_reads_outside", func(c canary.Config) result {
		path, err := inMemory()
		if err != nil {
			return judge(err)
		}
		return asks(c, path, "read.ledger")
	}},
	{"exec.from_memory_makes_sockets", func(c canary.Config) result {
		path, err := inMemory()
		if err != nil {
			return judge(err)
		}
		return asks(c, path, "net.tcp4_loopback")
	}},
	{"exec.by_execveat", func(c canary.Config) result {
		fd, err := unix.Open("/usr/bin/true", unix.O_PATH|unix.O_CLOEXEC, 0)
		if err != nil {
			return judge(err)
		}
		empty := [1]byte{}
		return judge(inChild(uintptr(unix.SIGCHLD), unix.SYS_EXECVEAT, uintptr(fd), pointer(&empty), 0, 0, unix.AT_EMPTY_PATH))
	}},
	{"exec.script", func(c canary.Config) result {
		path := filepath.Join(c.Scratch, "script")
		if err := os.WriteFile(path, []byte("#!/bin/sh\nexit 0\n"), 0o755); err != nil {
			return judge(err)
		}
		return runs(path)(c)
	}},
	{"exec.thread_reads_outside", func(c canary.Config) result {
		// A filter or rule set after a thread began does not hold in it.
		done := make(chan result, 1)
		go func() { done <- contains(filepath.Join(c.Outside, "data/ledger.db"), c.Secret) }()
		return <-done
	}},
	{"exec.clone_parent", func(canary.Config) result {
		// A child of one's parent: a limit that counts children counts it too late.
		return judge(inChild(uintptr(unix.SIGCHLD)|unix.CLONE_PARENT, unix.SYS_GETPID), unix.ECHILD)
	}},
	{"exec.leave_session", func(canary.Config) result {
		_, err := unix.Setsid()
		return judge(err)
	}},
	{"exec.clear_death_signal", func(canary.Config) result { return judge(unix.Prctl(unix.PR_SET_PDEATHSIG, 0, 0, 0, 0)) }},
	{"exec.adopt_children", func(canary.Config) result {
		return judge(unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	}},
	{"exec.dumpable", func(canary.Config) result { return judge(unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0)) }},
	{"exec.seccomp_disabled", func(canary.Config) result { return judge(unix.Prctl(unix.PR_SET_SECCOMP, 0, 0, 0, 0)) }},
	{"exec.new_privileges_again", func(canary.Config) result { return judge(unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 0, 0, 0, 0)) }},
	{"exec.memory_map_fields", func(canary.Config) result {
		file, err := os.Open("/proc/self/exe")
		if err != nil {
			return judge(err)
		}
		defer file.Close()
		return judge(unix.Prctl(unix.PR_SET_MM, unix.PR_SET_MM_EXE_FILE, file.Fd(), 0, 0), unix.EBUSY)
	}},
	{"exec.writable_code", func(canary.Config) result {
		_, err := unix.Mmap(-1, 0, 4096, unix.PROT_READ|unix.PROT_WRITE|unix.PROT_EXEC, unix.MAP_PRIVATE|unix.MAP_ANON)
		return judge(err)
	}},
}

// control are attempts on control groups, where the limits of the cage are kept.
var control = []probe{
	{"cgroup.listed", lists("/sys/fs/cgroup")},
	{"cgroup.own_name", func(canary.Config) result {
		text, err := os.ReadFile("/proc/self/cgroup")
		if err != nil {
			return judge(err)
		}
		return allowed("%d hierarchies", bytes.Count(text, []byte("\n")))
	}},
	{"cgroup.release_agent", inHierarchy("release_agent")},
	{"cgroup.leave", inHierarchy("cgroup.procs")},
	{"cgroup.leave_by_tasks", inHierarchy("tasks")},
	{"cgroup.raise_processes", inHierarchy("pids.max")},
	{"cgroup.raise_memory", inHierarchy("memory.limit_in_bytes", "memory.max")},
	{"cgroup.devices", inHierarchy("devices.allow")},
	{"cgroup.freeze", inHierarchy("freezer.state", "cgroup.freeze")},
	{"cgroup.create", func(c canary.Config) result {
		err := error(unix.ENOENT)
		for _, root := range hierarchies() {
			if err = os.Mkdir(filepath.Join(root, c.Mark), 0o755); err == nil {
				_ = os.Remove(filepath.Join(root, c.Mark))
				return allowed("%s", root)
			}
		}
		return judge(err)
	}},
}

// runs tries to start a program.
func runs(path string, args ...string) func(canary.Config) result {
	return func(canary.Config) result {
		out, err := exec.Command(path, args...).CombinedOutput()
		if err != nil {
			if os.IsNotExist(err) {
				return denied("ENOENT: %s", path)
			}
			return denied("%v: %.200s", err, out)
		}
		return allowed("%.80s", strings.TrimSpace(string(out)))
	}
}

// asks has another copy of this program make an attempt.
func asks(c canary.Config, path, probe string) result {
	cmd := exec.Command(path, "one", probe)
	var out bytes.Buffer
	config, err := json.Marshal(c)
	if err != nil {
		return denied("%v", err)
	}
	cmd.Stdin, cmd.Stdout = bytes.NewReader(config), &out
	if err := cmd.Run(); err != nil {
		return judge(err)
	}
	if strings.Contains(out.String(), `"allowed"`) {
		return allowed("%s", strings.TrimSpace(out.String()))
	}
	return denied("%s", strings.TrimSpace(out.String()))
}

// inMemory puts this program into a file without a name.
func inMemory() (string, error) {
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return "", err
	}
	fd, err := unix.MemfdCreate("program", 0)
	if err != nil {
		return "", err
	}
	f := os.NewFile(uintptr(fd), "program")
	if _, err := f.Write(text); err != nil {
		return "", err
	}
	// Open for writing it could not be run, so it is opened once more.
	reader, err := unix.Open(fmt.Sprintf("/proc/self/fd/%d", fd), unix.O_RDONLY, 0)
	if err != nil {
		return "", err
	}
	return fmt.Sprintf("/proc/self/fd/%d", reader), f.Close()
}

// hierarchies are the directories of control groups, and that of this process in
// each.
func hierarchies() []string {
	roots, _ := filepath.Glob("/sys/fs/cgroup/*")
	roots = append(roots, "/sys/fs/cgroup")
	text, _ := os.ReadFile("/proc/self/cgroup")
	all := roots
	for entry := range strings.Lines(string(text)) {
		if parts := strings.SplitN(strings.TrimSpace(entry), ":", 3); len(parts) == 3 && parts[2] != "/" {
			for _, root := range roots {
				all = append(all, filepath.Join(root, parts[2]))
			}
		}
	}
	return all
}

// inHierarchy tries to open a file of the control groups for writing.
func inHierarchy(files ...string) func(canary.Config) result {
	return func(canary.Config) result {
		err := error(unix.ENOENT)
		for _, root := range hierarchies() {
			for _, file := range files {
				path := filepath.Join(root, file)
				fd, no := unix.Open(path, unix.O_WRONLY|unix.O_CLOEXEC, 0)
				if no == nil {
					_ = unix.Close(fd)
					return allowed("%s opened for writing", path)
				}
				if no != unix.ENOENT {
					err = no
				}
			}
		}
		return judge(err)
	}
}

// lifetime bounds what is left behind if the test never kills it.
const lifetime = time.Minute

// survive leaves processes behind in the ways that outlive a killed process
// group, and waits to be killed. Each carries the mark among its arguments.
func survive(mark string) {
	start := func(how string, attributes *syscall.SysProcAttr, args ...string) {
		cmd := exec.Command(os.Args[0], append([]string{"linger", mark, how}, args...)...)
		cmd.SysProcAttr = attributes
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr // held open
		if err := cmd.Start(); err != nil {
			fmt.Println(how, err)
		}
	}
	start("child", nil)
	start("group", &syscall.SysProcAttr{Setpgid: true})
	start("session", &syscall.SysProcAttr{Setsid: true})
	start("grandchild", &syscall.SysProcAttr{Setsid: true}, "orphan")
	fmt.Println("ready")
	time.Sleep(lifetime)
}

// linger stays. Told to, it has a child in a session of its own first and leaves
// that an orphan.
func linger(mark string, how []string) {
	if len(how) == 2 {
		cmd := exec.Command(os.Args[0], "linger", mark, how[1])
		cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
		cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
		_ = cmd.Start()
		return
	}
	time.Sleep(lifetime)
}
