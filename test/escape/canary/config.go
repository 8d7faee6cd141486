// Package canary sets up what an escape would touch: files outside the cage,
// listeners on every address, shared memory, message queues and a process to
// attack. It watches them all, so that a test need not believe a probe that says
// it was refused.
package canary

// Config tells the probe where the canaries are. It is all a probe knows of its
// host; a plugin that looks around could have learnt as much.
type Config struct {
	Probe string `json:"-"` // the name of the probe that is running

	Secret  string `json:"secret"`  // what every canary file begins with
	Mark    string `json:"mark"`    // a name used nowhere else on the machine
	Outside string `json:"outside"` // a directory of the host that was not granted
	Package string `json:"package"` // the directory of the probe, granted for reading
	Scratch string `json:"scratch"` // the directory the probe may write to
	OwnerID int    `json:"owner_id"`

	HostPID    int    `json:"host_pid"`
	HostGroup  int    `json:"host_group"`
	VictimPID  int    `json:"victim_pid"`
	VictimAddr uint64 `json:"victim_addr"` // where the victim keeps the secret

	TCPPort   int      `json:"tcp_port"`
	UDPPort   int      `json:"udp_port"`
	Addresses []string `json:"addresses"` // of the host's interfaces, loopback aside

	UnixStream   string `json:"unix_stream"`
	UnixDatagram string `json:"unix_datagram"`
	UnixPacket   string `json:"unix_packet"`
	Abstract     string `json:"abstract"`          // without the leading NUL
	AbstractData string `json:"abstract_datagram"` // without the leading NUL

	ShmKey  int    `json:"shm_key"`
	ShmID   int    `json:"shm_id"`
	SemKey  int    `json:"sem_key"`
	SemID   int    `json:"sem_id"`
	MsgKey  int    `json:"msg_key"`
	MsgID   int    `json:"msg_id"`
	ShmFile string `json:"shm_file"` // POSIX shared memory
	Queue   string `json:"queue"`    // POSIX message queue, without the slash

	CorePattern string            `json:"core_pattern"` // what the kernel does with the dump of a core
	RootMount   string            `json:"root_mount"`   // the number of what is mounted at the root of the host
	Sizes       map[string]int    `json:"sizes"`        // bytes of its files that a cage has others of, by path
	Namespaces  map[string]string `json:"namespaces"`   // the host's, as /proc/self/ns shows them
	LeakedFD    int               `json:"leaked_fd"`    // a descriptor the host forgot to close on exec
}
