package main

import (
	"context"
	"encoding/base64"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
)

// secretRows look for what the product knows and nobody may see, after all that went before.
func secretRows() []row {
	return []row{{"secrets: none in a log, the database, a page or a container", secretsNowhere}}
}

// githubToken is a token of any kind.
var githubToken = regexp.MustCompile(`gh[pousr]_[A-Za-z0-9]{20,}`)

// secret is a value in the forms in which it could turn up.
type secret struct {
	name  string
	forms []string
}

func newSecret(name, value string) secret {
	return secret{name, []string{value, base64.StdEncoding.EncodeToString([]byte(value)), hex.EncodeToString([]byte(value))}}
}

// secrets are those that the processes were given.
func (b *bench) secrets() ([]secret, error) {
	pem, err := os.ReadFile(b.env["GITHUB_APP_PRIVATE_KEY_FILE"])
	if err != nil {
		return nil, err
	}
	_, key, _ := strings.Cut(b.env["ENCRYPTION_KEYS"], ":")
	return []secret{
		newSecret("the model key", b.env["OPENROUTER_API_KEY"]), newSecret("the client secret", b.env["GITHUB_CLIENT_SECRET"]),
		newSecret("the encryption key", key), newSecret("the App's key", strings.Split(string(pem), "\n")[3]),
	}, nil
}

// find demands that no secret is in a text.
func find(where, text string, all []secret) error {
	var failures []error
	for _, s := range all {
		for _, form := range s.forms {
			if at := strings.Index(text, form); at >= 0 {
				failures = append(failures, fmt.Errorf("%s is in %s after %q", s.name, where, text[max(0, at-60):at]))
				break
			}
		}
	}
	if at := githubToken.FindStringIndex(text); at != nil {
		failures = append(failures, fmt.Errorf("a GitHub token is in %s after %q", where, text[max(0, at[0]-60):at[0]]))
	}
	return errors.Join(failures...)
}

// secretsNowhere has a model say the platform's key in a file, a command, its output and the answer,
// and then searches everywhere.
func secretsNowhere(ctx context.Context, b *bench) (string, error) {
	id, err := b.create(ctx, "mdlinks", "file leak.txt then leak")
	if err != nil {
		return "", err
	}
	if _, err := b.ended(ctx, id); err != nil {
		return "", err
	}
	all, err := b.secrets()
	if err != nil {
		return "", err
	}
	var failures []error
	logs, err := filepath.Glob(filepath.Join(b.dir, "*.log"))
	if err != nil {
		return "", err
	}
	for _, path := range logs {
		text, err := os.ReadFile(path)
		failures = append(failures, err, find(filepath.Base(path), string(text), all))
	}
	dump, err := exec.CommandContext(ctx, "pg_dump", "--inserts", "--dbname="+b.env["DATABASE_URL"]).Output()
	failures = append(failures, err, find("the database", string(dump), all))
	for _, path := range []string{"", "/events?limit=1000", "/diffs/latest", "/pulse", "/publish"} {
		for _, accept := range []string{"application/json", "text/html"} {
			a, err := b.owner.Do(ctx, "GET", "/chat-sessions/"+id+path, map[string][]string{"Accept": {accept}}, nil)
			failures = append(failures, err, find("GET "+path, string(a.Body), all))
		}
	}
	failures = append(failures, b.searchContainer(ctx, id, all[1:])) // the model itself wrote its key there
	return "searched", errors.Join(append(failures, b.goesOn(ctx, id, "leak.txt"))...)
}

// searchContainer looks at how a container was made, at its processes and at its files.
func (b *bench) searchContainer(ctx context.Context, id string, all []secret) error {
	ref, err := b.container(ctx, id)
	if err != nil {
		return err
	}
	var failures []error
	for _, look := range [][]string{
		{"inspect", ref},
		{"exec", ref, "bash", "-c", "cat /proc/[0-9]*/environ /proc/[0-9]*/cmdline; env; true"},
		{"cp", ref + ":/workspace", "-"},
	} {
		out, err := b.daemon.Run(ctx, look...)
		failures = append(failures, err, find("docker "+look[0], out, all))
	}
	return errors.Join(failures...)
}
