package view

import (
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
)

// Users are people as they are listed.
var Users = List[host.User]{
	Key:    "users",
	Titles: []string{"ID", "PRINCIPAL", "IDENTITIES", "CREATED", "STATE"},
	None:   "no users; 'mortise users create PRINCIPAL' makes one",
	Fit:    OnScreen,
	Row: func(u host.User) []string {
		return []string{u.ID, u.Principal, strconv.Itoa(len(u.Identities)), Moment(u.CreatedAt), userState(u)}
	},
}

// Moment is a time that may not have come.
func Moment(at time.Time) string { return moment(at) }

func userState(u host.User) string {
	switch {
	case !u.DisabledAt.IsZero():
		return "disabled"
	case !u.InvitedUntil.IsZero():
		return "invited"
	}
	return "enabled"
}

// User shows a person with their identities.
func User(w io.Writer, u host.User) error {
	var b strings.Builder
	fmt.Fprintf(&b, "user %s is %s, %s; created by %s at %s\n", u.ID, u.Principal, userState(u), u.By, moment(u.CreatedAt))
	for _, id := range u.Identities {
		state := "since " + moment(id.LinkedAt)
		if !id.UnlinkedAt.IsZero() {
			state = "unlinked at " + moment(id.UnlinkedAt)
		}
		fmt.Fprintf(&b, "  %s, %s\n", id.Name, state)
	}
	_, err := io.WriteString(w, terminal.Escaped(b.String()))
	return err
}
