package transport

import (
	"errors"
	"net/http"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"

	"seckill/internal/fault"
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

// handle acts on one message. It reports whether the socket goes on.
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

// init answers connection_init: who is it, and may they have another socket.
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
	caller, err := s.h.authenticate(s.ctx, header) // the init time-out ends ctx
	switch {
	case err != nil && !forbids(err):
		s.shut(closeServiceRestart, "Try again") // the token may be good: who could tell is away
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
		s.shut(closeTooMany, reasonTooManySockets)
		return false
	}
	s.caller, s.acked = caller, true
	return s.ack()
}

// ack starts the life of the socket.
func (s *socket) ack() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.clock.Stop() {
		return true // the init time-out fired already and closes
	}
	s.clock = time.AfterFunc(s.h.opts.Sockets.opts.PingEvery, s.ping)
	if !s.caller.ExpiresAt.IsZero() {
		s.expiry = time.AfterFunc(time.Until(s.caller.ExpiresAt), func() { s.shut(closeForbidden, reasonTokenExpired) })
	}
	return s.write(append(header[:], `{"type":"connection_ack"}`...))
}

// authorization finds the bearer token: in the payload, else in the upgrade
// request, for clients that can set headers.
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

// maxLanguage bounds the languages that a socket may ask for, in bytes.
const maxLanguage = 128

// speak takes the language from the payload, where it says one: browsers cannot
// set the header of an upgrade request, and people choose another than theirs.
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
	st := newStream(s, m.id)
	s.mu.Lock()
	taken := s.find(m.id) != nil
	full := len(s.streams) >= s.h.opts.Sockets.opts.MaxStreams
	closing := s.closing
	if !taken && !full && !closing {
		s.streams = append(s.streams, st)
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

// printable is an id as a close reason may hold it.
func printable(id string) string {
	const most = 36 // a UUID; the reason has 123 bytes in all
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

// complete ends a stream because the client asks for it. Nothing is answered,
// and the id is free at once.
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

// find returns the stream with an id, nil when there is none. mu is held.
func (s *socket) find(id string) *stream {
	for _, st := range s.streams {
		if st.id == id {
			return st
		}
	}
	return nil
}

// forget ends a stream and frees its id. mu is held.
func (s *socket) forget(st *stream) {
	st.over = true
	if i := slices.Index(s.streams, st); i >= 0 {
		s.streams = slices.Delete(s.streams, i, i+1)
	}
}
