package toolbox

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"unicode/utf8"

	"agent-sandboxing/core"
	"agent-sandboxing/sandbox/toolbox/wire"
)

// maxDetail bounds a name of the toolbox in a message. Bytes.
const maxDetail = 300

const codeLost = "sandbox_lost"

func lost(cause error) error {
	return core.Fail(core.Unavailable, codeLost,
		"The connection to the sandbox ended. The workspace is kept; send another message to go on.").Because(cause)
}

func busy() error {
	return core.Fail(core.Unavailable, "toolbox_busy", "Too many requests run in the sandbox at once. Try again.")
}

func tooLong(verb wire.Verb) error {
	return core.Fail(core.TooLarge, "command_too_long", fmt.Sprintf(
		"The %s request does not fit into %d KiB. Write long text to a file first.", verb, wire.MaxPayload>>10))
}

// wording is how a code of the toolbox reads: {path} is what the request was about, {detail} the name
// that the toolbox gave.
type wording struct {
	kind core.Kind
	text string
}

var wordings = map[wire.Code]wording{
	wire.OutsideWorkspace: {core.Invalid, "{path} leads to {detail}, which is not under " + core.RepoDir + " or /tmp. Use a path relative to the repository root."},
	wire.NotFound:         {core.NotFound, "{path} does not exist. List its folder to see what there is."},
	wire.IsDirectory:      {core.Invalid, "{path} is a directory. Name a file in it."},
	wire.NotADirectory:    {core.Invalid, "{path} is not a directory. Name a folder, or read it as a file."},
	wire.NotRegular:       {core.Invalid, "{path} is not a regular file (a pipe, socket or device). Name another file."},
	wire.FileTooLarge:     {core.TooLarge, "{path} is too large for this. Read a part of it with a command."},
	wire.ChangedSinceRead: {core.Conflict, "{path} has changed since it was read. Read it again first."},
	wire.AlreadyExists:    {core.Conflict, "{path} exists already. Read it before you replace it."},
	wire.DiskFull:         {core.Unavailable, "The sandbox's disk is full. Delete files that are not needed."},
	wire.PermissionDenied: {core.Invalid, "The sandbox's user may not do this with {path}. Change its mode first."},
	wire.BadPath:          {core.Invalid, "{path} is not a usable path. It must not be empty or contain NUL, and each name is at most 255 bytes."},
	wire.BadRequest:       {core.Invalid, "The sandbox could not make sense of the request about {path}. Change it and try again."},
	wire.CommandFailed:    {core.Unavailable, "The command could not be started in the sandbox. Check that its folder exists and the image has bash."},
	wire.CheckoutExists:   {core.Conflict, "The workspace already holds files. A session's workspace is never reset."},
	wire.CheckoutMissing:  {core.Conflict, "The sandbox's copy of the base commit is missing or damaged. Send a message: it is made again, and the work tree stays as it is."},
	wire.CheckoutFailed:   {core.Unavailable, "The repository could not be checked out in the sandbox (step: {detail}). Try again; if it persists, see the server log."},
	wire.SwitchFailed:     {core.Conflict, "The workspace is on another branch and could not be put back on the session's (step: {detail}). Start a new session from the base branch; the last captured diff stays readable here."},
	wire.SnapshotFailed:   {core.Unavailable, "The work tree could not be recorded because of {detail}. Make that path readable, ignored or remove it, then try again."},
	wire.CheckpointFailed: {core.Unavailable, "The work tree could not be saved because of {detail}. Make that path readable or remove it, then try again."},
	wire.RestoreFailed:    {core.Unavailable, "The saved work tree could not be restored ({detail}). Start a new session from the base branch."},
	wire.NetworkMissing:   {core.Unavailable, "The sandbox could not listen for its programs' connections. Run the server's doctor command; the container needs the setting net.ipv4.ip_unprivileged_port_start=0."},
	wire.Busy:             {core.Unavailable, "Too many requests run in the sandbox at once. Try again."},
	wire.Cancelled:        {core.Unavailable, "The sandbox ended the request about {path} early. Try again."},
	wire.Failed:           {core.Unavailable, "The sandbox could not do this with {path}. Try again; if it persists, start a new session."},
}

// failure turns a Finish frame's error into one of ours. A code that is not known becomes
// toolbox_failed; nothing of the toolbox's text but an escaped name is used.
func failure(r request, payload []byte) error {
	var e wire.Error
	if json.Unmarshal(payload, &e) != nil {
		e.Code = wire.Failed
	}
	w, known := wordings[e.Code]
	if !known {
		e.Code = wire.Failed
		w = wordings[wire.Failed]
	}
	about := shown(r.detail)
	if r.detail == "" {
		about = "the workspace"
	}
	text := strings.NewReplacer("{path}", about, "{detail}", shown(string(e.Detail))).Replace(w.text)
	return core.Fail(w.kind, string(e.Code), text)
}

// shown makes a name fit to print: quoted when anything in it is not plainly visible, and cut.
func shown(name string) string {
	if len(name) > maxDetail {
		cut := maxDetail
		for cut > 0 && !utf8.RuneStart(name[cut]) {
			cut--
		}
		name = name[:cut] + "…"
	}
	if quoted := strconv.Quote(name); name == "" || quoted != `"`+name+`"` {
		return quoted
	}
	return name
}
