//go:build fault

package fault

import (
	"bufio"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// An outage is trouble of a store that begins at a point and ends.
type outage struct {
	point, kind string
	nth         int // how often the point is come by until it begins
	arg         string
	lasts       time.Duration

	times int
	until time.Time // zero before it begins
}

var (
	outages sync.Mutex // guards the one below
	now     = mustOutage(os.Getenv("MORTISE_FAULT_OUTAGE"))
)

// What a store says that refuses for a while.
var refusals = map[string]error{
	"busy": errors.New("database is locked (5) (SQLITE_BUSY)"),
	"lost": &os.SyscallError{Syscall: "read", Err: syscall.ECONNRESET},
	"full": &os.SyscallError{Syscall: "write", Err: syscall.ENOSPC},
}

// Arm has trouble begin when a point is come by for the nth time from now on:
//
//	point/busy:3:5s            for so long what uses a busy database is refused
//	point/lost:3:5s            or the connection is lost
//	point/full:3:5s            or the disk is full
//	point/slow:3:50ms          from then on all is slower by that, to ten times that
//	point/tell:3:127.0.0.1:80  once, what listens there is told, and waited for
//
// The points are begin, commit and committed. "" ends all trouble.
func Arm(spec string) error {
	o, err := parse(spec)
	if err != nil {
		return err
	}
	outages.Lock()
	defer outages.Unlock()
	now = o
	return nil
}

// Begun reports whether the trouble that is armed has begun, and over whether it is
// over, too.
func Begun() (begun, over bool) {
	outages.Lock()
	defer outages.Unlock()
	if now == nil || now.until.IsZero() {
		return false, false
	}
	return true, time.Now().After(now.until)
}

func mustOutage(spec string) *outage {
	o, err := parse(spec)
	if err != nil {
		panic(err)
	}
	return o
}

func parse(spec string) (*outage, error) {
	if spec == "" {
		return nil, nil
	}
	what, rest, _ := strings.Cut(spec, ":")
	nth, arg, _ := strings.Cut(rest, ":")
	o := &outage{arg: arg}
	o.point, o.kind, _ = strings.Cut(what, "/")
	var err error
	if o.nth, err = strconv.Atoi(nth); err != nil {
		return nil, fmt.Errorf("%s: %w", spec, err)
	}
	if o.kind != "tell" {
		if o.lasts, err = time.ParseDuration(arg); err != nil {
			return nil, fmt.Errorf("%s: %w", spec, err)
		}
	}
	return o, nil
}

// trouble is what there is of it at a point.
func trouble(point string) error {
	outages.Lock()
	o := now
	if o == nil || o.point != point {
		outages.Unlock()
		return nil
	}
	if o.times++; o.times < o.nth {
		outages.Unlock()
		return nil
	}
	begins := o.until.IsZero()
	if begins {
		o.until = time.Now().Add(o.lasts)
	}
	on := time.Now().Before(o.until)
	outages.Unlock()
	switch {
	case o.kind == "slow":
		time.Sleep(o.lasts + rand.N(9*o.lasts))
	case o.kind == "tell" && begins:
		return tell(o.arg)
	case o.kind != "tell" && on:
		return refusals[o.kind]
	}
	return nil
}

// tell tells a test that the moment has come, and waits until it has done what it wants.
func tell(address string) error {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil // the test is gone
	}
	defer conn.Close()
	_, _ = bufio.NewReader(conn).ReadString('\n')
	return nil
}

// Pool is how many of something there are: n, or what a test wants.
func Pool(n int) int {
	if wanted, err := strconv.Atoi(os.Getenv("MORTISE_FAULT_POOL")); err == nil && wanted > 0 {
		return wanted
	}
	return n
}
