package sandbox_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/base/testwait"
	"github.com/mortise-dev/mortise/internal/runtime/sandbox"
)

// roles are what this binary plays in a cage, and what hosts one.
var roles = map[string]func(args []string){
	"prober": prober, "eater": eater, "forker": forker, "writer": writer, "spinner": spinner, "ignorer": ignorer, "host": host, "partial": partial, "ordinary": ordinary, "hoarder": hoarder, "without": without, "reach": reach, "dialer": dialer, "clock": clock,
}

// prober tries what a program in a cage must not be able to do, and prints
// what came of each attempt: "" where it succeeded.
func prober(args []string) {
	said := map[string]string{}
	try := func(name string, err error) {
		said[name] = ""
		if err != nil {
			said[name] = err.Error()
		}
	}
	raw := func(trap, a, b, c uintptr) error {
		if _, _, errno := unix.Syscall(trap, a, b, c); errno != 0 {
			return errno
		}
		return nil
	}
	for _, path := range args {
		_, err := os.ReadFile(path)
		try("read "+path, err)
	}
	_, err := os.ReadDir("/")
	try("list /", err)
	for name, family := range map[string]uintptr{"unix": unix.AF_UNIX, "inet": unix.AF_INET, "inet6": unix.AF_INET6, "netlink": unix.AF_NETLINK, "packet": unix.AF_PACKET, "vsock": unix.AF_VSOCK, "alg": unix.AF_ALG} {
		try("socket "+name, raw(unix.SYS_SOCKET, family, unix.SOCK_STREAM, 0))
	}
	try("socketpair inet", raw(unix.SYS_SOCKETPAIR, unix.AF_INET, unix.SOCK_STREAM, 0))
	try("unshare", raw(unix.SYS_UNSHARE, unix.CLONE_NEWUSER, 0, 0))
	try("clone with a namespace", raw(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD), 0, 0))
	try("clone3", raw(unix.SYS_CLONE3, 0, 0, 0))
	try("mount", unix.Mount("tmpfs", "/tmp", "tmpfs", 0, ""))
	try("chroot", unix.Chroot("/tmp"))
	try("ptrace", raw(unix.SYS_PTRACE, unix.PTRACE_ATTACH, 1, 0))
	try("process_vm_readv", raw(unix.SYS_PROCESS_VM_READV, 1, 0, 0))
	try("io_uring", raw(unix.SYS_IO_URING_SETUP, 1, 0, 0))
	try("bpf", raw(unix.SYS_BPF, 0, 0, 0))
	try("keyctl", raw(unix.SYS_KEYCTL, 0, 0, 0))
	try("perf", raw(unix.SYS_PERF_EVENT_OPEN, 0, 0, 0))
	try("userfaultfd", raw(unix.SYS_USERFAULTFD, 0, 0, 0))
	try("open_by_handle_at", raw(unix.SYS_OPEN_BY_HANDLE_AT, 0, 0, 0))
	try("setns", raw(unix.SYS_SETNS, 0, 0, 0))
	try("personality", raw(unix.SYS_PERSONALITY, 0x0040000, 0, 0))
	try("setuid 0", syscall.Setuid(0))
	try("write to the root", os.WriteFile("/x", nil, 0o600))
	try("write to the program", os.WriteFile(os.Args[0], nil, 0o600))
	_, err = os.ReadFile("/proc/1/environ")
	try("read the launcher's environment", err)
	file, err := os.OpenFile("/proc/1/mem", os.O_RDWR, 0)
	if err == nil {
		_ = file.Close()
	}
	try("open the launcher's memory", err)
	try("make a device", unix.Mknod("/tmp/d", unix.S_IFCHR|0o600, 1<<8|1))
	if err := os.WriteFile("run.sh", []byte("#!/bin/sh\n"), 0o700); err == nil {
		try("run what it wrote", exec.Command("./run.sh").Run())
	}
	procs, _ := filepath.Glob("/proc/[0-9]*")
	said["processes"] = strconv.Itoa(len(procs))
	descriptors, _ := os.ReadDir("/proc/self/fd")
	var names []string
	for _, d := range descriptors {
		if to, err := os.Readlink("/proc/self/fd/" + d.Name()); err == nil && !strings.HasPrefix(to, "anon_inode:") && !strings.HasPrefix(to, "/proc/") {
			names = append(names, d.Name())
		}
	}
	said["descriptors"] = strings.Join(names, " ")
	said["environment"] = strings.Join(os.Environ(), " ")
	status, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(status)) {
		if name, value, _ := strings.Cut(line, ":"); strings.HasPrefix(name, "Cap") || name == "NoNewPrivs" || name == "Seccomp" {
			said[name] = strings.TrimSpace(value)
		}
	}
	try("write to scratch", os.WriteFile("mine", []byte("x"), 0o600))
	try("write to /tmp", os.WriteFile("/tmp/mine", []byte("x"), 0o600))
	_ = json.NewEncoder(os.Stdout).Encode(said)
}

