package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/client"
	"github.com/mortise-dev/mortise/internal/surface/view"
)

func (c *command) sessionsReport() *cobra.Command {
	var to, format, verify string
	return c.command(spec{
		anywhere: true,
		use:      "report [SESSION]",
		short:    "Write a report of a session with citations, or verify one",
		long: `Write what a session found, with what proves each statement: what was run, what the
results say with the artifact, its hash and the line, frame or byte, the entry of each
call in the ledger, and the timeline. SESSION is that of MORTISE_SESSION where it is left
out. With --verify the report is worked out again, and every difference is printed.`,
		example: `  mortise sessions report sess_4f2a -o report.md
  mortise sessions report --verify report.md`,
		complete: c.completeSessions,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVarP(&to, "output", "o", "", "the file to write; standard output if empty")
			cmd.Flags().StringVar(&format, "format", "", "md or html; as the file's name ends, or md, if empty")
			cmd.Flags().StringVar(&verify, "verify", "", "work this report out again, and end with status 1 if it is another")
		},
		check: func([]string) error {
			if format == "" && strings.HasSuffix(to, ".html") {
				format = "html"
			}
			if verify != "" && (to != "" || format != "") {
				return usage{errors.New("--verify writes nothing: -o and --format are for a new report")}
			}
			if format != "" && !slices.Contains(host.ReportFormats, format) {
				return usage{fmt.Errorf("--format %s: it is md or html", format)}
			}
			return nil
		},
	}, func(ctx context.Context, q *ask) error {
		if verify != "" {
			return c.verifyReport(ctx, q, verify)
		}
		in, err := whichSession(strings.Join(q.args, ""))
		if err != nil {
			return err
		}
		var r host.SessionReport
		if err := c.during("writing the report", func() (err error) { r, err = client.Report(ctx, q.Host, in); return err }); err != nil {
			return err
		}
		if c.json {
			return c.print(r)
		}
		text, err := r.Write(format)
		switch {
		case err != nil:
			return err
		case to != "":
			return writeWhole(to, bytes.NewReader(text))
		}
		_, err = c.out.Write(text)
		return err
	})
}

var errUnproven = errors.New("the report does not hold")

// verifyReport says what of a report does not hold, which makes the command fail.
func (c *command) verifyReport(ctx context.Context, q *ask, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return usage{err}
	}
	defer f.Close()
	file, err := io.ReadAll(io.LimitReader(f, host.MaxReport+1))
	if err != nil {
		return usage{err}
	}
	var found host.ReportCheck
	err = c.during("verifying the report", func() (err error) {
		found, err = client.VerifyReport(ctx, q.Host, strings.Join(q.args, ""), file)
		return err
	})
	if err != nil {
		return err
	}
	if c.json {
		err = c.print(map[string]any{"ok": found.Holds(), "report": found})
	} else {
		err = view.ReportCheck(c.out, c.errs, found)
	}
	if err == nil && !found.Holds() {
		err = reported{errUnproven}
	}
	return err
}
