// Package seed fills a stand-in GitHub with people, an organization and repositories that look like
// real ones: small programs in several languages with history, tests, and honest gaps that an agent
// can close.
//
// A repository's history is the folder repositories/<name>, one txtar archive for each commit in the
// order of their names. Dates are fixed, so the commits have the same SHAs everywhere.
package seed

import (
	"context"
	"embed"
	"encoding/base64"
	"fmt"
	"io/fs"
	"strings"
	"time"

	"golang.org/x/tools/txtar"

	"agent-sandboxing/core/github/githubtest"
)

//go:embed repositories
var histories embed.FS

// The people of the demo and what they reach.
const (
	Admin    = "demo-admin"    // administers everything
	Owner    = "demo-owner"    // may push to everything
	Reader   = "demo-reader"   // may read some repositories
	Outsider = "demo-outsider" // reaches nothing
	// Organization owns all but one of the repositories.
	Organization = "lantern-works"
)

// project is one repository of the seed. The folder of its history is its name; without one it stays empty.
type project struct {
	owner, name, language, description string
	private, archived, readable        bool // readable: by Reader
}

var projects = [...]project{
	{owner: Organization, name: "mdlinks", language: "Go", description: "Checks the links between the Markdown files of a folder", readable: true},
	{owner: Organization, name: "shelf-label", language: "TypeScript", description: "Price labels for shop shelves, as SVG"},
	{owner: Organization, name: "stockroom", language: "Python", description: "Says what to order again", readable: true},
	{owner: Organization, name: "runbooks", language: "Shell", description: "What to do when something is wrong", private: true},
	{owner: Organization, name: "old-site", language: "HTML", description: "The site as it was", archived: true, readable: true},
	{owner: Organization, name: "scratchpad", description: "Nothing here yet"},
	{owner: Owner, name: "reading-notes", language: "Shell", description: "One file a book"},
}

// Apply adds what is not there yet; on a stand-in that was seeded before it changes nothing.
func Apply(ctx context.Context, s *githubtest.Server) error {
	for _, p := range [...][2]string{{Admin, "Demo Admin"}, {Owner, "Demo Owner"}, {Reader, "Demo Reader"}, {Outsider, "Demo Outsider"}} {
		if _, err := s.AddUser(p[0], p[1]); err != nil {
			return fmt.Errorf("seed %s: %w", p[0], err)
		}
	}
	if _, err := s.AddOrganization(Organization, "Lantern Works"); err != nil {
		return fmt.Errorf("seed %s: %w", Organization, err)
	}
	for _, p := range projects {
		if s.HasRepository(p.owner + "/" + p.name) {
			continue
		}
		if err := add(ctx, s, p); err != nil {
			return fmt.Errorf("seed %s: %w", p.name, err)
		}
	}
	for _, account := range [...]string{Organization, Owner} {
		if s.HasInstallation(account) {
			continue
		}
		if _, err := s.AddInstallation(account); err != nil {
			return fmt.Errorf("seed the installation on %s: %w", account, err)
		}
	}
	return nil
}

func add(ctx context.Context, s *githubtest.Server, p project) error {
	access := map[string]githubtest.Permission{}
	if p.owner == Organization {
		access[Admin], access[Owner] = githubtest.Administer, githubtest.Push
	}
	if p.readable {
		access[Reader] = githubtest.Pull
	}
	commits, err := history(p.name)
	if err != nil {
		return err
	}
	return s.AddRepositoryWith(ctx, githubtest.Repository{
		Owner: p.owner, Name: p.name, Description: p.description, Language: p.language,
		Private: p.private, Archived: p.archived, Access: access,
	}, commits...)
}

// history reads the commits of a repository; a repository without a folder has none.
func history(name string) ([]githubtest.Commit, error) {
	files, err := fs.Glob(histories, "repositories/"+name+"/*.txtar")
	if err != nil {
		return nil, err
	}
	var commits []githubtest.Commit
	for _, file := range files {
		data, err := histories.ReadFile(file)
		if err != nil {
			return nil, err
		}
		c, err := parse(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		commits = append(commits, c)
	}
	return commits, nil
}

// parse reads one commit: a head of "key: value" lines whose last, message, runs to the first file,
// then the files that the commit writes. A file's name may end in [exec], [base64] or [delete].
func parse(data []byte) (githubtest.Commit, error) {
	archive := txtar.Parse(data)
	c := githubtest.Commit{Files: map[string]githubtest.File{}}
	head, message, ok := strings.Cut(string(archive.Comment), "message: ")
	if !ok {
		return c, fmt.Errorf("no message")
	}
	c.Message = strings.TrimSpace(message)
	for line := range strings.Lines(head) {
		key, value, _ := strings.Cut(strings.TrimSpace(line), ": ")
		switch key {
		case "branch":
			c.Branch = value
		case "author":
			c.Author = value
		case "date":
			var err error
			if c.Date, err = time.Parse(time.RFC3339, value); err != nil {
				return c, err
			}
		default:
			return c, fmt.Errorf("unknown key %q", key)
		}
	}
	for _, f := range archive.Files {
		name, mark, _ := strings.Cut(f.Name, " [")
		switch mark {
		case "":
			c.Files[name] = githubtest.File{Data: f.Data}
		case "exec]":
			c.Files[name] = githubtest.File{Data: f.Data, Executable: true}
		case "base64]":
			raw, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(string(f.Data), "\n", ""))
			if err != nil {
				return c, fmt.Errorf("%s: %w", name, err)
			}
			c.Files[name] = githubtest.File{Data: raw}
		case "delete]":
			c.Delete = append(c.Delete, name)
		default:
			return c, fmt.Errorf("unknown mark of %q", f.Name)
		}
	}
	return c, nil
}
