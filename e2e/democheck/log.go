package main

import (
	"encoding/json"
	"fmt"

	"github.com/playwright-community/playwright-go"
)

type event struct {
	Sequence int64           `json:"sequence"`
	Type     string          `json:"type"`
	Payload  json.RawMessage `json:"payload"`
}

// ask reads a JSON route with the cookies of a page's person.
func (j *journey) ask(p playwright.Page, path string, answer any) error {
	resp, err := p.Request().Get(j.stack.url+path, playwright.APIRequestContextGetOptions{Headers: map[string]string{"Accept": "application/json"}})
	if err != nil {
		return err
	}
	body, err := resp.Body()
	if err == nil && !resp.Ok() {
		err = fmt.Errorf("GET %s: %d: %.200s", path, resp.Status(), body)
	}
	if err != nil {
		return err
	}
	return json.Unmarshal(body, answer)
}

// events reads a session's whole log.
func (j *journey) events(p playwright.Page, session string) ([]event, error) {
	var all []event
	for {
		after := int64(0)
		if len(all) > 0 {
			after = all[len(all)-1].Sequence
		}
		var answer struct {
			Events []event `json:"events"`
		}
		if err := j.ask(p, fmt.Sprintf("%s/events?after=%d&limit=500", session, after), &answer); err != nil {
			return nil, err
		}
		if len(answer.Events) == 0 {
			return all, nil
		}
		all = append(all, answer.Events...)
	}
}

// audit counts the log's events, its holes and repeats, and repeated ids on the page that followed it live.
func (j *journey) audit() (n, gaps, duplicates int, err error) {
	events, err := j.events(j.page, j.session)
	if err != nil {
		return 0, 0, 0, err
	}
	last := int64(0)
	for _, e := range events {
		switch {
		case e.Sequence <= last:
			duplicates++
		case e.Sequence > last+1:
			gaps++
		}
		last = max(last, e.Sequence)
	}
	repeated, err := j.page.Evaluate(`(() => { const ids = [...document.querySelectorAll('[id]')].map(e => e.id); return ids.length - new Set(ids).size })()`)
	if err != nil {
		return 0, 0, 0, err
	}
	if r, ok := repeated.(int); ok {
		duplicates += r
	} else {
		return 0, 0, 0, fmt.Errorf("the page's ids could not be counted: %v", repeated)
	}
	return len(events), gaps, duplicates, nil
}
