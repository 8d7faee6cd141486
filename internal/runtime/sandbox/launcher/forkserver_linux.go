package launcher

import (
	"encoding/json"
	"errors"
	"fmt"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/internal/runtime/sandbox/wire"
)

// forkServer forks a launcher for each request of the host, one after another, until the
// host closes the socket. The launchers are children of the host.
func forkServer() {
	unix.CloseOnExec(wire.SpecFD)
	unix.CloseOnExec(wire.SpecFD + 1) // our own program, if it was started from memory
	order := make([]byte, wire.MaxFork)
	rights := make([]byte, unix.CmsgSpace(4*wire.MaxFiles))
	for {
		size, sent, flags, _, err := unix.Recvmsg(wire.SpecFD, order, rights, unix.MSG_CMSG_CLOEXEC)
		if errors.Is(err, unix.EINTR) {
			continue
		}
		if err != nil || size == 0 {
			return
		}
		var forked wire.Forked
		if forked.PID, err = fork(order[:size], rights[:sent], flags); err != nil {
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
func fork(order, rights []byte, flags int) (pid int, err error) {
	files, err := received(rights)
	defer func() {
		for _, fd := range files {
			_ = unix.Close(int(fd))
		}
	}()
	if err != nil {
		return 0, err
	}
	if flags&(unix.MSG_TRUNC|unix.MSG_CTRUNC) != 0 {
		return 0, fmt.Errorf("only %d descriptors arrived: raise the limit of open files (ulimit -n)", len(files))
	}
	var b wire.Fork
	if err := json.Unmarshal(order, &b); err != nil {
		return 0, err
	}
	return syscall.ForkExec("/proc/self/exe", []string{wire.Launcher}, &syscall.ProcAttr{
		Dir: "/", Env: []string{"GOMAXPROCS=2", "GOGC=off"}, Files: files,
		Sys: &syscall.SysProcAttr{
			Setpgid: true, Cloneflags: b.Flags | unix.CLONE_PARENT, AmbientCaps: b.Ambient,
			UidMappings: mappings(b.Users), GidMappings: mappings(b.Groups), GidMappingsEnableSetgroups: b.SetGroups,
		},
	})
}

// received returns the descriptors that came with a packet.
func received(rights []byte) (files []uintptr, err error) {
	messages, err := unix.ParseSocketControlMessage(rights)
	if err != nil {
		return nil, err
	}
	for _, m := range messages {
		fds, err := unix.ParseUnixRights(&m)
		if err != nil {
			return files, err
		}
		for _, fd := range fds {
			files = append(files, uintptr(fd))
		}
	}
	return files, nil
}

func mappings(all []wire.Mapping) (ids []syscall.SysProcIDMap) {
	for _, m := range all {
		ids = append(ids, syscall.SysProcIDMap{ContainerID: m.Inside, HostID: m.Outside, Size: 1})
	}
	return ids
}
