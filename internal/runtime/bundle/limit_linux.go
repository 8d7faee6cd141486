package bundle

import "syscall"

// limitAddresses bounds what one step may ask for before it is seen to.
func limitAddresses() {
	limit := syscall.Rlimit{Cur: 4 << 30, Max: 4 << 30}
	_ = syscall.Setrlimit(syscall.RLIMIT_AS, &limit)
	none := syscall.Rlimit{}
	_ = syscall.Setrlimit(syscall.RLIMIT_CORE, &none)
}
