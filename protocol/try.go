package protocol

import "syscall"

// TryWriter returns a function that writes to w what can be written without
// waiting, and returns how much that was; nil where w is no pipe of which this
// can be told. An error is left to the next ordinary write. The function is not
// safe for concurrent use, nor beside such a write.
func TryWriter(w any) func([]byte) int {
	file, ok := w.(syscall.Conn)
	if !ok {
		return nil
	}
	raw, err := file.SyscallConn()
	if err != nil || !nonblocking(raw) {
		return nil
	}
	var data []byte
	var n int
	once := func(fd uintptr) bool {
		n, _ = syscall.Write(int(fd), data)
		return true // never wait
	}
	return func(b []byte) int {
		data, n = b, 0
		if err := raw.Write(once); err != nil {
			n = 0
		}
		data = nil
		return max(n, 0)
	}
}
