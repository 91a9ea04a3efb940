package agent

import "agent-sandboxing/core"

const (
	// DefaultWindow is the context window that is assumed of a model, in tokens.
	DefaultWindow = 128_000
	// MinWindow is the smallest window with which a turn is possible at all, in tokens.
	MinWindow = 16_000

	// outputReserve is kept free for the answer; a small window keeps a quarter.
	outputReserve = 16_000
)

// usable is what a request may take of a window: the answer's room and a tenth, because estimates
// err, stay free.
func usable(window int) int { return window - min(outputReserve, window/4) - window/10 }

// Tokens are estimated by bytes, until the provider has counted: 4 of prose to a token, 3.5 of code.
func proseTokens(bytes int) int { return (bytes + 3) / 4 }
func codeTokens(bytes int) int  { return (2*bytes + 6) / 7 }

// messageOverhead is what the frame of a message or of a call costs, in tokens.
const messageOverhead = 4

func messageTokens(m Message) int {
	n := messageOverhead
	if m.Role == ToolRole {
		n += codeTokens(len(m.Text))
	} else {
		n += proseTokens(len(m.Text))
	}
	n += proseTokens(len(m.Reasoning))
	for _, c := range m.Calls {
		n += messageOverhead + codeTokens(len(c.ID)+len(c.Name)+len(c.Arguments))
	}
	return n
}

func specTokens(specs []ToolSpec) int {
	n := 0
	for _, s := range specs {
		n += messageOverhead + codeTokens(len(s.Name)+len(s.Description)+len(s.Parameters))
	}
	return n
}

// meter knows how full the context window is: what the provider counted for the last request, and
// an estimate of what came after it.
type meter struct {
	window  int // tokens
	fixed   int // of the tools, until the provider has counted them too
	counted int // tokens of the first messages, by the provider
	upTo    int // how many messages that are
}

// size estimates the next request in tokens.
func (m *meter) size(messages []Message) int {
	n := m.fixed
	if m.upTo > 0 {
		n = m.counted
	}
	for _, message := range messages[m.upTo:] {
		n += messageTokens(message)
	}
	return n
}

// calibrate takes over what the provider counted for a request of so many messages. A provider that
// counts nothing leaves the estimate.
func (m *meter) calibrate(u core.Usage, messages int) {
	if u.PromptTokens > 0 {
		m.counted, m.upTo = int(u.PromptTokens), messages
	}
}

// elided takes account of a text that was counted and is shorter now.
func (m *meter) elided(index, saved int) {
	if index < m.upTo {
		m.counted = max(0, m.counted-saved)
	}
}
