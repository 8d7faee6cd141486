package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/mortise-dev/mortise/internal/app"
	"github.com/mortise-dev/mortise/internal/service/extract"
	"github.com/mortise-dev/mortise/internal/service/kb"
	"github.com/mortise-dev/mortise/internal/surface/terminal"
	"github.com/mortise-dev/mortise/plugin"
)

func (c *command) knowledge() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "kb",
		Short: "Keep knowledge bases, and search them",
		Long: `Keep knowledge bases, and search them.

A knowledge base holds documents as text, cut into passages that are found by their
words. Files of PDF, Word, PowerPoint, Excel, HTML and mail are read in a process of
its own, in a cage; text from pictures where tesseract is installed.`,
	}
	cmd.AddCommand(c.kbCreate(), c.kbList(), c.kbAdd(), c.kbSearch(), c.kbShow(), c.kbEmbed(), c.kbDelete())
	return cmd
}

func (c *command) kbCreate() *cobra.Command {
	var base kb.Base
	cmd := &cobra.Command{
		Use:     "create ID",
		Short:   "Begin a knowledge base",
		Example: `  mortise kb create handbook --name "The handbook"`,
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			base.ID = args[0]
			if err := checkLabels(base.Labels); err != nil {
				return err
			}
			return c.withHost(cmd.Context(), func(a *app.App) error {
				made, err := a.As(a.Principal).Knowledge().Create(cmd.Context(), base)
				if err != nil {
					return err
				}
				if c.json {
					return c.print(made)
				}
				_, err = fmt.Fprintln(c.out, made.ID)
				return err
			})
		},
	}
	cmd.Flags().StringVar(&base.Name, "name", "", "what people call it; the id if empty")
	cmd.Flags().StringVar(&base.Description, "description", "", "what it is about")
	labelFlag(cmd, &base.Labels)
	return c.withJSON(cmd)
}

// labelFlag adds the flag that says what documents are tainted with.
func labelFlag(cmd *cobra.Command, labels *[]string) {
	cmd.Flags().StringArrayVar(labels, "label", nil, "what the documents are tainted with: untrusted or private (repeatable)")
}

func checkLabels(labels []string) error {
	for _, label := range labels {
		if label != plugin.Untrusted && label != plugin.Private {
			return usage{fmt.Errorf("--label %s: there are %s and %s", label, plugin.Untrusted, plugin.Private)}
		}
	}
	return nil
}

func (c *command) kbList() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "list",
		Short: "List the knowledge bases",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return c.withHost(cmd.Context(), func(a *app.App) error {
				all, err := a.As(a.Principal).Knowledge().List(cmd.Context())
				if err != nil {
					return err
				}
				if c.json {
					return c.print(map[string]any{"knowledge_bases": all})
				}
				if len(all) == 0 {
					c.say("there is no knowledge base; 'mortise kb create ID' begins one")
					return nil
				}
				t := terminal.NewTable(c.out, "ID", "DOCUMENTS", "CHUNKS", "CREATED", "NAME")
				t.Fit = c.width()
				for _, b := range all {
					t.Row(b.ID, strconv.FormatInt(b.Documents, 10), strconv.FormatInt(b.Chunks, 10), terminal.Clock(b.CreatedAt), b.Name)
				}
				return t.Flush()
			})
		},
	})
}

