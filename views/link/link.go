// Package link is the one home of the addresses that pages link and post to. Ids are the canonical
// text forms; every other value is escaped here.
package link

import (
	"net/url"
	"strconv"
)

// Fixed addresses.
const (
	Sessions      = "/"
	SignIn        = "/login"
	SignOut       = "/logout"        // POST
	Installations = "/installations" // GET
	New           = "/new"           // GET: query installation, repository, q, branch, branch_q
	Create        = "/chat-sessions" // POST: installation, repository, branch, sha, text, client_key
	Settings      = "/settings"      // GET
	Theme         = "/settings/theme"
	Everywhere    = "/settings/sign-out-everywhere" // POST
	Disconnect    = "/settings/disconnect"          // POST
	People        = "/admin/people"                 // GET: query q; administrators only
)

// GitHubSignIn starts the OAuth flow and comes back to returnTo, a path of ours.
func GitHubSignIn(returnTo string) string {
	if returnTo == "" {
		return "/auth/github"
	}
	return "/auth/github?" + url.Values{"return_to": {returnTo}}.Encode()
}

// NewIn is the new-session form of an installation.
func NewIn(installation int64) string {
	return New + "?installation=" + strconv.FormatInt(installation, 10)
}

// NewFor is the new-session form with a repository and, unless empty, a branch chosen.
func NewFor(installation, repository int64, branch string) string {
	q := url.Values{
		"installation": {strconv.FormatInt(installation, 10)},
		"repository":   {strconv.FormatInt(repository, 10)},
	}
	if branch != "" {
		q.Set("branch", branch)
	}
	return New + "?" + q.Encode()
}

// NewWhole is the new-session form with the whole of a long list looked at.
func NewWhole(installation int64) string { return NewIn(installation) + "&all=1" }

// Role makes a person an administrator or a member: POST role.
func Role(person string) string { return People + "/" + url.PathEscape(person) + "/role" }

// SignOutPerson ends a person's logins: POST.
func SignOutPerson(person string) string {
	return People + "/" + url.PathEscape(person) + "/sign-out"
}

// Session is a session's page.
func Session(id string) string { return "/chat-sessions/" + url.PathEscape(id) }

// SessionTab is the session's page with one of its zones in front on a narrow screen: chat,
// changes or details.
func SessionTab(id, tab string) string {
	return Session(id) + "?" + url.Values{"tab": {tab}}.Encode()
}

// Earlier is the session's page with the items before a sequence.
func Earlier(id string, before int64) string {
	return Session(id) + "?before=" + strconv.FormatInt(before, 10)
}

// Stream is the stream of HTML fragments after a sequence.
func Stream(id string, after int64) string {
	return Session(id) + "/stream?after=" + strconv.FormatInt(after, 10)
}

// Messages takes new messages: POST text, client_key.
func Messages(id string) string { return Session(id) + "/messages" }

// Message edits a queued message: POST text.
func Message(id, message string) string { return Messages(id) + "/" + url.PathEscape(message) }

// RemoveMessage takes a queued message out of the queue: POST.
func RemoveMessage(id, message string) string { return Message(id, message) + "/remove" }

// ContinueMessage goes on from a message that a limit stopped, with higher ones: POST.
func ContinueMessage(id, message string) string { return Message(id, message) + "/continue" }

// Resolve asks the agent to take in what others pushed, after a publish that ended in a conflict: POST.
func Resolve(id, publication string) string {
	return Session(id) + "/publications/" + url.PathEscape(publication) + "/resolve"
}

// PublishAgain repeats a publish with the answer to what it asked: POST choice.
func PublishAgain(id, publication string) string {
	return Session(id) + "/publications/" + url.PathEscape(publication) + "/again"
}

// CancelPublish ends a publish of which nothing was sent yet: POST.
func CancelPublish(id, publication string) string {
	return Session(id) + "/publications/" + url.PathEscape(publication) + "/cancel"
}

// Cancel asks the active turn to stop: POST.
func Cancel(id string) string { return Session(id) + "/cancel" }

// Rename gives the session another title: POST title.
func Rename(id string) string { return Session(id) + "/title" }

// Archive puts the session away or back: POST archived=true|false.
func Archive(id string) string { return Session(id) + "/archive" }

// Stop stops the session's sandbox: POST.
func Stop(id string) string { return Session(id) + "/stop" }

// Network lists every host that the session's sandbox has reached or wanted.
func Network(id string) string { return Session(id) + "/network" }

// AllowHost puts a host on the list of the session's repository: POST host.
func AllowHost(id string) string { return Network(id) + "/hosts" }

// RepositoryNetwork is a repository's network page.
func RepositoryNetwork(installation, repository int64) string {
	return "/installations/" + strconv.FormatInt(installation, 10) + "/repositories/" + strconv.FormatInt(repository, 10) + "/network"
}

// AddHost puts a host on the repository's list: POST host.
func AddHost(installation, repository int64) string {
	return RepositoryNetwork(installation, repository) + "/hosts"
}

// RemoveHost takes a host off the repository's list: POST host.
func RemoveHost(installation, repository int64) string {
	return AddHost(installation, repository) + "/remove"
}

// NetworkMode chooses the mode of new sessions on the repository: POST mode.
func NetworkMode(installation, repository int64) string {
	return RepositoryNetwork(installation, repository) + "/mode"
}

// Events is the JSON event stream.
func Events(id string) string { return Session(id) + "/events" }

// Diff is one captured diff.
func Diff(id, diff string) string { return Session(id) + "/diffs/" + url.PathEscape(diff) }

// DiffFile is the diff with one more file opened; the fragment is that file's place.
func DiffFile(id, diff string, file int) string {
	n := strconv.Itoa(file)
	return Diff(id, diff) + "?file=" + n + "#file-" + n
}

// LatestDiff redirects to the newest diff.
func LatestDiff(id string) string { return Session(id) + "/diffs/latest" }

// Publish is the form (GET) and its target (POST title, body, draft, base, offered, path, client_key).
func Publish(id string) string { return Session(id) + "/publish" }

// Artifact is an artifact's page; page counts from 1.
func Artifact(id, artifact string, page int) string {
	u := Session(id) + "/artifacts/" + url.PathEscape(artifact)
	if page > 1 {
		u += "?page=" + strconv.Itoa(page)
	}
	return u
}

// ArtifactRaw downloads an artifact's bytes.
func ArtifactRaw(id, artifact string) string {
	return Session(id) + "/artifacts/" + url.PathEscape(artifact) + "/raw"
}

// Avatar is a cached picture of a GitHub account.
func Avatar(githubID int64) string { return "/avatars/" + strconv.FormatInt(githubID, 10) }
