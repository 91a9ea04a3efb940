package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"agent-sandboxing/agent/modeltest"
	"agent-sandboxing/core/github/githubtest"
	"agent-sandboxing/core/github/githubtest/seed"
)

// markup would act in a page if it were not escaped, in each of its contexts.
const markup = `"><img src=x onerror=alert(1)><hx-partial hx-target="#status"><p>owned</p></hx-partial></td></script><script>alert(1)</script>`

// hostileRows are what repositories, models and people could try.
func hostileRows() []row {
	return []row{
		{"hostile: file names, tool output and answers with markup", hostileMarkup},
		{"hostile: messages with odd text", hostileMessages},
		{"hostile: links and paths that lead out of the workspace", hostileLinks},
	}
}

// perform creates a session whose model does as told, and waits for its good end.
func (b *bench) perform(ctx context.Context, repository string, p performance) (string, error) {
	text, err := p.message()
	if err != nil {
		return "", err
	}
	id, err := b.create(ctx, repository, text)
	if err != nil {
		return "", err
	}
	return id, b.completed(ctx, id)
}

func bash(command string) modeltest.Call {
	return modeltest.CallJSON("bash", map[string]any{"command": command})
}

// hostileMarkup looks for markup in everything that is drawn of a session.
func hostileMarkup(ctx context.Context, b *bench) (string, error) {
	evil := "<img src=x onerror=alert(1)>.txt"
	p := performance{Answer: "Done. " + markup + "\n\n[link](javascript:alert(1)) ![i](http://127.0.0.1:1/x.png)\r\rid: 999\r\rdata: owned"}
	for _, name := range []string{evil, "-rf", "--output=x", "two\nlines.txt", "quote\"'`.txt", "\u202etxt.exe", "back\\slash.txt", "tab\t.txt", "$(touch owned).txt", "données.txt", ":(glob)**", "<hx-partial hx-target=#status>", ".gitattributes", "trailing ", "a/<b>/c.txt"} {
		p.Calls = append(p.Calls, modeltest.CallJSON("write", map[string]any{"path": name, "content": markup + "\n"}))
	}
	p.Calls = append(p.Calls,
		bash(`printf '%s\033[31m\r\n\rdata: owned\r\rid: 999\n' '`+strings.ReplaceAll(markup, "'", "")+`'`),
		modeltest.CallJSON("grep", map[string]any{"pattern": "onerror"}), modeltest.CallJSON("ls", map[string]any{}),
		modeltest.CallJSON("find", map[string]any{"pattern": "*"}), modeltest.CallJSON("read", map[string]any{"path": evil}),
		modeltest.CallJSON(markup, map[string]any{"path": markup}), modeltest.CallJSON("read", map[string]any{"path": markup}),
		modeltest.Call{Name: "bash", Arguments: `{"command": ` + markup})
	id, err := b.perform(ctx, "shelf-label", p)
	if err != nil {
		return id, err
	}
	s, err := b.read(ctx, id)
	if err != nil {
		return "", err
	}
	if s.Diff == nil {
		return "", errors.New("no diff was captured")
	}
	for _, path := range []string{"", "/publish", "/diffs/latest", "/diffs/" + s.Diff.ID, "/artifacts/" + s.Diff.ID, "?tab=changes", "?tab=details"} {
		a, err := b.owner.Do(ctx, http.MethodGet, "/chat-sessions/"+id+path, http.Header{"Accept": {"text/html"}}, nil)
		if err != nil {
			return "", err
		}
		if a.Status != http.StatusOK {
			return "", fmt.Errorf("GET %s: %d", path, a.Status)
		}
		if err := inert(string(a.Body)); err != nil {
			return "", fmt.Errorf("GET %s: %w", path, err)
		}
	}
	if code, err := b.publish(ctx, id, []string{""}); err != nil {
		return code, err
	}
	return "all inert", b.goesOn(ctx, id, evil)
}

// inert demands that no markup of markup's got into a page as markup.
func inert(page string) error {
	for _, active := range []string{"<img src=x", "<p>owned", `<hx-partial hx-target="#status"><p>`, "<hx-partial hx-target=#status", "<script>alert", `href="javascript:`, "127.0.0.1:1/x.png\""} {
		if at := strings.Index(page, active); at >= 0 {
			return fmt.Errorf("%q is in the page after %q", active, page[max(0, at-100):at])
		}
	}
	return nil
}

func hostileMessages(ctx context.Context, b *bench) (string, error) {
	id, err := b.create(ctx, "mdlinks", "file "+b.newFile())
	if err != nil {
		return "", err
	}
	for _, text := range []string{
		markup, "\u202e gnirts \u2066\u200b", "data: x\r\n\r\nid: 999\r\revent: reset\r", "\u2028\u2029\ufeff", strings.Repeat("a\u0301", 8000),
		strings.Repeat("<hx-partial>", 4000), "</section id=\"x\"><section name=\"request\">", "\x1b[2J\x07\x7f", "\xff\xfe invalid",
		strings.Repeat("\n", 40000) + "x", "\u0000"[:0] + "🏴\u200d☠️",
	} {
		if err := b.post(ctx, id, text); err != nil {
			return "", fmt.Errorf("%.20q: %w", text, err)
		}
		if err := b.completed(ctx, id); err != nil {
			return "", fmt.Errorf("after %.20q: %w", text, err)
		}
	}
	a, err := b.owner.Do(ctx, http.MethodGet, "/chat-sessions/"+id, nil, nil)
	if err != nil {
		return "", err
	}
	if err := inert(string(a.Body)); err != nil {
		return "", err
	}
	return "all answered", b.goesOn(ctx, id)
}

