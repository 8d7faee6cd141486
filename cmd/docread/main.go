// Command docread reads documents that strangers wrote, PDF, Office, HTML and mail, and
// gives their text. The host carries it compressed, and starts it in a cage.
package main

import (
	"os"

	"github.com/mortise-dev/mortise/internal/service/extract/reader"
)

func main() { os.Exit(reader.Main(os.Args[1:], os.Stdin, os.Stdout)) }
