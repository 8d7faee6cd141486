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
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime"
	"slices"
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

// cage waits for a spec, builds the cage and stays with the program. It takes one spec and ends: a launcher that was
// started ahead differs in nothing but how long it waits here.
func cage() {
	_ = tieToHost() // the end of the socket says so too
	var rooted error
	if slices.Contains(os.Args, wire.OwnMounts) {
		rooted = newRoot()
	}
	rehearse()
	files, err := receive(wire.SpecFD)
	if err == nil && files == nil {
		return // the host hung up: it has no use for us
	}
	host := bufio.NewReader(io.LimitReader(os.NewFile(wire.SpecFD, "spec"), maxSpec))
	report := json.NewEncoder(os.NewFile(wire.ReportFD, "report"))
	var spec wire.Spec
	var line []byte
	if err == nil {
		line, err = host.ReadBytes('\n')
	}
	if err == nil {
		err = json.Unmarshal(line, &spec)
	}
	if err == nil {
		err = assign(files, &spec)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, wire.ByHand)
		os.Exit(2)
	}
	signals := make(chan os.Signal, 8)
	started, pid := launch(&spec, rooted, host, signals)
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

// receive takes the byte that comes before the spec, and the descriptors that come with it; none where the host hung up.
func receive(socket int) (files []int, err error) {
	rights := make([]byte, unix.CmsgSpace(4*wire.MaxFiles))
	size, sent, flags, _, err := unix.Recvmsg(socket, make([]byte, 1), rights, unix.MSG_CMSG_CLOEXEC)
	for errors.Is(err, unix.EINTR) {
		size, sent, flags, _, err = unix.Recvmsg(socket, make([]byte, 1), rights, unix.MSG_CMSG_CLOEXEC)
	}
	if err != nil || size == 0 {
		return nil, err
	}
	if files, err = received(rights[:sent]); err != nil {
		return nil, err
	}
	if len(files) < wire.Standard || flags&unix.MSG_CTRUNC != 0 {
		return nil, fmt.Errorf("only %d descriptors arrived", len(files))
	}
	return files, nil
}

// assign makes the first files the standard ones, which the program inherits, and finds the others that a spec names.
func assign(files []int, spec *wire.Spec) error {
	for fd := range wire.Standard {
		if err := unix.Dup3(files[fd], fd, 0); err != nil {
			return err
		}
		_ = unix.Close(files[fd])
	}
	named := []*int{&spec.Proxy}
	for i := range spec.Tree {
		named = append(named, &spec.Tree[i].FD)
	}
	for _, index := range named {
		if *index == 0 {
			continue
		}
		if *index < wire.Standard || *index >= len(files) {
			return fmt.Errorf("descriptor %d of %d", *index, len(files))
		}
		*index = files[*index]
	}
	return nil
}

// rehearse reads and writes what is read and written later, of which the first time takes a quarter of a millisecond.
func rehearse() {
	line, _ := json.Marshal(wire.Spec{Argv: []string{""}, Tree: []wire.Node{{}}, Outside: []wire.Peer{{}}})
	_ = json.Unmarshal(line, new(wire.Spec))
	_, _ = json.Marshal(wire.Started{Layers: []wire.Layer{{}}})
}

// launch builds the cage and starts the program in it.
func launch(spec *wire.Spec, rooted error, host *bufio.Reader, signals chan<- os.Signal) (started wire.Started, pid int) {
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
		if rooted != nil {
			return failed("view", rooted)
		}
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
	null, nothing := unix.Open("/dev/null", unix.O_RDWR|unix.O_CLOEXEC, 0)
	for fd := range wire.Standard {
		if nothing != nil || unix.Dup3(null, fd, 0) != nil {
			_ = unix.Close(fd)
		}
	}
	_ = unix.Close(null)
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
