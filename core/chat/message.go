package chat

import (
	"context"
	"strings"

	"agent-sandboxing/core"
)

// Post queues a follow-up. The session's owner only, while GitHub lets them push.
func (s *Service) Post(ctx context.Context, user core.User, id core.SessionID, text, key string) (core.Message, error) {
	text, err := messageText(text)
	if err != nil {
		return core.Message{}, err
	}
	if key, err = clientKey(key); err != nil {
		return core.Message{}, err
	}
	session, rights, err := s.own(ctx, user, id)
	if err != nil {
		return core.Message{}, err
	}
	if !rights.Push {
		return core.Message{}, core.Fail(core.Forbidden, "push_required",
			"You may not push to "+session.Repository.FullName()+" any more, so the agent may not work on it for you. Ask for write access on GitHub.")
	}
	return s.store.PostMessage(ctx, core.NewMessage{
		SessionID: id, OwnerID: user.ID, Text: text, ClientKey: key, MaxActive: s.maxActive,
	})
}

// Edit changes a message that still waits. The session's owner only.
func (s *Service) Edit(ctx context.Context, user core.User, id core.SessionID, message core.MessageID, text string) error {
	text, err := messageText(text)
	if err != nil {
		return err
	}
	if _, _, err := s.own(ctx, user, id); err != nil {
		return err
	}
	return s.store.EditMessage(ctx, id, message, text)
}

// Remove takes a message that still waits out of the queue. The session's owner only.
func (s *Service) Remove(ctx context.Context, user core.User, id core.SessionID, message core.MessageID) error {
	if _, _, err := s.own(ctx, user, id); err != nil {
		return err
	}
	return s.store.RemoveMessage(ctx, id, message, user.Login)
}

// Cancel asks for the end of the session's turn. Its owner, or an administrator.
func (s *Service) Cancel(ctx context.Context, user core.User, id core.SessionID) (core.Message, error) {
	if err := s.mayCancel(ctx, user, id, "message_cancel"); err != nil {
		return core.Message{}, err
	}
	return s.store.RequestCancel(ctx, id, user.Login)
}

// mayCancel is the rule of cancel and stop: the owner may, and an administrator may on the record.
func (s *Service) mayCancel(ctx context.Context, user core.User, id core.SessionID, action string) error {
	_, rights, err := s.Open(ctx, user, id, "session_view")
	if err != nil {
		return err
	}
	if !rights.MayCancel() {
		return notOwner()
	}
	if rights.Owner {
		return nil
	}
	return s.store.Audit(ctx, core.AuditEntry{UserID: user.ID, Action: action, Session: id})
}

// messageText checks what a person typed. Line ends become \n; the rest is kept as it is.
func messageText(text string) (string, error) {
	text = strings.ReplaceAll(text, "\r\n", "\n")
	text = strings.ReplaceAll(text, "\r", "\n")
	switch {
	case len(text) > core.MaxMessageBytes:
		return "", core.Fail(core.TooLarge, "message_too_large",
			"The message is larger than 48 KiB. Shorten it, or put long material into a file of the repository.")
	case strings.TrimSpace(text) == "":
		return "", core.Fail(core.Invalid, "message_empty", "Write what you want changed.")
	case !storable(text):
		return "", core.Fail(core.Invalid, "message_invalid", "The message holds bytes that are not text. Remove them and send it again.")
	}
	return text, nil
}
