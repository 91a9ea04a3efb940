package modeltest

import "sync"

// Sequence answers the requests with replies in order, and with a plain text when they are used up.
func Sequence(replies ...Reply) Script { return &sequence{replies: replies} }

type sequence struct {
	mu      sync.Mutex
	replies []Reply
}

func (s *sequence) Name() string { return "scripted" }

func (s *sequence) Reply(Request) Reply {
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.replies) == 0 {
		return Reply{Text: "The script has no more replies."}
	}
	reply := s.replies[0]
	s.replies = s.replies[1:]
	return reply
}