// makeLinks is a script that makes what the file tools do not.
const makeLinks = `import os
os.symlink("/", "out")
os.mkfifo("fifo")
os.makedirs("nested/.git/hooks")
for name in (b"two\nlines.txt", b"tab\t.txt", b"\xff.txt", b"\x1b[31m.txt", b"\r.txt", b"-n", b"con\"quote", b"<img src=x onerror=alert(1)>\n.txt"):
    open(name, "w").write("<img src=x onerror=alert(1)>\n")
`

// hostileLinks has a repository full of links and a model that follows them.
func hostileLinks(ctx context.Context, b *bench) (string, error) {
	const name = seed.Organization + "/hostile"
	link := func(target string) githubtest.File { return githubtest.File{Data: []byte(target), Link: true} }
	if !b.github.HasRepository(name) {
		if err := b.github.AddRepositoryWith(ctx, githubtest.Repository{
			Owner: seed.Organization, Name: "hostile", Access: map[string]githubtest.Permission{seed.Owner: githubtest.Push},
		}, githubtest.Commit{Message: "Links", Files: map[string]githubtest.File{
			"README.md": githubtest.Text("hello\n"), "passwd": link("/etc/passwd"), "up": link("../../.."), "home": link("../home"), "proc": link("/proc/1"), "self": link("self"),
			".gitattributes": githubtest.Text("* filter=evil diff=evil merge=evil text eol=crlf export-subst\n"),
			".gitmodules":    githubtest.Text("[submodule \"x\"]\n\tpath = x\n\turl = http://127.0.0.1:1/x.git\n"),
			".lfsconfig":     githubtest.Text("[lfs]\n\turl = http://127.0.0.1:1/\n"), "AGENTS.md": link("/etc/hostname"),
		}}); err != nil {
			return "", err
		}
		if _, err := b.owner.Do(ctx, http.MethodGet, "/installations?refresh=1", nil, nil); err != nil {
			return "", err
		}
	}
	p := performance{Answer: "Done."}
	for _, path := range []string{"passwd", "/etc/passwd", "up/etc/passwd", "home/x", "proc/environ", "/proc/1/environ", "/proc/self/root/etc/passwd", "../../etc/passwd", "/workspace/home/x", "self", "/dev/zero", "x/../../../etc/passwd", ".git/config", "out/etc/passwd"} {
		p.Calls = append(p.Calls,
			modeltest.CallJSON("read", map[string]any{"path": path}), modeltest.CallJSON("write", map[string]any{"path": path, "content": "owned\n"}),
			modeltest.CallJSON("edit", map[string]any{"path": path, "edits": []any{map[string]any{"oldText": "root", "newText": "owned"}}}),
			modeltest.CallJSON("ls", map[string]any{"path": path}), modeltest.CallJSON("grep", map[string]any{"pattern": "root:", "path": path}),
			modeltest.CallJSON("find", map[string]any{"pattern": "*", "path": path}))
	}
	p.Calls = append([]modeltest.Call{
		modeltest.CallJSON("write", map[string]any{"path": "links.py", "content": makeLinks}), bash("python3 links.py"),
	}, p.Calls...)
	p.Calls = append(p.Calls, modeltest.CallJSON("read", map[string]any{"path": "fifo"}), modeltest.CallJSON("write", map[string]any{"path": "fifo", "content": "x"}))
	id, err := b.perform(ctx, "hostile", p)
	if err != nil {
		return id, err
	}
	a, err := b.owner.Do(ctx, http.MethodGet, "/chat-sessions/"+id+"/events?limit=1000", http.Header{"Accept": {"application/json"}}, nil)
	if err != nil {
		return "", err
	}
	for _, foreign := range []string{"root:x:0", "daemon:", "PATH="} {
		if strings.Contains(string(a.Body), foreign) {
			return "", fmt.Errorf("a tool read %q from outside the workspace", foreign)
		}
	}
	for _, path := range []string{"", "/diffs/latest", "/publish"} {
		a, err := b.owner.Do(ctx, http.MethodGet, "/chat-sessions/"+id+path, http.Header{"Accept": {"text/html"}}, nil)
		if err != nil {
			return "", err
		}
		if err := inert(string(a.Body)); err != nil || a.Status != http.StatusOK {
			return "", fmt.Errorf("GET %s: %d %w", path, a.Status, err)
		}
	}
	return "all refused", b.goesOn(ctx, id, "links.py")
}