func (c *command) kbAdd() *cobra.Command {
	var s kb.Source
	var mode, mime string
	cmd := &cobra.Command{
		Use:   "add FILE...",
		Short: "Put files into a knowledge base",
		Long: `Put files into a knowledge base.

What was put there under the same source is replaced; the same again is skipped. The
source of a file is its absolute path, unless --source names another. A file that
gives no text is skipped, and the command ends with status 3.

--ocr says when text is read from pictures, which takes tesseract: always of PDF and
images, auto where that can be done, fallback where no text came otherwise, never.`,
		Example: `  mortise kb add handbook.pdf notes/*.md --kb handbook`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) (err error) {
			if s.OCR, err = extract.ParseMode(mode); err != nil {
				return usage{err}
			}
			if err := checkLabels(s.Labels); err != nil {
				return err
			}
			if len(args) > 1 && (s.ID != "" || s.Title != "" || s.URL != "") {
				return usage{errors.New("--source, --title and --url are for one file")}
			}
			return c.withHost(cmd.Context(), func(a *app.App) error { return c.addDocuments(cmd, a, args, mime, s) })
		},
	}
	flags := cmd.Flags()
	flags.StringVar(&s.KB, "kb", "", "the knowledge base")
	flags.StringVar(&s.ID, "source", "", "what the file is elsewhere, by which it is known again")
	flags.StringVar(&s.Title, "title", "", "a title other than the file's own")
	flags.StringVar(&s.URL, "url", "", "where people find it")
	flags.StringVar(&mime, "mime", "", "what it is, where its name and its first bytes do not tell")
	flags.StringVar(&mode, "ocr", string(extract.Fallback), "when text is read from pictures: "+strings.Join(extract.Modes, ", "))
	labelFlag(cmd, &s.Labels)
	_ = cmd.MarkFlagRequired("kb")
	_ = cmd.RegisterFlagCompletionFunc("ocr", cobra.FixedCompletions(extract.Modes, cobra.ShellCompDirectiveNoFileComp))
	return c.withJSON(cmd)
}

// An addedDocument is what became of a file.
type addedDocument struct {
	File string `json:"file"`
	kb.Ingested
}

