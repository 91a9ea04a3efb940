package sandboxtest

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"agent-sandboxing/core"
)

func fileCases() []testCase {
	return []testCase{
		{name: "read gives ranges and says where the end is", run: readRanges},
		{name: "read names what is no file", run: readErrors},
		{name: "read gives ten megabytes at once", run: readLarge},
		{name: "write makes folders and files", run: writeNew},
		{name: "write keeps the mode of what it replaces", needs: real, run: writeKeepsMode},
		{name: "write expects what the caller has seen", run: writeExpects},
		{name: "write is seen whole or not at all", run: writeAtomic},
		{name: "write goes through a link inside", needs: real, run: writeThroughLink},
		{name: "write replaces a hard link without changing the other name", needs: real, run: writeHardLink},
		{name: "write refuses more than a megabyte", run: writeLarge},
		{name: "stat describes the path itself", needs: real, run: statKinds},
		{name: "list is sorted and bounded", run: listLevel},
		{name: "names may be any bytes", run: strangeNames},
		{name: "files below tmp are reached by their absolute name", run: tmpFiles},
	}
}

func sum(text string) string {
	h := sha256.Sum256([]byte(text))
	return hex.EncodeToString(h[:])
}

func readRanges(t *testing.T, ws box) {
	ws.write(t, map[string]string{"f": "0123456789", "empty": ""})
	for _, c := range []struct {
		offset, limit int64
		want          string
		eof           bool
	}{
		{0, 0, "0123456789", true},
		{0, 4, "0123", false},
		{4, 3, "456", false},
		{7, 3, "789", true},
		{7, 100, "789", true},
		{10, 5, "", true},
		{99, 5, "", true},
	} {
		got, err := ws.Read(t.Context(), "f", c.offset, c.limit)
		if err != nil || string(got.Data) != c.want || got.EOF != c.eof || got.SHA256 != sum("0123456789") || got.Size != 10 || got.Path != "f" {
			t.Errorf("read(%d, %d) = %q, %t, %+v, %v, want %q, %t", c.offset, c.limit, got.Data, got.EOF, got.FileStat, err, c.want, c.eof)
		}
	}
	if got, err := ws.Read(t.Context(), "empty", 0, 0); err != nil || len(got.Data) != 0 || !got.EOF || got.SHA256 != sum("") {
		t.Errorf("empty: %+v, %v", got, err)
	}
	_, err := ws.Read(t.Context(), "f", -1, 5)
	wantCode(t, "negative offset", err, "range_invalid")
}

func readErrors(t *testing.T, ws box) {
	ws.write(t, map[string]string{"dir/f": "x"})
	for name, code := range map[string]string{
		"missing": "not_found", "dir/missing": "not_found", "missing/f": "not_found",
		"dir": "is_directory", "": "is_directory", ".": "is_directory",
		"dir/f/x": "not_a_directory", "dir/f/": "not_a_directory",
		"a\x00b": "path_invalid", strings.Repeat("n", 256): "path_invalid", strings.Repeat("d/", 3000): "path_invalid",
	} {
		_, err := ws.Read(t.Context(), name, 0, 0)
		wantCode(t, fmt.Sprintf("read %.20q", name), err, code)
	}
}

func readLarge(t *testing.T, ws box) {
	part := bytes.Repeat([]byte("0123456789abcdef"), core.MaxWrite/16)
	ws.write(t, map[string]string{"part": string(part)})
	ws.must(t, "for i in 1 2 3 4 5 6 7 8 9 10 11; do cat part; done > large")
	got, err := ws.Read(t.Context(), "large", 0, 0)
	if err != nil || len(got.Data) != core.MaxRead || got.EOF || got.Size != 11<<20 || got.SHA256 != "" {
		t.Fatalf("%d bytes, end %t, %+v, %v", len(got.Data), got.EOF, got.FileStat, err)
	}
	if !bytes.Equal(got.Data, bytes.Repeat(part, 10)) {
		t.Error("the bytes are not those of the file")
	}
	got, err = ws.Read(t.Context(), "large", 11<<20-16, 100)
	if err != nil || string(got.Data) != "0123456789abcdef" || !got.EOF {
		t.Errorf("end: %q, %t, %v", got.Data, got.EOF, err)
	}
}

