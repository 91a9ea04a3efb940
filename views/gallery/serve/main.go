//go:build gallery

// Command serve shows the samples of every page on 127.0.0.1:9100, with the headers of the product and
// a stream that plays a turn.
package main

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/a-h/templ"

	"agent-sandboxing/static"
	"agent-sandboxing/views/components"
	"agent-sandboxing/views/gallery"
	"agent-sandboxing/views/markdown"
	"agent-sandboxing/views/pages"
)

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"font-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"

func main() {
	mux := http.NewServeMux()
	mux.Handle("/static/", static.Handler())
	mux.HandleFunc("GET /{$}", index)
	mux.HandleFunc("GET /g/{name}", sample)
	mux.HandleFunc("GET /chat-sessions/{id}/stream", stream)
	mux.HandleFunc("POST /chat-sessions/{id}/messages", func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(r.FormValue("text"), "422") {
			w.WriteHeader(http.StatusUnprocessableEntity)
			_ = components.Composer(components.ComposerProps{SessionID: r.PathValue("id"), ClientKey: "k2", Text: r.FormValue("text"), Error: "That is too long."}).Render(r.Context(), w)
			return
		}
		_ = components.Composer(components.ComposerProps{SessionID: r.PathValue("id"), ClientKey: "k3", Active: true}).Render(r.Context(), w)
	})
	mux.HandleFunc("POST /chat-sessions/{id}/cancel", func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(http.StatusConflict)
		_ = pages.ErrorFragment(pages.ErrorProps{Message: "The turn had already finished."}).Render(r.Context(), w)
	})
	fmt.Println("http://127.0.0.1:9100/")
	server := &http.Server{Addr: "127.0.0.1:9100", ReadHeaderTimeout: time.Second, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", policy)
		mux.ServeHTTP(w, r)
	})}
	if err := server.ListenAndServe(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func index(w http.ResponseWriter, _ *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	for _, s := range gallery.Samples(time.Now(), "") {
		fmt.Fprintf(w, "<p>%s <a href=/g/%s>light</a> <a href='/g/%s?theme=dark'>dark</a>", s.Name, s.Name, s.Name)
	}
}

func sample(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	for _, s := range gallery.Samples(time.Now(), r.FormValue("theme")) {
		if s.Name == r.PathValue("name") {
			_ = s.Page.Render(r.Context(), w)
			return
		}
	}
	http.NotFound(w, r)
}

// stream plays one turn from the cursor on: an event a step, cut every 12 of them.
func stream(w http.ResponseWriter, r *http.Request) {
	after, _ := strconv.Atoi(r.FormValue("after"))
	if id, err := strconv.Atoi(r.Header.Get("Last-Event-ID")); err == nil {
		after = max(after, id)
	}
	w.Header().Set("Content-Type", "text/event-stream")
	fmt.Fprint(w, ": ok\n\n")
	rc := http.NewResponseController(w)
	now := time.Now()
	for seq := after + 1; ; seq++ {
		if (seq-after)%12 == 0 {
			return
		}
		step := seq - 43
		t := turn(now, r.PathValue("id"), step)
		part := components.ReplaceTurn(t)
		if step == 0 {
			part = components.AppendTurn(t)
		}
		status := components.ReplaceStatus(components.StatusProps{SessionID: t.SessionID, State: t.State, Label: t.State, Detail: fmt.Sprint(step, " steps"), StartedAt: now, Now: time.Now(), CanCancel: true})
		send(w, r.Context(), seq, part, status)
		if rc.Flush() != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-time.After(250 * time.Millisecond):
		}
		if step >= 30 {
			<-r.Context().Done()
			return
		}
	}
}

func turn(now time.Time, session string, step int) components.TurnProps {
	items := gallery.Items(now, false)
	for i := range items {
		if items[i].Tool != nil {
			items[i].Tool.CallID = "live-" + items[i].Tool.CallID
		} else {
			items[i].Note.Sequence += 1000
		}
	}
	t := components.TurnProps{SessionID: session, MessageID: "live", Author: "octo-dev", Text: "A live turn", CreatedAt: now, Now: time.Now(), State: "working", StartedAt: now}
	t.Items = items[:min(step, len(items))]
	if step > len(items) {
		words := strings.Fields("The answer grows a word at a time, while `code` and **emphasis** come and go with the text.")
		t.Answer = components.AnswerProps{MessageID: "live", HTML: markdown.Render(strings.Join(words[:min(len(words), step-len(items))], " ")), Growing: step < 30}
	}
	if step >= 30 {
		t.State, t.FinishedAt = "completed", time.Now()
	}
	return t
}

func send(w http.ResponseWriter, ctx context.Context, seq int, parts ...templ.Component) {
	var b bytes.Buffer
	for _, p := range parts {
		_ = p.Render(ctx, &b)
	}
	fmt.Fprintf(w, "id: %d\n", seq)
	for _, line := range strings.Split(strings.ReplaceAll(b.String(), "\r", ""), "\n") {
		fmt.Fprintf(w, "data: %s\n", line)
	}
	fmt.Fprint(w, "\n")
}