// eater takes memory without end.
func eater([]string) {
	var all [][]byte
	for {
		block := make([]byte, 8<<20)
		for i := range block {
			block[i] = byte(i) + 1
		}
		all = append(all, block)
		if len(all) > 1<<20 {
			fmt.Println(len(all))
		}
	}
}

// forker starts processes until it may not.
func forker([]string) {
	for {
		cmd := exec.Command("/bin/sleep", "60")
		if err := cmd.Start(); err != nil {
			fmt.Println(err)
			time.Sleep(time.Second) // without a cgroup the launcher counts 50 times a second, and does not say when it has
			os.Exit(3)
		}
	}
}

// writer writes a file, or many, without end.
func writer(args []string) {
	for n := 0; ; n++ {
		file, err := os.Create(fmt.Sprintf("file%d", n))
		for i := 0; err == nil && (args[0] == "one" || i < 64); i++ {
			_, err = file.Write(make([]byte, 64<<10))
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(3)
		}
		_ = file.Close()
	}
}

func spinner([]string) {
	for n := 0; ; n++ {
		if n < 0 {
			return
		}
	}
}

// ignorer ignores signals, leaves a session behind, and says so.
func ignorer(args []string) {
	child := exec.Command("/bin/sleep", args[0])
	child.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	if err := child.Start(); err != nil {
		fmt.Println(err)
		os.Exit(3)
	}
	if err := os.WriteFile("ready", nil, 0o644); err != nil {
		os.Exit(3)
	}
	_ = unix.Kill(os.Getpid(), unix.SIGSTOP)
	testwait.Block()
}

// host starts an ignorer in a cage and waits to be killed.
func host(args []string) {
	opts := sandbox.Options{Dir: args[0], Mode: sandbox.BestEffort, StartLimit: time.Minute}
	if len(args) > 2 {
		opts.Standby = true
	}
	s, err := sandbox.New(opts)
	if err != nil {
		panic(err)
	}
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	spec := sandbox.Spec{
		Argv: []string{program, "role", "ignorer", args[1]}, Read: append(existing("/bin", "/usr/bin", "/lib", "/lib64", "/usr/lib"), program), Scratch: args[0], Limits: usual,
	}
	p, err := s.Start(context.Background(), spec, sandbox.Files{Stdin: null, Stdout: null, Stderr: os.Stderr})
	if err != nil {
		panic(err)
	}
	tick := time.NewTicker(5 * time.Millisecond)
	for ready := os.ErrNotExist; ready != nil; <-tick.C {
		if p.Scratch() != nil {
			_, ready = p.Scratch().Stat("ready")
		} else { // the directory itself is the program's
			_, ready = os.Stat(filepath.Join(args[0], "ready"))
		}
	}
	fmt.Println("ready")
	testwait.Block()
}

// ordinary is a host that is not root: it prints what it reaches, and what a
// prober in its cage found.
func ordinary(args []string) {
	s, err := sandbox.New(sandbox.Options{Dir: args[0], Mode: sandbox.BestEffort, StartLimit: time.Minute})
	if err != nil {
		panic(err)
	}
	report := s.Report()
	_ = json.NewEncoder(os.Stdout).Encode(report)
	if report.Level == sandbox.None {
		return
	}
	program, err := os.Executable()
	if err != nil {
		panic(err)
	}
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	spec := sandbox.Spec{Argv: append([]string{program, "role"}, args[1:]...), Read: append(existing("/lib", "/lib64", "/usr/lib"), program), Scratch: args[0], Limits: usual}
	if args[1] == "hoarder" {
		spec.Limits = little
	}
	spec.Proxy = args[1] == "dialer"
	p, err := s.Start(context.Background(), spec, sandbox.Files{Stdin: null, Stdout: os.Stdout, Stderr: os.Stderr})
	if err != nil {
		panic(err)
	}
	if spec.Proxy {
		if conn, err := p.Proxy().Accept(); err == nil {
			_, _ = conn.Write([]byte("ordinary"))
			_ = conn.Close()
		}
	}
	state := p.Wait()
	p.Release()
	if err := errors.Join(s.Close()); err != nil {
		panic(err)
	}
	if !state.OK() {
		fmt.Println(state)
	}
}
