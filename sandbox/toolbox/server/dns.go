package server

import (
	"errors"
	"net/netip"
	"strings"

	"golang.org/x/net/dns/dnsmessage"

	"agent-sandboxing/sandbox/toolbox/wire"
)

// dnsTTL is how long programs may remember a name's address, in seconds. An address is given to
// another name only after some 65,000 others, so remembering it longer does no harm.
const dnsTTL = 60

// errNobody is a name that is looked up while no client lets anything out.
var errNobody = errors.New("no client is attached")

// addresses gives each name its own.
type addresses interface {
	address(name string) (netip.Addr, error)
}

// answerDNS is the answer to one message, nil for what is no query. Every name exists and has one
// IPv4 address; of all other types it has no record. Whether the name may be reached is decided where
// the connection to it ends.
func answerDNS(message []byte, names addresses) []byte {
	var query dnsmessage.Parser
	head, err := query.Start(message)
	if err != nil || head.Response {
		return nil
	}
	answer := dnsmessage.Header{ID: head.ID, Response: true, OpCode: head.OpCode, RecursionDesired: head.RecursionDesired, RecursionAvailable: true}
	if head.OpCode != 0 {
		answer.RCode = dnsmessage.RCodeNotImplemented
		return packDNS(answer, nil, netip.Addr{})
	}
	question, err := query.Question()
	if err != nil {
		answer.RCode = dnsmessage.RCodeFormatError
		return packDNS(answer, nil, netip.Addr{})
	}
	if _, err := query.Question(); !errors.Is(err, dnsmessage.ErrSectionDone) {
		answer.RCode = dnsmessage.RCodeFormatError
		return packDNS(answer, nil, netip.Addr{})
	}
	addr, code := lookUp(question, names)
	answer.RCode = code
	return packDNS(answer, &question, addr)
}

func lookUp(q dnsmessage.Question, names addresses) (netip.Addr, dnsmessage.RCode) {
	name := strings.ToLower(strings.TrimSuffix(q.Name.String(), "."))
	switch {
	case q.Class != dnsmessage.ClassINET:
		return netip.Addr{}, dnsmessage.RCodeRefused
	case !wire.IsHostName(name), name == "arpa", strings.HasSuffix(name, ".arpa"): // and no address has a name
		return netip.Addr{}, dnsmessage.RCodeNameError
	case q.Type != dnsmessage.TypeA:
		return netip.Addr{}, dnsmessage.RCodeSuccess
	case name == "localhost", strings.HasSuffix(name, ".localhost"):
		return netip.AddrFrom4([4]byte{127, 0, 0, 1}), dnsmessage.RCodeSuccess
	}
	addr, err := names.address(name)
	if err != nil {
		return netip.Addr{}, dnsmessage.RCodeRefused
	}
	return addr, dnsmessage.RCodeSuccess
}

// packDNS never fails: what goes in was parsed from a message.
func packDNS(head dnsmessage.Header, question *dnsmessage.Question, addr netip.Addr) []byte {
	b := dnsmessage.NewBuilder(nil, head)
	b.EnableCompression()
	err := b.StartQuestions()
	if question != nil {
		err = errors.Join(err, b.Question(*question))
	}
	if addr.IsValid() {
		record := dnsmessage.ResourceHeader{Name: question.Name, Class: dnsmessage.ClassINET, TTL: dnsTTL}
		err = errors.Join(err, b.StartAnswers(), b.AResource(record, dnsmessage.AResource{A: addr.As4()}))
	}
	answer, packErr := b.Finish()
	if errors.Join(err, packErr) != nil {
		return nil
	}
	return answer
}
