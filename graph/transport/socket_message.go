package transport

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"

	"seckill/internal/platform/fault"
)

// message is one frame of graphql-transport-ws
// (https://github.com/enisdenjo/graphql-ws/blob/master/PROTOCOL.md).
type message struct {
	kind    string
	id      string
	payload any // nil when absent or null
}

var errMessage = errors.New("not a message")

func decodeMessage(text string) (message, error) {
	var m message
	if !utf8.ValidString(text) {
		return m, errMessage
	}
	s := &scanner{text: text}
	err := s.members(func(key string) error {
		v, err := s.value(maxJSONDepth)
		if err != nil {
			return err
		}
		ok := true
		switch key {
		case "type":
			m.kind, ok = v.(string)
		case "id":
			m.id, ok = v.(string)
		case "payload":
			m.payload = v
		}
		if !ok {
			return errMessage
		}
		return nil
	})
	if err == nil {
		err = s.end()
	}
	return m, err
}

// handle processes one message and reports whether the socket stays open.
func (s *socket) handle(text string) bool {
	m, err := decodeMessage(text)
	if err != nil || !validMessage(m) {
		_ = s.h.opts.Guard.ChargeRefused(s.ctx) // the socket closes either way
		s.shut(closeBadRequest, "Invalid message")
		return false
	}
	switch m.kind {
	case "connection_init":
		return s.init(m)
	case "ping":
		return s.send(`{"type":"pong"}`)
	case "subscribe":
		return s.subscribe(m)
	case "complete":
		s.complete(m.id)
	}
	return true
}

// validMessage checks type, id and payload against the protocol.
func validMessage(m message) bool {
	_, isObject := m.payload.(map[string]any)
	switch m.kind {
	case "connection_init", "ping", "pong":
		return isObject || m.payload == nil
	case "subscribe":
		return isObject && validID(m.id)
	case "complete":
		return validID(m.id)
	}
	return false
}

func validID(id string) bool { return id != "" && len(id) <= maxSocketIDLength }

// init handles connection_init: it authenticates the caller and checks the number of its
// sockets.
func (s *socket) init(m message) bool {
	if s.acked {
		s.shut(closeTooMany, "Too many initialisation requests")
		return false
	}
	header, ok := s.authorization(m)
	if !ok {
		s.shut(closeBadRequest, "Invalid message")
		return false
	}
	s.headers.Del("Authorization")
	s.speak(m)
	caller, err := s.h.authenticate(s.ctx, header) // the init timeout ends ctx
	switch {
	case err != nil && !forbids(err):
		s.shut(closeServiceRestart, "Try again") // the token may be valid: the service that verifies it is unreachable
		return false
	case err != nil:
		s.shut(closeForbidden, reasonForbidden)
		return false
	case !caller.ExpiresAt.IsZero() && !caller.ExpiresAt.After(time.Now()):
		s.shut(closeForbidden, reasonForbidden)
		return false
	}
	sockets := s.h.opts.Sockets
	isSocket := func(m member) bool { _, ok := m.(*socket); return ok }
	if !sockets.claim(s, caller, sockets.opts.MaxPerUser, isSocket) {
		s.shut(closeTryLater, reasonTooManySockets)
		return false
	}
	s.caller, s.acked = caller, true
	return s.ack()
}

// ack sends connection_ack and starts the pings.
func (s *socket) ack() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.clock.Stop() {
		return true // the init timeout has fired already and closes the socket
	}
	s.clock = time.AfterFunc(s.h.opts.Sockets.opts.PingEvery, s.ping)
	if !s.caller.ExpiresAt.IsZero() {
		s.expiry = time.AfterFunc(time.Until(s.caller.ExpiresAt), func() { s.shut(closeForbidden, reasonTokenExpired) })
	}
	return s.write(append(header[:], `{"type":"connection_ack"}`...))
}

// authorization returns the bearer token from the payload, else from the upgrade request,
// for clients that can set headers.
func (s *socket) authorization(m message) (header string, ok bool) {
	payload, _ := m.payload.(map[string]any)
	for key, v := range payload {
		if strings.EqualFold(key, "authorization") && v != nil {
			header, ok = v.(string)
			return header, ok
		}
	}
	return s.headers.Get("Authorization"), true
}

// maxLanguage bounds the language preference of a socket, in bytes.
const maxLanguage = 128

// speak reads the language from the payload: browsers cannot set headers of an upgrade
// request, and users can choose another language than the browser's.
func (s *socket) speak(m message) {
	payload, _ := m.payload.(map[string]any)
	for key, v := range payload {
		if language, ok := v.(string); ok && strings.EqualFold(key, "accept-language") && len(language) <= maxLanguage {
			if s.headers == nil {
				s.headers = http.Header{}
			}
			s.headers.Set("Accept-Language", language)
		}
	}
}

// subscribe starts a stream.
func (s *socket) subscribe(m message) bool {
	if !s.acked {
		s.shut(closeUnauthorized, "Unauthorized")
		return false
	}
	params, err := requestOf(m.payload.(map[string]any))
	if err != nil {
		s.shut(closeBadRequest, "Invalid message")
		return false
	}
	params.Headers = s.headers
	st := newSocketStream(s, m.id)
	s.mu.Lock()
	taken := s.find(m.id) != nil
	full := len(s.streams) >= s.h.opts.Sockets.opts.MaxStreams
	closing := s.closing
	if !taken && !full && !closing {
		s.streams = append(s.streams, st)
		s.running.Add(1)
	}
	s.mu.Unlock()
	switch {
	case closing:
		st.cancel()
		return false
	case taken:
		st.cancel()
		s.shut(closeDuplicateID, "Subscriber for "+printable(m.id)+" already exists")
		return false
	case full:
		st.refuse(fault.New(fault.RateLimited, "Too many streams on one socket."))
		return true
	}
	go st.run(params)
	return true
}

// printable returns an id in a form that a close reason may contain.
func printable(id string) string {
	const most = 36 // a UUID; the whole reason has 123 bytes
	if len(id) > most {
		return "this id"
	}
	for _, c := range []byte(id) {
		if c < ' ' || c > '~' {
			return "this id"
		}
	}
	return id
}

// requestOf reads the payload of a subscribe message.
func requestOf(payload map[string]any) (*graphql.RawParams, error) {
	p := &graphql.RawParams{}
	var documentID string
	for key, v := range payload {
		if bad := assign(p, key, v, &documentID); bad != nil {
			return nil, bad
		}
	}
	return p, complete(p, documentID, payload["query"] != nil)
}

// complete ends a stream on request of the client. It sends no reply and frees the id at
// once.
func (s *socket) complete(id string) {
	s.mu.Lock()
	st := s.find(id)
	if st != nil {
		s.forget(st)
	}
	s.mu.Unlock()
	if st != nil {
		st.cancel()
	}
}

// find returns the stream with an id, or nil. mu is held.
func (s *socket) find(id string) *socketStream {
	for _, st := range s.streams {
		if st.id == id {
			return st
		}
	}
	return nil
}

// forget ends a stream and frees its id. mu is held.
func (s *socket) forget(st *socketStream) {
	st.over = true
	if i := slices.Index(s.streams, st); i >= 0 {
		s.streams = slices.Delete(s.streams, i, i+1)
		s.running.Add(-1)
	}
}
