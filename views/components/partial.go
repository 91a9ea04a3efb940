package components

import "github.com/a-h/templ"

// How a fragment of the stream lands in the page. Replacing is idempotent; an append is made so by
// the page itself, which turns it into a replacement when the id is already there.
const (
	swapReplace = "outerMorph"
	swapAppend  = "beforeend"
)

// AppendTurn adds a new turn at the end of the timeline.
func AppendTurn(p TurnProps) templ.Component {
	return partial("#timeline", swapAppend, TurnBlock(p))
}

// ReplaceTurn redraws one turn.
func ReplaceTurn(p TurnProps) templ.Component {
	return partial("#msg-"+p.MessageID, swapReplace, TurnBlock(p))
}

// ReplaceAnswer redraws the growing answer alone.
func ReplaceAnswer(p AnswerProps) templ.Component {
	return partial("#answer-"+p.MessageID, swapReplace, Answer(p))
}

// ReplaceHead redraws the session's header.
func ReplaceHead(p HeadProps) templ.Component {
	return partial("#head", swapReplace, Head(p))
}

// ReplaceProvision redraws the preparation's steps.
func ReplaceProvision(p ProvisionProps) templ.Component {
	return partial("#provision", swapReplace, Provision(p))
}

// ReplaceStatus redraws the status line.
func ReplaceStatus(p StatusProps) templ.Component {
	return partial("#status", swapReplace, StatusBar(p))
}

// ReplaceMark redraws the dot of this session in the list beside it.
func ReplaceMark(state string) templ.Component {
	return partial("#mark", swapReplace, SessionMark(state))
}

// ReplaceQueue redraws the strip of waiting messages.
func ReplaceQueue(p QueueProps) templ.Component {
	return partial("#queue", swapReplace, Queue(p))
}

// ReplaceComposerState redraws what surrounds the text area, never the text area itself.
func ReplaceComposerState(p ComposerProps) templ.Component {
	return partial("#composer-state", swapReplace, ComposerState(p))
}

// ReplaceChanges redraws the panel of changed files.
func ReplaceChanges(p ChangesProps) templ.Component {
	return partial("#changes", swapReplace, ChangesPanel(p))
}

// ReplacePullRequest redraws the pull request's card.
func ReplacePullRequest(p PullRequestProps) templ.Component {
	return partial("#pr", swapReplace, PullRequestCard(p))
}

// ReplaceArtifacts redraws the list of kept outputs.
func ReplaceArtifacts(items []ArtifactProps) templ.Component {
	return partial("#artifacts", swapReplace, ArtifactList(items))
}

// ReplaceNetwork redraws the panel of what the sandbox has reached.
func ReplaceNetwork(p NetworkProps) templ.Component {
	return partial("#network", swapReplace, NetworkPanel(p))
}

// ReplaceDetails redraws the details panel.
func ReplaceDetails(p DetailsProps) templ.Component {
	return partial("#details", swapReplace, Details(p))
}

// EndStream replaces the stream element by one that connects to nothing: the session is over.
func EndStream(message string) templ.Component {
	return partial("#stream", "outerHTML", StreamEnded(message))
}
