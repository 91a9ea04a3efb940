package publish

import (
	"cmp"
	"fmt"
	"strings"

	"agent-sandboxing/core"
	"agent-sandboxing/core/mirror"
	"agent-sandboxing/core/redact"
)

// Our block of a pull request's text lies between these; what people write around it stays.
const (
	beginMark = "<!-- agent-session:begin -->"
	endMark   = "<!-- agent-session:end -->"
)

// Lengths: of the title in runes, of the others in bytes. GitHub's own limit of a body is 65,536.
const (
	maxTitle   = 72
	maxBody    = 60_000
	maxSummary = 24_000
	minBlock   = 2_000 // left to our block however long the people's text is
	maxListed  = 200   // files
)

// title is one clean line.
func (a *attempt) title() string {
	if t := oneLine(voice(a.p.MessageID == "")(a.redact(a.p.Title)), maxTitle); t != "" {
		return t
	}
	if t := cleanLine(a.redact(a.session.Title), maxTitle); t != "" {
		return t
	}
	return "Changes of session " + core.Short(a.session.ID)
}

// subject is the title, or for a later commit under the same title the first line of request, which
// says what is new.
func (a *attempt) subject(request string) string {
	title := a.title()
	if a.known == nil || a.known.Title != title {
		return title
	}
	first, _, _ := strings.Cut(strings.TrimSpace(request), "\n")
	return cmp.Or(cleanLine(a.redact(first), maxTitle), title)
}

// commitMessage is the subject, the first paragraph of the text, and who asked for it where.
func (a *attempt) commitMessage(request string) string {
	name := cleanLine(a.person.Name, maxTitle)
	if name = strings.NewReplacer("<", "", ">", "").Replace(name); name == "" {
		name = a.person.Login
	}
	parts := []string{a.subject(request)}
	first, _, _ := strings.Cut(strings.TrimSpace(cleanText(a.redact(a.p.Body))), "\n\n")
	if first = strings.TrimSpace(forged.ReplaceAllString(redact.Cut(first, minBlock), "")); first != "" {
		parts = append(parts, first)
	}
	trailers := fmt.Sprintf("Co-authored-by: %s <%d+%s@%s>", name, a.person.GitHubID, a.person.Login, a.noreplyHost)
	if link := a.link(); link != "" {
		trailers += "\nAgent-Session: " + link
	}
	return strings.Join(append(parts, trailers), "\n\n")
}

// link is the session's page, "" when the installation's address is not known.
func (a *attempt) link() string {
	if a.publicURL == "" {
		return ""
	}
	return strings.TrimSuffix(a.publicURL, "/") + "/chat-sessions/" + string(a.session.ID)
}

// body puts our block in the place of the earlier one, or after the people's text.
func (a *attempt) body(existing string, changes []mirror.Change) string {
	w := a.words(existing)
	before, after := existing, ""
	if i := strings.Index(existing, beginMark); i >= 0 {
		before, after = existing[:i], existing[i:]
		if j := strings.Index(after, endMark); j >= 0 {
			after = after[j+len(endMark):]
		} else {
			after = "" // our block was cut in half: the rest was ours
		}
	} else if strings.TrimSpace(existing) != "" {
		before = strings.TrimRight(existing, "\r\n") + "\n\n"
	}
	return before + a.block(w, max(cmp.Or(a.bodyLimit, maxBody)-len(before)-len(after), minBlock), changes) + after
}

// block is everything we say, in at most limit bytes: the foot first, then the words, then as many
// files as fit.
func (a *attempt) block(w words, limit int, changes []mirror.Change) string {
	foot := a.foot() + "\n" + endMark
	room := limit - len(beginMark) - len(foot) - len(w.mark()) - 10
	w = w.cut(min(maxSummary, room/2))
	summary := w.mark() + "\n\n"
	if w.text != "" {
		summary = w.text + "\n\n" + summary
	}
	room -= len(summary)
	files := make([]core.ChangedFile, len(changes))
	lines := make([]string, len(changes))
	for i, c := range changes {
		files[i], lines[i] = c.ChangedFile, changeLine(c)
	}
	plus, minus := core.Totals(files)
	list := section(fmt.Sprintf("**Changed files** (%d, +%d −%d)", len(changes), plus, minus), lines, room)
	room -= len(list)
	network := section("**Network of the sandbox**", networkLines(a.network, a.reach), room)
	room -= len(network)
	out := make([]string, len(a.p.LeftOut))
	for i, l := range a.p.LeftOut {
		out[i] = code(l)
	}
	return beginMark + "\n" + summary + list + section("**Left out of this pull request**", out, room) + network + foot
}

// foot says who stands behind the pull request. Its author is the App, so GitHub would count an approval
// by the person who asked for it.
func (a *attempt) foot() string {
	who := "@" + a.person.Login
	foot := "Requested by " + who
	if link := a.link(); link != "" {
		foot += " in [this session](" + link + ")"
	}
	foot += ". The commits were made for " + who + ", so an approval by " + who + " is no independent review."
	var earlier []string
	for _, number := range a.earlier {
		if a.pull == nil || a.pull.Number != number {
			earlier = append(earlier, fmt.Sprintf("#%d", number))
		}
	}
	if len(earlier) > 0 {
		foot += " Takes the place of " + few(earlier) + "."
	}
	return foot
}

// section lists lines under a heading within limit bytes and says how many are missing.
func section(heading string, lines []string, limit int) string {
	const more = 40 // room for the last line
	if len(lines) == 0 || limit < len(heading)+2*more {
		return ""
	}
	var b strings.Builder
	b.WriteString(heading + "\n\n")
	for i, l := range lines {
		if i == maxListed || b.Len()+len(l)+3+more > limit {
			fmt.Fprintf(&b, "- and %d more\n", len(lines)-i)
			break
		}
		b.WriteString("- " + l + "\n")
	}
	return b.String() + "\n"
}

func changeLine(c mirror.Change) string {
	name := code(printable(c.Path))
	if c.OldPath != "" {
		name = code(printable(c.OldPath)) + " → " + name
	}
	switch {
	case c.Binary:
		return name + " binary, " + c.Status
	case c.Status == "modified":
		return fmt.Sprintf("%s +%d −%d", name, c.Additions, c.Deletions)
	}
	return fmt.Sprintf("%s %s, +%d −%d", name, c.Status, c.Additions, c.Deletions)
}

// code is an inline code span that holds s whatever is in it: its fence is longer than any run of
// backticks inside.
func code(s string) string {
	longest, run := 0, 0
	for _, r := range s {
		if r != '`' {
			run = 0
			continue
		}
		run++
		longest = max(longest, run)
	}
	fence := strings.Repeat("`", longest+1)
	if longest > 0 {
		s = " " + s + " "
	}
	return fence + s + fence
}
