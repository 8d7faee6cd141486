//go:build linux && amd64

package main

import (
	"bytes"
	"path/filepath"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/mortise-dev/mortise/test/escape/canary"
)

// shared are attempts on what processes of a host share without files: memory,
// semaphores and queues. Everybody may use those of the test.
var shared = []probe{
	{"ipc.attach_memory", func(c canary.Config) result { return attaches(c, c.ShmID) }},
	{"ipc.find_memory", func(c canary.Config) result {
		id, err := unix.SysvShmGet(c.ShmKey, 0, 0)
		if err != nil {
			return judge(err)
		}
		return attaches(c, id)
	}},
	{"ipc.list_memory", func(canary.Config) result {
		var information [14]uint64
		highest, err := raw(unix.SYS_SHMCTL, 0, 14, pointer(&information)) // SHM_INFO
		if err != nil {
			return judge(err)
		}
		if used := uint32(information[0]); used > 0 {
			return allowed("%d segments, the highest at %d", used, highest)
		}
		return denied("no segments")
	}},
	{"ipc.memory_status", func(c canary.Config) result {
		var status unix.SysvShmDesc
		_, err := unix.SysvShmCtl(c.ShmID, unix.IPC_STAT, &status)
		return judge(err)
	}},
	{"ipc.memory_mode", func(c canary.Config) result {
		var status unix.SysvShmDesc
		if _, err := unix.SysvShmCtl(c.ShmID, unix.IPC_STAT, &status); err != nil {
			return judge(err)
		}
		_, err := unix.SysvShmCtl(c.ShmID, unix.IPC_SET, &status) // as it was
		return judge(err)
	}},
	{"ipc.find_semaphore", func(c canary.Config) result { return call(nil, unix.SYS_SEMGET, uintptr(c.SemKey), 0, 0) }},
	{"ipc.read_semaphore", func(c canary.Config) result {
		return call(nil, unix.SYS_SEMCTL, uintptr(c.SemID), 0, 12) // GETVAL
	}},
	{"ipc.raise_semaphore", func(c canary.Config) result {
		operation := [3]int16{0, 1, 0}
		return call(nil, unix.SYS_SEMOP, uintptr(c.SemID), pointer(&operation), 1)
	}},
	{"ipc.find_queue", func(c canary.Config) result { return call(nil, unix.SYS_MSGGET, uintptr(c.MsgKey), 0) }},
	{"ipc.send_message", func(c canary.Config) result {
		message := [2]uint64{1, 0}
		return call(nil, unix.SYS_MSGSND, uintptr(c.MsgID), pointer(&message), 1, 0x800)
	}},
	{"ipc.receive_message", func(c canary.Config) result {
		message := [2]uint64{}
		return call([]unix.Errno{unix.ENOMSG}, unix.SYS_MSGRCV, uintptr(c.MsgID), pointer(&message), 1, 99, 0x800)
	}},
	{"ipc.read_shared_file", func(c canary.Config) result { return contains(filepath.Join("/dev/shm", c.ShmFile), c.Secret) }},
	{"ipc.write_shared_file", func(c canary.Config) result {
		return judge(closing(unix.Open(filepath.Join("/dev/shm", c.ShmFile), unix.O_RDWR|unix.O_CLOEXEC, 0)))
	}},
	{"ipc.list_shared_files", func(c canary.Config) result { return listsFile("/dev/shm", c.ShmFile)(c) }},
	{"ipc.open_posix_queue", func(c canary.Config) result {
		name := append([]byte(c.Queue), 0)
		return call(nil, unix.SYS_MQ_OPEN, pointer(&name[0]), unix.O_RDWR|unix.O_NONBLOCK, 0, 0)
	}},
	{"ipc.send_to_posix_queue", func(c canary.Config) result {
		name := append([]byte(c.Queue), 0)
		fd, err := raw(unix.SYS_MQ_OPEN, pointer(&name[0]), unix.O_RDWR|unix.O_NONBLOCK, 0, 0)
		if err != nil {
			return judge(err)
		}
		text := [8]byte{'e', 's', 'c', 'a', 'p', 'e', 'd'}
		return call(nil, unix.SYS_MQ_TIMEDSEND, fd, pointer(&text), 7, 0, 0)
	}},
	{"ipc.unlink_posix_queue", func(c canary.Config) result {
		name := append([]byte(c.Queue+"-spare"), 0)
		return call(nil, unix.SYS_MQ_UNLINK, pointer(&name[0]))
	}},
	{"ipc.remove_memory", func(c canary.Config) result {
		id, err := unix.SysvShmGet(c.ShmKey+1, 0, 0)
		if err != nil {
			return judge(err)
		}
		_, err = unix.SysvShmCtl(id, unix.IPC_RMID, nil)
		return judge(err)
	}},
}

func attaches(c canary.Config, id int) result {
	address, err := raw(unix.SYS_SHMAT, uintptr(id), 0, 0)
	if err != nil {
		return judge(err)
	}
	memory := *(*[]byte)(unsafe.Pointer(&struct {
		at       uintptr
		len, cap int
	}{address, len(c.Secret), len(c.Secret)}))
	if bytes.Equal(memory, []byte(c.Secret)) {
		return allowed("the secret was read")
	}
	return denied("attached, but the secret is not in it")
}