func (c *command) addDocuments(cmd *cobra.Command, a *app.App, paths []string, mime string, s kb.Source) error {
	added := []addedDocument{}
	var failed, skipped error
	for _, path := range paths {
		var got kb.Ingested
		if err := c.during("adding "+path, func() (err error) { got, err = addDocument(cmd, a, path, mime, s); return err }); err != nil {
			failed = err
			break
		}
		added = append(added, addedDocument{path, got})
		if got.Unembedded {
			c.say("%s is found by its words alone: the model of embeddings cannot be asked; 'mortise kb embed %s' makes up for it", path, s.KB)
		}
		if got.Skipped && got.SkipReason != kb.HashMatch {
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
	t := terminal.NewTable(c.out, "DOCUMENT", "WORDS", "CHUNKS", "METHOD", "FILE", "")
	t.Fit = c.width()
	for _, d := range added {
		t.Row(terminal.Dash(d.DocumentID), strconv.FormatInt(d.Words, 10), strconv.FormatInt(d.Chunks, 10), d.Extraction.Method, d.File, d.SkipReason)
	}
	if len(added) > 0 {
		if err := t.Flush(); err != nil {
			return err
		}
	}
	if failed != nil {
		return failed
	}
	return skipped
}

func addDocument(cmd *cobra.Command, a *app.App, path, mime string, s kb.Source) (kb.Ingested, error) {
	absolute, err := filepath.Abs(path)
	if err != nil {
		return kb.Ingested{}, err
	}
	if own, err := hostsOwn(path, a.Home); err != nil || own {
		return kb.Ingested{}, errors.Join(err, plugin.Errorf(plugin.CodeInvalidInput, "%s is the host's own: name another file", path))
	}
	file, err := os.Open(path)
	if err != nil {
		return kb.Ingested{}, usage{err}
	}
	defer file.Close()
	data, err := io.ReadAll(io.LimitReader(file, extract.MaxFile+1))
	if err != nil {
		return kb.Ingested{}, usage{err}
	}
	if s.ID == "" {
		s.ID = absolute
	}
	s.File = &extract.File{Data: data, MIME: mime, Name: filepath.Base(path)}
	s.By = kb.By{Operation: "kb add"}
	return a.As(a.Principal).Knowledge().Ingest(cmd.Context(), s)
}

func (c *command) kbSearch() *cobra.Command {
	var q kb.Query
	cmd := &cobra.Command{
		Use:   "search QUERY",
		Short: "Find the passages that fit best",
		Long: `Find the passages that fit best.

A query is words: a passage that has one of them is found, and those that have more,
and rarer ones, come first. Letter case does not count.`,
		Example: `  mortise kb search "notice period" --kb handbook`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Text = strings.Join(args, " ")
			return c.withHost(cmd.Context(), func(a *app.App) error {
				q.By = kb.By{Operation: "kb search"}
				hits, err := a.As(a.Principal).Knowledge().Search(cmd.Context(), q)
				if err != nil {
					return err
				}
				if c.json {
					return c.print(map[string]any{"results": hits})
				}
				if len(hits) == 0 {
					c.say("nothing is found")
				}
				for i, hit := range hits {
					if i > 0 {
						fmt.Fprintln(c.out)
					}
					fmt.Fprintf(c.out, "%s  %s  %s #%d\n", terminal.Safe(hit.KB), terminal.Safe(hit.DocumentID), terminal.Safe(terminal.Dash(hit.Title)), hit.Chunk)
					fmt.Fprintf(c.out, "  %s\n", terminal.Safe(terminal.OneLine(hit.Text, 300)))
				}
				return nil
			})
		},
	}
	cmd.Flags().StringArrayVar(&q.KBs, "kb", nil, "search this knowledge base; all if there is none (repeatable)")
	cmd.Flags().IntVar(&q.Limit, "limit", 10, "how many passages, at most 100")
	return c.withJSON(cmd)
}

func (c *command) kbShow() *cobra.Command {
	var after string
	var limit int
	cmd := &cobra.Command{
		Use:   "show ID [DOCUMENT]",
		Short: "Show a knowledge base with its documents, or a document with its text",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHost(cmd.Context(), func(a *app.App) error {
				if len(args) == 2 {
					d, err := a.As(a.Principal).Knowledge().Document(cmd.Context(), args[0], args[1])
					if err != nil {
						return err
					}
					return c.showDocument(d)
				}
				base, err := a.As(a.Principal).Knowledge().Get(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				documents, err := a.As(a.Principal).Knowledge().Documents(cmd.Context(), kb.Listing{KB: base.ID, After: after, Limit: limit})
				if err != nil {
					return err
				}
				return c.showBase(base, documents)
			})
		},
	}
	cmd.Flags().StringVar(&after, "after", "", "documents behind this one")
	cmd.Flags().IntVar(&limit, "limit", 50, "how many documents, at most 1000")
	return c.withJSON(cmd)
}

func (c *command) showBase(base kb.Base, documents []kb.Document) error {
	if c.json {
		return c.print(map[string]any{"knowledge_base": base, "documents": documents})
	}
	t := terminal.Details(c.out)
	t.Row("knowledge base", base.ID)
	t.Row("name", base.Name)
	if base.Description != "" {
		t.Row("description", base.Description)
	}
	if len(base.Labels) > 0 {
		t.Row("labels", strings.Join(base.Labels, ", "))
	}
	t.Row("documents", strconv.FormatInt(base.Documents, 10))
	t.Row("chunks", strconv.FormatInt(base.Chunks, 10))
	t.Row("search", searchOf(&base))
	t.Row("created", terminal.Clock(base.CreatedAt)+" by "+base.CreatedBy)
	if err := t.Flush(); err != nil || len(documents) == 0 {
		return err
	}
	fmt.Fprintln(c.out)
	t = terminal.NewTable(c.out, "DOCUMENT", "WORDS", "CHUNKS", "FROM", "CHANGED", "TITLE")
	t.Fit = c.width()
	for _, d := range documents {
		t.Row(d.ID, strconv.FormatInt(d.Words, 10), strconv.FormatInt(d.Chunks, 10), d.SourceType, terminal.Clock(d.UpdatedAt), terminal.Dash(d.Title))
	}
	return t.Flush()
}

func (c *command) showDocument(d kb.Document) error {
	if c.json {
		return c.print(d)
	}
	t := terminal.Details(c.out)
	for _, row := range [][2]string{
		{"document", d.ID}, {"title", d.Title}, {"source", d.SourceID}, {"from", d.SourceType}, {"url", d.URL}, {"type", d.MIME},
		{"labels", strings.Join(d.Labels, ", ")}, {"extraction", string(d.Extraction)}, {"attributes", string(d.Attributes)}, {"changed", terminal.Clock(d.UpdatedAt)},
	} {
		if row[1] != "" && row[1] != "{}" {
			t.Row(row[0], row[1])
		}
	}
	if err := t.Flush(); err != nil {
		return err
	}
	text := d.Text
	if c.onTerminal() {
		text = strings.Join(slices.Collect(terminal.SafeLines(text)), "")
	}
	_, err := fmt.Fprintf(c.out, "\n%s\n", text)
	return err
}

// searchOf says by what a knowledge base is searched.
func searchOf(base *kb.Base) string {
	switch {
	case base.Embedding == "":
		return "by words; no model of embeddings is configured"
	case base.Embedded < base.Chunks:
		return fmt.Sprintf("by words, and by meaning for %d of %d chunks, with %s; 'mortise kb embed %s' does the rest", base.Embedded, base.Chunks, base.Embedding, base.ID)
	}
	return "by words and by meaning, with " + base.Embedding
}

func (c *command) kbEmbed() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "embed [ID...]",
		Short: "Make the embeddings that knowledge bases lack",
		Long: `Make the embeddings that knowledge bases lack, of all of them where none is named.

Passages lack them that came while the model of embeddings could not be asked, or
before one was configured, or another. Until then they are found by their words.
What was made is kept if the model fails in between: the command may be run again.`,
		Example: "  mortise kb embed handbook",
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHost(cmd.Context(), func(a *app.App) error { return c.embed(cmd.Context(), a, args) })
		},
	})
}