func writeNew(t *testing.T, ws box) {
	got, err := ws.Write(t.Context(), core.WriteFile{Path: "a/b/c.txt", Data: []byte("text\n")})
	want := core.FileStat{Path: "a/b/c.txt", Kind: core.FileRegular, Size: 5, Mode: 0o644, SHA256: sum("text\n")}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v, -want +got\n%s", err, diff)
	}
	got, err = ws.Write(t.Context(), core.WriteFile{Path: "/workspace/repo/x", Data: []byte("1"), Mode: 0o755})
	if err != nil || got.Path != "x" || got.Mode != 0o755 {
		t.Errorf("%+v, %v", got, err)
	}
	if stat, err := ws.Stat(t.Context(), "x"); err != nil || stat.Mode != 0o755 {
		t.Errorf("%+v, %v", stat, err)
	}
	for name, code := range map[string]string{"a": "is_directory", "x/y": "not_a_directory", "": "is_directory", "new/": "is_directory"} {
		_, err := ws.Write(t.Context(), core.WriteFile{Path: name, Data: []byte("1")})
		wantCode(t, fmt.Sprintf("write %q", name), err, code)
	}
	if l, err := ws.List(t.Context(), "a/b", 0); err != nil || len(l.Entries) != 1 {
		t.Errorf("%+v, %v: something was left beside the file", l, err)
	}
}

func writeKeepsMode(t *testing.T, ws box) {
	ws.must(t, "echo old > run.sh && chmod 0751 run.sh")
	got, err := ws.Write(t.Context(), core.WriteFile{Path: "run.sh", Data: []byte("new\n"), Mode: 0o600})
	if err != nil || got.Mode != 0o751 {
		t.Errorf("%+v, %v", got, err)
	}
	if out := ws.must(t, "stat -c %a run.sh; cat run.sh"); out != "751\nnew\n" {
		t.Errorf("%q", out)
	}
}

func writeExpects(t *testing.T, ws box) {
	put := func(text, expect string) error {
		_, err := ws.Write(t.Context(), core.WriteFile{Path: "f", Data: []byte(text), Expect: expect})
		return err
	}
	wantCode(t, "hash of what is not there", put("1", sum("0")), "changed_since_read")
	if err := put("1", "absent"); err != nil {
		t.Error(err)
	}
	wantCode(t, "absent, but there", put("2", "absent"), "already_exists")
	wantCode(t, "another hash", put("2", sum("0")), "changed_since_read")
	if err := put("2", sum("1")); err != nil {
		t.Error(err)
	}
	if err := put("3", ""); err != nil {
		t.Error(err)
	}
	wantCode(t, "no hash", put("4", "zzz"), "expect_invalid")
	if got := ws.read(t, "f"); got != "3" {
		t.Errorf("content %q", got)
	}
}

