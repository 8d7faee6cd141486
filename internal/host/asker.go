package host

import (
	"os"
	"os/user"
	"strconv"

	"github.com/mortise-dev/mortise/internal/core/approval"
)

// OSUser returns the user that runs this process, as the operating system has
// authenticated them. It does not depend on the name given on the command line.
//
// In a user namespace its creator assigns user ids, and with a range of subordinate ids
// one user has as many there as they like. OSUser returns [approval.Unknown] there, and
// where it cannot tell: that counts as the same user as any other participant.
func OSUser() string {
	if uid := os.Getuid(); uid >= 0 {
		if why := assigned(); why != "" {
			return approval.Unknown(why)
		}
		return "os:" + strconv.Itoa(uid)
	}
	u, err := user.Current() // Windows has no numbers
	if err != nil {
		return approval.Unknown("the operating system does not say who runs this process: " + err.Error())
	}
	return "os:" + u.Uid
}

// OSUserName is that user for people to read.
func OSUserName() string {
	if u, err := user.Current(); err == nil {
		return u.Username
	}
	return OSUser()
}
