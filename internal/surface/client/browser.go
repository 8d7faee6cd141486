package client

import (
	"errors"
	"fmt"
	"html"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/mortise-dev/mortise/plugin"
)

// settles is how long a program that opens pages has to say that it cannot. One that goes on
// is the browser itself, which stays when this process is gone.
const settles = 2 * time.Second

// OpenConsole opens a link of [Console] in the browser of this machine: with what $BROWSER
// names, or else with what the system opens pages with. The link signs someone in, and others
// can read the arguments of a program, so that the browser is given the name of a page in the
// data directory that its owner alone can read. Errors: unavailable, where there is no browser.
func OpenConsole(home, link string) error {
	program := opener()
	if program == "" {
		return noBrowser("there is no display, and $BROWSER names no program")
	}
	page, err := writePage(home, link)
	if err != nil {
		return err
	}
	cmd := exec.Command(program, page)
	if err := cmd.Start(); err != nil {
		return noBrowser(err.Error())
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	select {
	case err := <-ended:
		if err != nil {
			return noBrowser(fmt.Sprintf("%s: %v", program, err))
		}
	case <-time.After(settles):
	}
	return nil
}

func noBrowser(why string) error {
	return plugin.Errorf(plugin.CodeUnavailable, "no browser can be opened here: %s; 'mortise console --print' prints the link, which is good on this machine alone", why)
}

// opener is the program that opens pages, "" where there is none.
func opener() string {
	if first, _, _ := strings.Cut(os.Getenv("BROWSER"), ":"); first != "" {
		return first
	}
	if runtime.GOOS == "darwin" {
		return "open"
	}
	if os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "" {
		return ""
	}
	return "xdg-open"
}

// writePage writes a page that leads to a link, in place of an earlier one.
func writePage(home, link string) (string, error) {
	page, err := filepath.Abs(filepath.Join(home, "run", "console.html"))
	if err != nil {
		return "", err
	}
	if err := os.Remove(page); err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	f, err := os.OpenFile(page, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return "", err
	}
	_, err = fmt.Fprintf(f, "<!doctype html><meta charset=utf-8><title>Mortise</title><meta http-equiv=refresh content=\"0;url=%s\">\n", html.EscapeString(link))
	return page, errors.Join(err, f.Close())
}
