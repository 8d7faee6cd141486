package main

import (
	"io"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
)

// children are what the program does as a child of its own. They need no other
// program, since a cage may hold none. The map is made in init: its functions
// start others of it.
var children map[string]func()

func init() {
	children = map[string]func(){
		"sleep":  func() { deaf(); forever() },
		"closed": func() { deaf(); closeAll(); forever() },
		"stopped": func() {
			deaf()
			_ = syscall.Kill(os.Getpid(), syscall.SIGSTOP)
			forever()
		},
		"daemon":         func() { start("sleep") }, // and ends
		"daemon closed":  func() { start("closed") },
		"daemon stopped": func() { start("stopped") },
		"speak":          func() { write([]byte("stray\n")); forever() },
		"read":           func() { _, _ = io.Copy(io.Discard, os.Stdin); forever() },
		"repeat":         func() { _, _ = io.Copy(os.Stdout, os.Stdin) },
		"fork": func() {
			for {
				start("fork")
			}
		},
		"memory": func() {
			var held [][]byte
			for {
				b := make([]byte, 1<<20)
				for i := 0; i < len(b); i += 4096 {
					b[i] = 1
				}
				held = append(held, b)
				_ = held
			}
		},
	}
}

// deaf ignores every signal that can be ignored.
func deaf() {
	signal.Ignore(syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGPIPE)
}

func closeAll() {
	os.Stdin.Close()
	os.Stdout.Close()
	os.Stderr.Close()
}

// become turns this process into a child.
func become(kind string) error {
	return syscall.Exec("/proc/self/exe", []string{os.Args[0], "child", kind, os.Getenv("HOME")}, os.Environ())
}

// start starts a child that holds all of this process's pipes; nil where the
// system refuses it.
func start(kind string, changes ...func(*syscall.SysProcAttr)) *exec.Cmd {
	cmd := exec.Command("/proc/self/exe", "child", kind, os.Getenv("HOME"))
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	cmd.SysProcAttr = &syscall.SysProcAttr{}
	for _, change := range changes {
		change(cmd.SysProcAttr)
	}
	if cmd.Start() != nil {
		return nil
	}
	return cmd
}

// leave starts children that outlive this process if they can: with its pipes
// held open, all closed, or stopped; and as daemons with a session of their
// own, forked twice. The second parameter is how many.
func (p *peer) leave(daemon bool) {
	kind := p.arg(0)
	if kind == "" || kind == "held" {
		kind = "sleep"
	}
	for range max(p.num(1), 1) {
		if !daemon {
			start(kind)
			continue
		}
		name := "daemon"
		if kind != "sleep" {
			name += " " + kind
		}
		if cmd := start(name, func(a *syscall.SysProcAttr) { a.Setsid = true }); cmd != nil {
			_ = cmd.Wait()
		}
	}
}
