// Package launcher puts walls around its own process, tries each of them,
// starts one program inside and stays with it until it ends.
//
// Importing it makes a program able to be a launcher: a process whose first
// argument (argv[0]) is [wire.Launcher] never reaches main, and is a launcher
// from its first instructions to its end. cmd/cage is the small program that
// the host carries for that; a host that was built without it executes itself.
// A launcher gains nothing over the user who starts it, and does only what the
// descriptors that it inherits tell it.
//
// The host has it forked in new namespaces by its fork server, which is this same
// program and does nothing else. The host sends it a wire.Spec and reads what
// came of it; see package sandbox. The order is:
// the root that the program sees, who it is, what it may use, what it may
// still ask of the kernel. From then on the launcher itself is inside too.
//
// In its PID namespace the launcher is the first process. It reaps what is
// orphaned and passes signals on, and when it ends the kernel ends the rest:
// after the program, or as soon as the host is gone.
package launcher

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox/wire"
)

// maxSpec is the longest spec that is read.
const maxSpec = 1 << 20

func init() {
	if len(os.Args) == 0 || os.Args[0] != wire.Launcher {
		return
	}
	// All walls stand around this thread, and it forks the program.
	runtime.LockOSThread()
	if len(os.Args) > 1 && os.Args[1] == wire.ForkServer {
		forkServer()
		os.Exit(0)
	}
	cage()
	os.Exit(0)
}

// cage reads a spec, builds the cage and stays with the program.
func cage() {
	host := bufio.NewReader(io.LimitReader(os.NewFile(wire.SpecFD, "spec"), maxSpec))
	report := json.NewEncoder(os.NewFile(wire.ReportFD, "report"))
	var spec wire.Spec
	line, err := host.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(line, &spec)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, wire.ByHand)
		os.Exit(2)
	}
	signals := make(chan os.Signal, 8)
	started, pid := launch(&spec, host, signals)
	if err := report.Encode(started); err != nil || started.Error != "" {
		os.Exit(127)
	}
	if pid == 0 { // there was only a cage to try: the host looks what its cgroup counts, and hangs up
		_, _ = host.ReadByte()
		return
	}
	watch := newWatcher(&spec)
	ended := supervise(pid, host, watch, signals)
	_ = report.Encode(ended)
	if ended.Signal != 0 {
		os.Exit(128 + ended.Signal)
	}
	os.Exit(ended.Exit)
}

// launch builds the cage and starts the program in it.
func launch(spec *wire.Spec, host *bufio.Reader, signals chan<- os.Signal) (started wire.Started, pid int) {
	failed := func(stage string, err error) (wire.Started, int) {
		started.Stage, started.Error = stage, err.Error()
		return started, 0
	}
	// Nothing but the three files of the program goes on to it.
	if err := unix.CloseRange(wire.SpecFD, ^uint(0)>>1&0xffffffff, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		unix.CloseOnExec(wire.SpecFD)
		unix.CloseOnExec(wire.ReportFD)
	}
	if err := tieToHost(); err != nil {
		return failed("walls", err)
	}
	layers := namespaces(spec)
	if spec.Proxy != 0 {
		if err := offer(spec, layers); err != nil {
			return failed("walls", err)
		}
	}
	if spec.Mounts {
		if err := buildView(spec); err != nil {
			return failed("view", err)
		}
	}
	layers = append(layers, viewLayer(spec))
	rest, err := wallIn(spec)
	if err != nil {
		return failed("walls", err)
	}
	started.Layers = append(layers, rest...)
	if err := unix.Chdir(spec.Dir); err != nil {
		return failed("view", fmt.Errorf("entering %s: %w", spec.Dir, err))
	}
	if spec.Wait { // until the host has put us into our cgroup
		if _, err := host.ReadByte(); err != nil {
			return failed("walls", fmt.Errorf("the host is gone: %w", err))
		}
	}
	if started.Layers = append(started.Layers, counters(spec)...); len(spec.Argv) == 0 {
		if _, err := hold(); err != nil {
			return failed("walls", err)
		}
		return started, 0
	}
	stock()
	signal.Notify(signals, passed...) // from here on they wait for the program; earlier, there would be a thread more to wall in
	pid, err = syscall.ForkExec(spec.Argv[0], spec.Argv, &syscall.ProcAttr{
		Env: spec.Env, Files: []uintptr{0, 1, 2}, Sys: &syscall.SysProcAttr{Setsid: true, Pdeathsig: syscall.SIGKILL},
	})
	if err != nil {
		return failed("exec", err)
	}
	// The host sees the end of the program's output and input when they end.
	for fd := range 3 {
		if null, err := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0); err == nil {
			_ = unix.Dup3(null, fd, 0)
			_ = unix.Close(null)
		} else {
			_ = unix.Close(fd)
		}
	}
	return started, pid
}

// threads is how many this process may need at a time once the program runs.
const threads = 6

// stock has the runtime make those threads now: the program and this process
// share one limit, and a program that has used it up must not take the watch off
// itself. The runtime keeps threads that are idle.
func stock() {
	var made sync.WaitGroup
	hold := make(chan struct{})
	for range threads {
		made.Add(1)
		go func() {
			runtime.LockOSThread() // so that each needs one of its own
			made.Done()
			<-hold
			runtime.UnlockOSThread()
		}()
	}
	made.Wait()
	close(hold)
}

// tieToHost lets the kernel end this process when the host does. A change of
// the user undoes it, so it is called again then.
func tieToHost() error { return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0) }

// namespaces says which of our namespaces are not the host's.
func namespaces(spec *wire.Spec) []wire.Layer {
	var layers []wire.Layer
	for _, outside := range spec.Outside {
		if outside.Name == "mnt" {
			continue // see viewLayer
		}
		layer := wire.Layer{Name: titles[outside.Name], Why: "the launcher was started in the host's own"}
		if own, err := os.Readlink("/proc/self/ns/" + outside.Name); err == nil && own != outside.ID {
			layer.On, layer.Why = true, ""
		}
		switch {
		case outside.Name == "pid" && (os.Getpid() != 1 || os.Getppid() != 0):
			layer.On, layer.Why = false, "the processes of the host are in sight"
		case outside.Name == "net" && connects():
			layer.On, layer.Why = false, "a network can be reached"
		}
		layers = append(layers, layer)
	}
	return layers
}

// connects reports whether there is a network, of which every one has a way to
// its own machine that is up.
func connects() bool {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return false
	}
	defer unix.Close(fd)
	return unix.Connect(fd, &unix.SockaddrInet4{Port: 9, Addr: [4]byte{127, 0, 0, 1}}) == nil
}

var titles = map[string]string{
	"user": "user namespace", "pid": "pid namespace", "net": "network namespace", "ipc": "ipc namespace", "uts": "uts namespace",
}
