package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/host"
	"github.com/mortise-dev/mortise/internal/surface/view"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) knowledge() *cobra.Command {
	return group(spec{
		use:   "kb",
		short: "Manage and search knowledge bases",
		long: `Manage and search knowledge bases.

A knowledge base holds documents as text, cut into passages that are found by their
words. Files of PDF, Word, PowerPoint, Excel, HTML and mail are read in a process of
its own, in a cage; text from pictures where tesseract is installed.`,
	}, c.kbCreate(), c.kbList(), c.kbAdd(), c.kbSearch(), c.kbShow(), c.kbEmbed(), c.kbDelete())
}

func (c *command) kbCreate() *cobra.Command {
	var base host.KnowledgeBase
	return c.change(spec{
		anywhere: true,
		use:      "create ID",
		short:    "Create a knowledge base",
		example:  `  mortise kb create handbook --name "The handbook"`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&base.Name, "name", "", "what people call it; the id if empty")
			cmd.Flags().StringVar(&base.Description, "description", "", "what it is about")
			labelFlag(cmd, &base.Labels, "the documents are")
		},
		check: func([]string) error { return checkLabels(base.Labels) },
	}, func(ctx context.Context, q *ask) (done, error) {
		base.ID = q.args[0]
		made, err := q.Knowledge().Create(ctx, base)
		return done{value: made, said: made.ID}, err
	})
}

func (c *command) kbList() *cobra.Command {
	return list(c, spec{anywhere: true, use: "list", short: "List the knowledge bases", example: "  mortise kb list"}, view.KnowledgeBases,
		func(ctx context.Context, q *ask) ([]host.KnowledgeBase, error) { return q.Knowledge().List(ctx) })
}

func (c *command) kbAdd() *cobra.Command {
	var s host.Source
	var mode, mime string
	return c.command(spec{
		anywhere: true,
		use:      "add FILE...",
		short:    "Add files to a knowledge base",
		long: `Add files to a knowledge base.

What was put there under the same source is replaced; the same again is skipped. The
source of a file is its absolute path, unless --source names another. A file that
gives no text is skipped, and the command ends with status 3.

--ocr says when text is read from pictures, which takes tesseract: always of PDF and
images, auto where that can be done, fallback where no text came otherwise, never.`,
		example: `  mortise kb add handbook.pdf notes/*.md --kb handbook`,
		flags: func(cmd *cobra.Command) {
			flags := cmd.Flags()
			flags.StringVar(&s.KB, "kb", "", "the knowledge base")
			flags.StringVar(&s.ID, "source", "", "what the file is elsewhere, by which it is known again")
			flags.StringVar(&s.Title, "title", "", "a title other than the file's own")
			flags.StringVar(&s.URL, "url", "", "where people find it")
			flags.StringVar(&mime, "mime", "", "what it is, where its name and its first bytes do not tell")
			flags.StringVar(&mode, "ocr", string(host.UsualOCR), "when text is read from pictures: "+strings.Join(host.OCRModes, ", "))
			labelFlag(cmd, &s.Labels, "the documents are")
			_ = cmd.MarkFlagRequired("kb")
			_ = cmd.RegisterFlagCompletionFunc("ocr", cobra.FixedCompletions(host.OCRModes, cobra.ShellCompDirectiveNoFileComp))
		},
		check: func(args []string) (err error) {
			if s.OCR, err = host.ParseOCR(mode); err != nil {
				return usage{err}
			}
			if err := checkLabels(s.Labels); err != nil {
				return err
			}
			if len(args) > 1 && (s.ID != "" || s.Title != "" || s.URL != "") {
				return usage{errors.New("--source, --title and --url are for one file")}
			}
			return nil
		},
	}, func(ctx context.Context, q *ask) error { return c.addDocuments(ctx, q, mime, s) })
}

func (c *command) addDocuments(ctx context.Context, q *ask, mime string, s host.Source) error {
	added := []view.AddedDocument{}
	var failed, skipped error
	for _, path := range q.args {
		var got host.Ingested
		if err := c.during("adding "+path, func() (err error) { got, err = addDocument(ctx, q, path, mime, s); return err }); err != nil {
			failed = err
			break
		}
		added = append(added, view.AddedDocument{File: path, Ingested: got})
		if got.Unembedded {
			c.say("%s is found by its words alone: the model of embeddings cannot be asked; 'mortise kb embed %s' makes up for it", path, s.KB)
		}
		if got.Skipped && got.SkipReason != host.SameAsBefore {
			message, _ := got.Extraction.Details["message"].(string)
			c.say("%s is skipped: %s", path, message)
			skipped = reported{plugin.Errorf(plugin.CodeInvalidInput, "%s is skipped: %s", path, message)}
		}
	}
	if c.json {
		if failed != nil {
			return failed
		}
		if err := c.print(map[string]any{"documents": added}); err != nil {
			return err
		}
		return skipped
	}
	if len(added) > 0 {
		if err := view.AddedDocuments.Table(c.out, added); err != nil {
			return err
		}
	}
	if failed != nil {
		return failed
	}
	return skipped
}