func (c *command) embed(ctx context.Context, a *app.App, ids []string) error {
	if len(ids) == 0 {
		all, err := a.As(a.Principal).Knowledge().List(ctx)
		if err != nil {
			return err
		}
		for _, base := range all {
			ids = append(ids, base.ID)
		}
	}
	done := []kb.Embedded{}
	for _, id := range ids {
		var e kb.Embedded
		failed := c.during("embedding "+id, func() (err error) {
			e, err = a.As(a.Principal).Knowledge().Embed(ctx, id, kb.By{Operation: "kb embed"})
			return err
		})
		if failed != nil {
			if e.Made > 0 {
				c.say("%s: %d of %d chunks are embedded, %d of them just now", id, e.Embedded, e.Passages, e.Made)
			}
			return failed
		}
		done = append(done, e)
	}
	if c.json {
		return c.print(map[string]any{"embedded": done})
	}
	t := terminal.NewTable(c.out, "ID", "EMBEDDED", "CHUNKS", "MADE", "MODEL")
	t.Fit = c.width()
	for _, e := range done {
		t.Row(e.KB, strconv.FormatInt(e.Embedded, 10), strconv.FormatInt(e.Passages, 10), strconv.FormatInt(e.Made, 10), e.Model)
	}
	return t.Flush()
}

func (c *command) kbDelete() *cobra.Command {
	return c.withJSON(&cobra.Command{
		Use:   "delete ID [DOCUMENT]",
		Short: "Delete a document, or a knowledge base with all that is in it",
		Args:  cobra.RangeArgs(1, 2),
		RunE: func(cmd *cobra.Command, args []string) error {
			return c.withHost(cmd.Context(), func(a *app.App) error {
				if len(args) == 2 {
					d, err := a.As(a.Principal).Knowledge().RemoveDocument(cmd.Context(), args[0], args[1])
					if err != nil {
						return err
					}
					return c.toldDeleted(map[string]any{"deleted": d.ID}, "document "+d.ID+" is deleted")
				}
				base, err := a.As(a.Principal).Knowledge().Delete(cmd.Context(), args[0])
				if err != nil {
					return err
				}
				return c.toldDeleted(map[string]any{"deleted": base.ID}, fmt.Sprintf("knowledge base %s is deleted, with %d documents", base.ID, base.Documents))
			})
		},
	})
}

func (c *command) toldDeleted(value map[string]any, text string) error {
	if c.json {
		return c.print(value)
	}
	_, err := fmt.Fprintln(c.out, text)
	return err
}
