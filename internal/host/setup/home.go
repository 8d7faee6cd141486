package setup

import (
	"os"
	"path/filepath"
)

// DefaultHome is the host's data directory without --home: MORTISE_HOME, or
// else the usual place.
func DefaultHome() string {
	if home := os.Getenv("MORTISE_HOME"); home != "" {
		return home
	}
	return UsualHome()
}

// UsualHome is where that is in every shell of the same person.
func UsualHome() string {
	if data := os.Getenv("XDG_DATA_HOME"); filepath.IsAbs(data) {
		return filepath.Join(data, "mortise")
	}
	if home, err := os.UserHomeDir(); err == nil {
		return filepath.Join(home, ".local", "share", "mortise")
	}
	return ".mortise"
}
