package githubtest

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
)

// File is one file of a commit.
type File struct {
	Data       []byte
	Executable bool
	Link       bool // Data is the target
}

// Commit is one commit on a branch. A branch that does not exist starts at the default branch.
type Commit struct {
	Branch  string // "" means the default branch
	Message string
	Author  string    // "Name <mail>"; "" means a neutral one
	Date    time.Time // zero means now
	Files   map[string]File
	Delete  []string
}

// Text makes a plain file.
func Text(s string) File { return File{Data: []byte(s)} }

// Commit adds commits to a repository in order and returns the SHA of the last one. Equal content
// and dates give equal SHAs.
func (s *Server) Commit(ctx context.Context, fullName string, commits ...Commit) (string, error) {
	r, _, ok := s.repositoryNamed(fullName)
	if !ok || len(commits) == 0 {
		return "", fmt.Errorf("commit: no repository %q, or nothing to commit", fullName)
	}
	if err := s.write(ctx, r.ID, r.DefaultBranch, commits); err != nil {
		return "", err
	}
	if err := s.changeRepository(r.fullName(), func(r *repository) { r.PushedAt = s.now() }); err != nil {
		return "", err
	}
	last := commits[len(commits)-1].Branch
	if last == "" {
		last = r.DefaultBranch
	}
	return s.branch(ctx, r.ID, last)
}

// write adds commits by one stream of git fast-import.
func (s *Server) write(ctx context.Context, id int64, defaultBranch string, commits []Commit) error {
	refs, err := s.branches(ctx, id, "")
	if err != nil {
		return err
	}
	// tips is what a branch's next commit builds on; a branch of this stream continues by itself.
	tips := map[string]string{}
	for _, ref := range refs {
		tips[ref.Name] = ref.SHA
	}
	written := map[string]bool{}
	var stream bytes.Buffer
	for _, c := range commits {
		branch := c.Branch
		if branch == "" {
			branch = defaultBranch
		}
		from := tips[branch]
		switch {
		case written[branch]:
			from = ""
		case from == "" && written[defaultBranch]:
			from = "refs/heads/" + defaultBranch
		case from == "":
			from = tips[defaultBranch]
		}
		written[branch] = true
		writeCommit(&stream, c, branch, from, s.Now())
	}
	stream.WriteString("done\n")
	_, err = s.git(ctx, id, stream.Bytes(), "fast-import", "--quiet", "--done")
	return err
}

// Plant puts the objects of a pack into a repository as they are, what no git would push included, and
// points a branch at one of them.
func (s *Server) Plant(ctx context.Context, fullName, branch, commit string, pack []byte) error {
	r, _, ok := s.repositoryNamed(fullName)
	if !ok {
		return fmt.Errorf("no repository %q", fullName)
	}
	if _, err := s.git(ctx, r.ID, pack, "index-pack", "--stdin"); err != nil {
		return err
	}
	_, err := s.git(ctx, r.ID, nil, "update-ref", "refs/heads/"+branch, commit)
	return err
}

// Head is the commit that a branch points to.
func (s *Server) Head(ctx context.Context, fullName, branch string) (string, error) {
	r, _, ok := s.repositoryNamed(fullName)
	if !ok {
		return "", fmt.Errorf("no repository %q", fullName)
	}
	return s.branch(ctx, r.ID, branch)
}

// GitDir is the bare repository on disk, for tests that look at what was pushed.
func (s *Server) GitDir(fullName string) (string, error) {
	r, _, ok := s.repositoryNamed(fullName)
	if !ok {
		return "", fmt.Errorf("no repository %q", fullName)
	}
	return s.bareDir(r.ID), nil
}

// DeleteBranch removes a branch; an open pull request from it is closed, as GitHub does.
func (s *Server) DeleteBranch(ctx context.Context, fullName, branch string) error {
	r, _, ok := s.repositoryNamed(fullName)
	if !ok {
		return fmt.Errorf("no repository %q", fullName)
	}
	_, err := s.git(ctx, r.ID, nil, "update-ref", "-d", "refs/heads/"+branch)
	return err
}

// ResetBranch puts a branch on another commit of the repository, as a forced push does.
func (s *Server) ResetBranch(ctx context.Context, fullName, branch, sha string) error {
	r, _, ok := s.repositoryNamed(fullName)
	if !ok {
		return fmt.Errorf("no repository %q", fullName)
	}
	_, err := s.git(ctx, r.ID, nil, "update-ref", "refs/heads/"+branch, sha)
	return err
}

// writeCommit appends one commit in the language of git fast-import. from is "" for a root commit
// and for a branch that the stream has already been on.
func writeCommit(b *bytes.Buffer, c Commit, branch, from string, now time.Time) {
	author, date := c.Author, c.Date
	if author == "" {
		author = "Octo Dev <octo-dev@example.org>"
	}
	if date.IsZero() {
		date = now
	}
	fmt.Fprintf(b, "commit refs/heads/%s\n", branch)
	fmt.Fprintf(b, "author %s %d +0000\ncommitter %s %d +0000\n", author, date.Unix(), author, date.Unix())
	writeData(b, []byte(strings.TrimRight(c.Message, "\n")+"\n"))
	if from != "" {
		fmt.Fprintf(b, "from %s\n", from)
	}
	for _, path := range c.Delete {
		fmt.Fprintf(b, "D %s\n", quotePath(path))
	}
	paths := make([]string, 0, len(c.Files))
	for path := range c.Files {
		paths = append(paths, path)
	}
	slices.Sort(paths)
	for _, path := range paths {
		f, mode := c.Files[path], "100644"
		switch {
		case f.Link:
			mode = "120000"
		case f.Executable:
			mode = "100755"
		}
		fmt.Fprintf(b, "M %s inline %s\n", mode, quotePath(path))
		writeData(b, f.Data)
	}
	b.WriteString("\n")
}

func writeData(b *bytes.Buffer, data []byte) {
	fmt.Fprintf(b, "data %d\n", len(data))
	b.Write(data)
	b.WriteByte('\n')
}

// quotePath is a path in git's C quoting, which any path may be written in.
func quotePath(path string) string {
	var b strings.Builder
	b.WriteByte('"')
	for i := range len(path) {
		switch c := path[i]; {
		case c == '"' || c == '\\':
			b.WriteByte('\\')
			b.WriteByte(c)
		case c < ' ' || c >= 0x7f:
			fmt.Fprintf(&b, "\\%03o", c)
		default:
			b.WriteByte(c)
		}
	}
	b.WriteByte('"')
	return b.String()
}
