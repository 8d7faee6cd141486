// Command structure measures the shape of the code and prints each measure beside
// what it should be.
package main

import (
	"fmt"
	"os"
)

func main() {
	root := "."
	if len(os.Args) > 1 {
		root = os.Args[1]
	}
	all, err := Measure(root)
	if err != nil {
		fmt.Fprintln(os.Stderr, "structure:", err)
		os.Exit(1)
	}
	fmt.Printf("%-52s %7s   %s\n", "MEASURE", "NOW", "GOAL")
	missed := 0
	for _, m := range all {
		mark := ""
		if !m.Met() {
			mark, missed = "  missed", missed+1
		}
		fmt.Printf("%-52s %7d   %s%s\n", m.Name, m.Now, m.Goal(), mark)
	}
	if missed > 0 {
		fmt.Printf("\n%d of %d measures are missed\n", missed, len(all))
	}
}
