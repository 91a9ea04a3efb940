package githubtest

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// gitTimeout bounds each git command that answers a request.
const gitTimeout = 30 * time.Second

var errNoObject = errors.New("no such ref or object")

func (s *Server) bareDir(id int64) string {
	return filepath.Join(s.dir, "git", strconv.FormatInt(id, 10)+".git")
}

// bareConfig lets the smart protocol push, and keeps git from tidying up while a test runs.
const bareConfig = `[http]
	receivepack = true
[uploadpack]
	allowReachableSHA1InWant = true
	allowFilter = true
[gc]
	auto = 0
`

// preReceive refuses a push with the text that RejectPushes left, as a repository's rules do.
const preReceive = `#!/bin/sh
[ -s rejection ] || exit 0
cat rejection >&2
exit 1
`

// gitEnv is the whole environment of every git that the stand-in runs.
func (s *Server) gitEnv() []string {
	return []string{
		"PATH=" + os.Getenv("PATH"), "HOME=" + s.dir, "LC_ALL=C.UTF-8",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_CONFIG_GLOBAL=" + os.DevNull, "GIT_TERMINAL_PROMPT=0",
	}
}

// git runs one command on a bare repository and returns its standard output.
func (s *Server) git(ctx context.Context, id int64, stdin []byte, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(ctx, gitTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", append([]string{"--git-dir", s.bareDir(id)}, args...)...)
	cmd.Env = s.gitEnv()
	cmd.Stdin = bytes.NewReader(stdin)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return out, fmt.Errorf("git %s: %w: %s", args[0], err, strings.TrimSpace(stderr.String()))
	}
	return out, nil
}

func (s *Server) initBare(id int64, branch string) error {
	ctx, cancel := context.WithTimeout(context.Background(), gitTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, "git", "init", "--bare", "--quiet", "--initial-branch="+branch, s.bareDir(id))
	cmd.Env = s.gitEnv()
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("git init: %w: %s", err, out)
	}
	f, err := os.OpenFile(filepath.Join(s.bareDir(id), "config"), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("configure a repository: %w", err)
	}
	_, err = f.WriteString(bareConfig)
	err = errors.Join(err, f.Close(), os.MkdirAll(filepath.Join(s.bareDir(id), "hooks"), 0o700),
		os.WriteFile(filepath.Join(s.bareDir(id), "hooks", "pre-receive"), []byte(preReceive), 0o700))
	if err != nil {
		return fmt.Errorf("configure a repository: %w", err)
	}
	return nil
}

// gitRef is one branch and its commit.
type gitRef struct{ Name, SHA string }

// branches lists those whose name begins with prefix, sorted by name.
func (s *Server) branches(ctx context.Context, id int64, prefix string) ([]gitRef, error) {
	out, err := s.git(ctx, id, nil, "for-each-ref", "--format=%(objectname) %(refname)", "refs/heads/")
	if err != nil {
		return nil, err
	}
	var refs []gitRef
	for line := range strings.Lines(string(out)) {
		sha, ref, _ := strings.Cut(strings.TrimSpace(line), " ")
		if name := strings.TrimPrefix(ref, "refs/heads/"); strings.HasPrefix(name, prefix) {
			refs = append(refs, gitRef{Name: name, SHA: sha})
		}
	}
	return refs, nil
}

// branch resolves one branch exactly; errNoObject when there is none.
func (s *Server) branch(ctx context.Context, id int64, name string) (string, error) {
	refs, err := s.branches(ctx, id, name)
	if err != nil {
		return "", err
	}
	for _, r := range refs {
		if r.Name == name {
			return r.SHA, nil
		}
	}
	return "", errNoObject
}

// gitCommit is what the API tells of a commit.
type gitCommit struct {
	SHA, Tree              string
	Parents                []string
	Author, AuthorEmail    string
	AuthorDate, CommitDate string // RFC 3339
	Message                string
}

// commit reads the commit that a 40-digit SHA or a branch names.
func (s *Server) commit(ctx context.Context, id int64, rev string) (gitCommit, error) {
	if sha, err := s.branch(ctx, id, rev); err == nil {
		rev = sha
	}
	if !isSHA(rev) {
		return gitCommit{}, errNoObject
	}
	out, err := s.git(ctx, id, nil, "log", "-1", "--format=%H%x00%T%x00%P%x00%an%x00%ae%x00%aI%x00%cI%x00%B", rev)
	if err != nil {
		return gitCommit{}, errNoObject
	}
	f := strings.SplitN(string(out), "\x00", 8)
	if len(f) != 8 {
		return gitCommit{}, errNoObject
	}
	return gitCommit{
		SHA: f[0], Tree: f[1], Parents: strings.Fields(f[2]), Author: f[3], AuthorEmail: f[4],
		AuthorDate: f[5], CommitDate: f[6], Message: strings.TrimRight(f[7], "\n"),
	}, nil
}

// ahead counts the commits of head that base has not.
func (s *Server) ahead(ctx context.Context, id int64, base, head string) (int, error) {
	out, err := s.git(ctx, id, nil, "rev-list", "--count", base+".."+head)
	if err != nil {
		return 0, err
	}
	return strconv.Atoi(strings.TrimSpace(string(out)))
}

// fileStat is one changed file; counts are -1 for a binary one.
type fileStat struct {
	Path               string
	Additions, Deleted int
}

// diffstat compares head with where it left base.
func (s *Server) diffstat(ctx context.Context, id int64, base, head string) ([]fileStat, error) {
	out, err := s.git(ctx, id, nil, "diff", "--numstat", "-z", "--no-renames", "--no-ext-diff", "--no-textconv", base+"..."+head)
	if err != nil {
		return nil, err
	}
	var files []fileStat
	for entry := range strings.SplitSeq(strings.TrimRight(string(out), "\x00"), "\x00") {
		f := strings.SplitN(entry, "\t", 3)
		if len(f) != 3 {
			continue
		}
		files = append(files, fileStat{Path: f[2], Additions: countOf(f[0]), Deleted: countOf(f[1])})
	}
	return files, nil
}

// patch is the unified diff that the diffstat counts.
func (s *Server) patch(ctx context.Context, id int64, base, head string) (string, error) {
	out, err := s.git(ctx, id, nil, "diff", "--no-ext-diff", "--no-textconv", base+"..."+head)
	return string(out), err
}

func countOf(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		return -1
	}
	return n
}

func isSHA(s string) bool {
	return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == ""
}
