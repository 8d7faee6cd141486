package setup

import (
	"bufio"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// secretPlaces are where programs keep what opens other machines and accounts,
// below the home of each user.
var secretPlaces = []string{
	".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".password-store", ".mozilla", ".netrc.d",
	".config/gcloud", ".config/gh", ".config/op", ".config/sops", ".config/containers", ".config/google-chrome", ".config/chromium",
	".local/share/keyrings",
}

// maxHomes is how many users of the machine are looked at.
const maxHomes = 64

// Hidden returns the directories of which no plugin is shown anything, whatever
// names them: the data directory, and places of secrets that there are.
func Hidden(home string) []string {
	return append([]string{home}, placesBelow(homes("/etc/passwd"))...)
}

func placesBelow(homes []string) []string {
	var places []string
	for _, user := range homes {
		for _, name := range secretPlaces {
			place := filepath.Join(user, name)
			if info, err := os.Stat(place); err == nil && info.IsDir() {
				places = append(places, place)
			}
		}
	}
	return places
}

// homes returns the home of the host's user, and those of the users that the
// system's table names.
func homes(table string) []string {
	var found []string
	if own, err := os.UserHomeDir(); err == nil && filepath.IsAbs(own) {
		found = append(found, own)
	}
	file, err := os.Open(table)
	if err != nil {
		return found
	}
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan() && len(found) < maxHomes; {
		fields := strings.Split(lines.Text(), ":")
		if len(fields) < 6 || !filepath.IsAbs(fields[5]) || slices.Contains(found, fields[5]) {
			continue
		}
		switch dir := fields[5]; {
		case dir == "/" || strings.HasPrefix(dir, "/usr/") || strings.HasPrefix(dir, "/run/") || strings.HasPrefix(dir, "/dev"): // of the system's services
		default:
			found = append(found, dir)
		}
	}
	return found
}