func writeAtomic(t *testing.T, ws box) {
	texts := []string{strings.Repeat("a", 300_000), strings.Repeat("b", 200_000)}
	ws.write(t, map[string]string{"f": texts[0]})
	done := make(chan struct{})
	go func() {
		defer close(done)
		for i := range 40 {
			if _, err := ws.Write(t.Context(), core.WriteFile{Path: "f", Data: []byte(texts[i%2])}); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	for running := true; running; {
		select {
		case <-done:
			running = false
		default:
		}
		if got := ws.read(t, "f"); got != texts[0] && got != texts[1] {
			t.Fatalf("read %d bytes that were never written as one", len(got))
		}
	}
}

func writeThroughLink(t *testing.T, ws box) {
	ws.must(t, "mkdir dir && echo old > dir/target && ln -s dir/target link && ln -s dir folder && ln -s dir/new dangling")
	ws.write(t, map[string]string{"link": "one", "folder/other": "two", "dangling": "three"})
	if out := ws.must(t, "cat dir/target dir/other dir/new && readlink link && readlink dangling"); out != "onetwothreedir/target\ndir/new\n" {
		t.Errorf("%q", out)
	}
}

func writeHardLink(t *testing.T, ws box) {
	ws.must(t, "echo old > one && ln one two")
	ws.write(t, map[string]string{"one": "new\n"})
	if out := ws.must(t, "cat one two"); out != "new\nold\n" {
		t.Errorf("%q", out)
	}
}

func writeLarge(t *testing.T, ws box) {
	ws.write(t, map[string]string{"f": strings.Repeat("x", core.MaxWrite)})
	_, err := ws.Write(t.Context(), core.WriteFile{Path: "f", Data: make([]byte, core.MaxWrite+1)})
	wantCode(t, "a byte more", err, "file_too_large")
	if stat, err := ws.Stat(t.Context(), "f"); err != nil || stat.Size != core.MaxWrite {
		t.Errorf("%+v, %v", stat, err)
	}
}

func statKinds(t *testing.T, ws box) {
	ws.must(t, "mkdir dir && echo 12345 > file && chmod 640 file && ln -s /etc/passwd link && mkfifo pipe")
	for name, want := range map[string]core.FileStat{
		"dir":  {Path: "dir", Kind: core.FileDir},
		"file": {Path: "file", Kind: core.FileRegular, Size: 6, Mode: 0o640},
		"link": {Path: "link", Kind: core.FileLink, Target: "/etc/passwd"},
		"pipe": {Path: "pipe", Kind: core.FileOther},
	} {
		got, err := ws.Stat(t.Context(), name)
		if want.Kind != core.FileRegular {
			got.Size, got.Mode = 0, 0
		}
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%s: %v, -want +got\n%s", name, err, diff)
		}
	}
}

func listLevel(t *testing.T, ws box) {
	ws.write(t, map[string]string{"b.txt": "1", "a/x": "2", ".hidden": "3", "c": "", "a.txt": "4"})
	l, err := ws.List(t.Context(), "", 0)
	if err != nil || l.More {
		t.Fatalf("%+v, %v", l, err)
	}
	var names []string
	for _, e := range l.Entries {
		names = append(names, e.Path+" "+string(e.Kind))
	}
	want := []string{".hidden file", "a dir", "a.txt file", "b.txt file", "c file"}
	if diff := cmp.Diff(want, names); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if l, err = ws.List(t.Context(), ".", 2); err != nil || len(l.Entries) != 2 || !l.More {
		t.Errorf("two of five: %+v, %v", l, err)
	}
	if l, err = ws.List(t.Context(), "a", 1); err != nil || len(l.Entries) != 1 || l.More || l.Entries[0].Path != "a/x" {
		t.Errorf("one of one: %+v, %v", l, err)
	}
	_, err = ws.List(t.Context(), "c", 0)
	wantCode(t, "list a file", err, "not_a_directory")
	_, err = ws.List(t.Context(), "missing", 0)
	wantCode(t, "list nothing", err, "not_found")
}

// odd are names that break what treats names as text.
var odd = []string{
	"new\nline", "-rf", "quote'\"", " spaces ", "esc\x1b[31m", "rtl\u202e", "bad\xff\xfeutf8", "tab\t", "back\\slash", "*", "~", "…",
}

func strangeNames(t *testing.T, ws box) {
	for _, name := range odd {
		ws.write(t, map[string]string{"odd/" + name: "content of " + name})
	}
	l, err := ws.List(t.Context(), "odd", 0)
	if err != nil || len(l.Entries) != len(odd) {
		t.Fatalf("%d entries, %v", len(l.Entries), err)
	}
	found, err := ws.Find(t.Context(), core.FindQuery{Pattern: "**", Path: "odd"})
	if err != nil || len(found.Paths) != len(odd) {
		t.Fatalf("%d found, %v", len(found.Paths), err)
	}
	for i, e := range l.Entries {
		if e.Path != found.Paths[i] {
			t.Errorf("list says %q, find %q", e.Path, found.Paths[i])
		}
		if got := ws.read(t, e.Path); got != "content of "+strings.TrimPrefix(e.Path, "odd/") {
			t.Errorf("%q holds %q", e.Path, got)
		}
	}
	hits, err := ws.Search(t.Context(), core.SearchQuery{Pattern: "content of", Path: "odd", Literal: true})
	if err != nil || hits.Matches < len(odd) {
		t.Errorf("%d matches, %v", hits.Matches, err)
	}
	_, err = ws.Read(t.Context(), "odd/\x1b]0;x\a", 0, 0)
	if err == nil || strings.ContainsAny(core.MessageOf(err), "\x1b\a") {
		t.Errorf("err = %v: a control character is shown as it is", err)
	}
}

func tmpFiles(t *testing.T, ws box) {
	stat, err := ws.Write(t.Context(), core.WriteFile{Path: "/tmp/dir/f", Data: []byte("x")})
	if err != nil || stat.Path != "/tmp/dir/f" || stat.Mode != fs.FileMode(0o644) {
		t.Fatalf("%+v, %v", stat, err)
	}
	if got := ws.must(t, "cat $TMPDIR/dir/f"); got != "x" {
		t.Errorf("a command sees %q", got)
	}
	l, err := ws.List(t.Context(), "/tmp/dir", 0)
	if err != nil || len(l.Entries) != 1 || l.Entries[0].Path != "/tmp/dir/f" {
		t.Errorf("%+v, %v", l, err)
	}
	found, err := ws.Find(t.Context(), core.FindQuery{Pattern: "f", Path: "/tmp"})
	if err != nil || len(found.Paths) != 1 || found.Paths[0] != "/tmp/dir/f" {
		t.Errorf("%+v, %v", found, err)
	}
}
