package input

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// IsPath reports whether a reference is the path of a plugin rather than a name.
func IsPath(ref string) bool {
	if strings.HasPrefix(ref, "./") || strings.HasPrefix(ref, "../") || filepath.IsAbs(ref) || ref == "." {
		return true
	}
	switch filepath.Ext(ref) {
	case ".py", ".ts", ".js", ".mjs":
		_, err := os.Stat(ref)
		return err == nil
	}
	return false
}

// AfterDashes returns the command line that was refused for an unknown flag, with the two
// dashes before it that make it a member of the input. command is what it ran.
func AfterDashes(args []string, command string, err error) string {
	_, flag, _ := strings.Cut(err.Error(), "unknown flag: ")
	i := slices.IndexFunc(args, func(arg string) bool { return flag != "" && (arg == flag || strings.HasPrefix(arg, flag+"=")) })
	if i < 1 {
		return command + " NAME -- --member value"
	}
	words := slices.Concat([]string{"mortise"}, args[:i], []string{"--"}, args[i:])
	for n, word := range words {
		if strings.ContainsAny(word, " \t\n'\"\\$&|;<>()*?{}") {
			words[n] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
