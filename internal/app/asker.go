package app

import (
	"os"
	"os/user"
	"strconv"
)

// OSUser is who runs this process, as the operating system has authenticated
// them. Whatever name somebody takes at the command line, that stays.
func OSUser() string {
	if uid := os.Getuid(); uid >= 0 {
		return "os:" + strconv.Itoa(uid)
	}
	if u, err := user.Current(); err == nil { // Windows has no numbers
		return "os:" + u.Uid
	}
	return ""
}

// OSUserName is that user for people to read.
func OSUserName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return OSUser()
}
