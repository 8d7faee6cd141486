package host

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"runtime"
	"strconv"
	"strings"
)

// OSUser returns the user that runs this process, as the operating system has
// authenticated them. It does not depend on the name given on the command line.
//
// In a user namespace the creator of the namespace assigns user ids, so the id
// proves nothing: OSUser returns "", which counts as the same user as any other
// participant.
func OSUser() string {
	if uid := os.Getuid(); uid >= 0 {
		if renamed() {
			return ""
		}
		return "os:" + strconv.Itoa(uid)
	}
	if u, err := user.Current(); err == nil { // Windows has no numbers
		return "os:" + u.Uid
	}
	return ""
}

// renamed reports whether this process is in a user namespace that gives users
// other numbers than the machine does.
func renamed() bool {
	table, err := os.ReadFile("/proc/self/uid_map")
	if errors.Is(err, fs.ErrNotExist) { // no Linux, or no /proc
		return runtime.GOOS == "linux"
	}
	return err != nil || strings.Join(strings.Fields(string(table)), " ") != "0 0 4294967295"
}

// OSUserName is that user for people to read.
func OSUserName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return OSUser()
}
