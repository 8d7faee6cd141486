// Command pcapsum reads a packet capture once and writes what is in it as one JSON
// object. It is the reader of the plugin pcap_metadata_summary, which starts it beside
// itself: a capture of a gigabyte passes through in bounded memory, and a malformed
// capture harms only this process.
//
//	pcapsum [flags] CAPTURE
//
// With -stdin the capture is standard input, a file, and CAPTURE what errors call it: who
// opened the file sees by its offset how far the reading is.
//
// Standard output holds a report, or an object with the one member error when
// there is nothing to report; the exit status is 1 then, and 2 for a mistake
// in the flags.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime/debug"
)

// memory is what the collector works to stay under; see the bounds in tally.go
// for why it can.
const memory = 400 << 20

// The codes of a failure, as the plugin's contract spells them.
const (
	codeNotFound   = "ARTIFACT_NOT_FOUND"
	codeUnreadable = "ARTIFACT_UNREADABLE"
	codeInternal   = "INTERNAL_ERROR"
)

// A failure is why there is no report.
type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (f *failure) Error() string { return f.Message }

// options are the command line.
type options struct {
	path      string
	stdin     bool   // whether standard input is the file, whose name path is
	limit     int    // most entries in each list of the report
	flows     int    // most conversations that are kept apart
	table     string // file for all conversations; none if empty
	tableSize int64  // most bytes of it
}

func main() {
	debug.SetMemoryLimit(memory)
	o, err := parse(os.Args[1:], os.Stderr)
	if err != nil {
		os.Exit(2)
	}
	out := bufio.NewWriter(os.Stdout)
	encoder := json.NewEncoder(out)
	report, err := run(o)
	if err == nil {
		err = encoder.Encode(report)
	} else {
		var known *failure
		if !errors.As(err, &known) {
			known = &failure{codeInternal, err.Error()}
		}
		_ = encoder.Encode(map[string]*failure{"error": known})
	}
	if flushed := out.Flush(); err != nil || flushed != nil {
		os.Exit(1)
	}
}

// parse reads the command line.
func parse(args []string, words io.Writer) (options, error) {
	var o options
	flags := flag.NewFlagSet("pcapsum", flag.ContinueOnError)
	flags.SetOutput(words)
	flags.IntVar(&o.limit, "limit", 20, "most entries in each list of the report")
	flags.IntVar(&o.flows, "max-flows", maxFlows, "most conversations that are kept apart")
	flags.BoolVar(&o.stdin, "stdin", false, "read the capture from standard input, which is a file")
	flags.StringVar(&o.table, "table", "", "write all conversations to this file, one JSON object a line")
	flags.Int64Var(&o.tableSize, "table-bytes", 128<<20, "most bytes of that file; the largest conversations come first")
	if err := flags.Parse(args); err != nil {
		return o, err
	}
	switch {
	case flags.NArg() != 1:
		fmt.Fprintln(words, "pcapsum: name one capture")
	case o.limit < 1 || o.limit > 1000:
		fmt.Fprintln(words, "pcapsum: -limit goes from 1 to 1000")
	case o.flows < 1 || o.flows > maxFlows:
		fmt.Fprintf(words, "pcapsum: -max-flows goes from 1 to %d\n", maxFlows)
	case o.tableSize < 0:
		fmt.Fprintln(words, "pcapsum: -table-bytes is at least 0")
	default:
		o.path = flags.Arg(0)
		return o, nil
	}
	return o, errors.New("wrong flags")
}

// open opens the capture.
func (o options) open() (*capture, error) {
	if o.stdin {
		return readCapture(os.Stdin, o.path)
	}
	return openCapture(o.path)
}

// run reads the capture and says what is in it.
func run(o options) (*report, error) {
	capture, err := o.open()
	if err != nil {
		return nil, err
	}
	defer capture.close()
	sum := newTally(o.flows)
	sum.readAll(capture)
	report := sum.report(capture, o.limit)
	if o.table != "" {
		if report.Table, err = sum.conversations.writeTable(o.table, o.tableSize); err != nil {
			return nil, fmt.Errorf("writing %s: %w", o.table, err)
		}
	}
	return report, nil
}
