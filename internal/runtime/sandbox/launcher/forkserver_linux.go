package launcher

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox/wire"
)

// forkServer forks a launcher for each request of the host, one after another, until the
// host closes the socket. The launchers are children of the host.
func forkServer() {
	// A launcher inherits what a request brings, and nothing that the host inherited itself.
	if err := unix.CloseRange(wire.SpecFD, ^uint(0)>>1&0xffffffff, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		unix.CloseOnExec(wire.SpecFD)
		unix.CloseOnExec(wire.SpecFD + 1) // our own program, if it was started from memory
	}
	order := make([]byte, wire.MaxFork)
	rights := make([]byte, unix.CmsgSpace(4*wire.MaxForkFiles))
	for {
		size, sent, flags, _, err := unix.Recvmsg(wire.SpecFD, order, rights, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || size == 0 {
			return
		}
		var forked wire.Forked
		if forked, err = fork(order[:size], rights[:sent], flags); err != nil {
			forked.Error = err.Error()
			if errno, ok := errors.AsType[syscall.Errno](err); ok {
				forked.Errno = int(errno)
			}
		}
		answer, err := json.Marshal(forked)
		if err != nil || unix.Send(wire.SpecFD, answer, unix.MSG_NOSIGNAL) != nil {
			return
		}
	}
}

// fork starts a launcher as a request says.
func fork(order, rights []byte, flags int) (forked wire.Forked, err error) {
	files, err := received(rights)
	defer func() {
		for _, fd := range files {
			_ = unix.Close(fd)
		}
	}()
	if err != nil {
		return forked, err
	}
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		return forked, fmt.Errorf("only %d descriptors arrived: raise the limit of open files (ulimit -n)", len(files))
	}
	var b wire.Fork
	if err := json.Unmarshal(order, &b); err != nil {
		return forked, err
	}
	if len(b.Tasks) == 0 {
		forked.PID, err = start(&b, files)
		return forked, err
	}
	// A process begins in the cgroups of the thread that forks it, and a thread that moves itself into one waits for
	// nothing. To move a process by its number takes the kernel a grace period of RCU: some milliseconds.
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // never unlocked: the thread, which is in the cgroups now, ends with this goroutine
		forked.In = join(b.Tasks) == nil
		forked.PID, err = start(&b, files)
	}()
	<-done
	return forked, err
}

// launcherEnv keeps the threads few. The runtime is not to look into the host's cgroups for their number.
var launcherEnv = []string{"GOMAXPROCS=2", "GOGC=off", "GODEBUG=containermaxprocs=0"}

// start forks a launcher from this thread, on which the caller stays. The thread can gain no privileges from here on, so
// no thread of the launcher ever could.
func start(b *wire.Fork, files []int) (pid int, err error) {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return 0, err
	}
	var theirs []uintptr
	for _, fd := range files {
		theirs = append(theirs, uintptr(fd))
	}
	argv := []string{wire.Launcher}
	if b.Flags&unix.CLONE_NEWNS != 0 {
		argv = append(argv, wire.OwnMounts)
	}
	return syscall.ForkExec("/proc/self/exe", argv, &syscall.ProcAttr{
		Dir: "/", Env: launcherEnv, Files: theirs,
		Sys: &syscall.SysProcAttr{
			Setpgid: true, Cloneflags: b.Flags | unix.CLONE_PARENT, AmbientCaps: b.Ambient,
			UidMappings: mappings(b.Users), GidMappings: mappings(b.Groups), GidMappingsEnableSetgroups: b.SetGroups,
		},
	})
}

// join moves this thread into cgroups.
func join(tasks []string) error {
	for _, path := range tasks {
		if err := os.WriteFile(path, []byte("0"), 0); err != nil {
			return err
		}
	}
	return nil
}

// received returns the descriptors that came with a packet.
func received(rights []byte) (files []int, err error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return files, err
		}
		files = append(files, fds...)
	}
	return files, nil
}

func mappings(all []wire.Mapping) (ids []syscall.SysProcIDMap) {
	for _, m := range all {
		ids = append(ids, syscall.SysProcIDMap{ContainerID: m.Inside, HostID: m.Outside, Size: 1})
	}
	return ids
}