func addDocument(ctx context.Context, q *ask, path, mime string, s host.Source) (host.Ingested, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return host.Ingested{}, err
	}
	if own, err := host.OwnFile(path, q.Who().Home); q.Who().Home != "" && (err != nil || own) {
		return host.Ingested{}, errors.Join(err, plugin.Errorf(plugin.CodeInvalidInput, "%s is the host's own: name another file", path))
	}
	file, err := os.Open(path)
	if err != nil {
		return host.Ingested{}, usage{err}
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, host.MaxDocument+1))
	if err != nil {
		return host.Ingested{}, usage{err}
	}
	if s.ID == "" {
		s.ID = absolute
	}
	s.File = &host.DocumentFile{Data: data, MIME: mime, Name: filepath.Base(path)}
	s.By = host.OnBehalf{Operation: "kb add"}
	return q.Knowledge().Ingest(ctx, s)
}

func (c *command) kbSearch() *cobra.Command {
	query := host.Query{By: host.OnBehalf{Operation: "kb search"}}
	return show(c, spec{
		anywhere: true,
		use:      "search QUERY",
		args:     cobra.MinimumNArgs(1),
		short:    "Search for the best passages",
		long: `Search for the best passages.

A query is words: a passage that has one of them is found, and those that have more,
and rarer ones, come first. Letter case does not count.`,
		example: `  mortise kb search "notice period" --kb handbook`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringArrayVar(&query.KBs, "kb", nil, "search this knowledge base; all if there is none (repeatable)")
			cmd.Flags().IntVar(&query.Limit, "limit", 10, "how many passages, at most 100")
		},
	}, func(ctx context.Context, q *ask) (view.Found, error) {
		query.Text = strings.Join(q.args, " ")
		hits, err := q.Knowledge().Search(ctx, query)
		return view.Found{Results: hits}, err
	}, func(w io.Writer, f view.Found) error { return view.Passages(w, c.errs, f) })
}

func (c *command) kbShow() *cobra.Command {
	var after string
	var most int
	return c.command(spec{
		anywhere: true,
		use:      "show ID [DOCUMENT]",
		short:    "Show a knowledge base with its documents, or a document with its text",
		example: `  mortise kb show handbook
  mortise kb show handbook doc_5c01d2`,
		flags: func(cmd *cobra.Command) {
			cmd.Flags().StringVar(&after, "after", "", "documents behind this one")
			cmd.Flags().IntVar(&most, "limit", 50, "how many documents, at most 1000")
		},
	}, func(ctx context.Context, q *ask) error {
		if len(q.args) == 2 {
			d, err := q.Knowledge().FindDocument(ctx, q.args[0], q.args[1])
			if err != nil {
				return err
			}
			if c.json {
				return c.print(d)
			}
			return view.Document(c.out, d)
		}
		base, err := q.Knowledge().Get(ctx, q.args[0])
		if err != nil {
			return err
		}
		documents, err := q.Knowledge().Documents(ctx, host.Documents{KB: base.ID, After: after, Limit: most})
		if err != nil {
			return err
		}
		if c.json {
			return c.print(map[string]any{"knowledge_base": base, "documents": documents})
		}
		return view.KnowledgeBase(c.out, base, documents)
	})
}

func (c *command) kbEmbed() *cobra.Command {
	return list(c, spec{
		anywhere: true,
		use:      "embed [ID...]",
		short:    "Compute missing embeddings of knowledge bases",
		long: `Compute missing embeddings of knowledge bases, of all of them where none is named.

Passages lack them that came while the model of embeddings could not be asked, or
before one was configured, or another. Until then they are found by their words.
What was made is kept if the model fails in between: the command may be run again.`,
		example: "  mortise kb embed handbook",
	}, view.Embedded, func(ctx context.Context, q *ask) (made []host.Embedded, err error) {
		ids := q.args
		if len(ids) == 0 {
			all, err := q.Knowledge().List(ctx)
			if err != nil {
				return nil, err
			}
			for _, base := range all {
				ids = append(ids, base.ID)
			}
		}
		for _, id := range ids {
			var e host.Embedded
			if err := c.during("embedding "+id, func() (err error) {
				e, err = q.Knowledge().Embed(ctx, id, host.OnBehalf{Operation: "kb embed"})
				return err
			}); err != nil {
				if e.Made > 0 {
					c.say("%s: %d of %d chunks are embedded, %d of them just now", id, e.Embedded, e.Passages, e.Made)
				}
				return nil, err
			}
			made = append(made, e)
		}
		return made, nil
	})
}

func (c *command) kbDelete() *cobra.Command {
	return c.change(spec{
		anywhere: true,
		use:      "delete ID [DOCUMENT]",
		short:    "Delete a document, or a knowledge base with all its documents",
		example: `  mortise kb delete handbook doc_5c01d2
  mortise kb delete handbook`,
	}, func(ctx context.Context, q *ask) (done, error) {
		if len(q.args) == 2 {
			d, err := q.Knowledge().FindAndRemove(ctx, q.args[0], q.args[1])
			return done{value: map[string]any{"deleted": d.ID}, said: "document " + d.ID + " is deleted"}, err
		}
		base, err := q.Knowledge().Delete(ctx, q.args[0])
		return done{value: map[string]any{"deleted": base.ID}, said: fmt.Sprintf("knowledge base %s is deleted, with %d documents", base.ID, base.Documents)}, err
	})
}
