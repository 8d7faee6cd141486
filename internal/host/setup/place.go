package setup

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mortise-dev/mortise/internal/host/config"
)

// A Place says where a host is.
type Place struct {
	Home     string // the data directory
	Config   string // the configuration file; the one in Home if empty
	Database string // the database; what the configuration says if empty
}

// FindDatabase returns where the state is: what was asked for or, where nothing was, what
// the configuration says.
func (p Place) FindDatabase() (config.Database, error) {
	var configured config.Database
	if p.Database == "" {
		c, _, err := ReadConfig(p.Home, p.Config)
		if err != nil {
			return "", &Error{fmt.Errorf("the configuration, which says which database it is, cannot be used: %w", err)}
		}
		configured = c.Database
	}
	return ChooseDatabase(p.Database, configured)
}

// FindConfig returns the path of the configuration and whether there is such a file.
// unread is a file of the usual name in the working directory, "" where there is none or
// where it is the configuration.
func (p Place) FindConfig() (path string, exists bool, unread string, err error) {
	if _, path, err = ReadConfig(p.Home, p.Config); err != nil {
		return "", false, "", err
	}
	if absolute, err := filepath.Abs(path); err == nil {
		path = absolute
	}
	_, statErr := os.Stat(path)
	if beside, err := filepath.Abs(config.FileName); err == nil && beside != path {
		if _, err := os.Stat(beside); err == nil {
			unread = beside
		}
	}
	return path, !errors.Is(statErr, fs.ErrNotExist), unread, nil
}
