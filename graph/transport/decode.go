package transport

import (
	"errors"
	"io"
	"net/http"
	"net/url"
	"sync"
	"unicode/utf8"

	"github.com/99designs/gqlgen/graphql"
)

// badRequest is the error of a request that cannot be read. Its text is sent to the
// client and contains no client input.
type badRequest struct {
	status int
	reason string
}

func (e *badRequest) Error() string { return e.reason }

func malformed(reason string) *badRequest {
	return &badRequest{status: http.StatusBadRequest, reason: reason}
}

// decodeRequest reads {query, operationName, variables, extensions, documentId} in one
// pass. Other members are validated and dropped. A documentId is stored as the extension
// of that name, where the guard reads it.
func decodeRequest(text string) (*graphql.RawParams, error) {
	if !utf8.ValidString(text) {
		return nil, malformed("The request body is not UTF-8.")
	}
	s := &scanner{text: text}
	p := &graphql.RawParams{}
	if err := readRequest(s, p); err != nil {
		return nil, err
	}
	if err := s.end(); err != nil {
		return nil, malformed("The request body is not JSON.")
	}
	return p, nil
}

// readRequest reads the request object at the scanner's position into p.
func readRequest(s *scanner, p *graphql.RawParams) error {
	if s.peek() != '{' {
		if _, err := s.value(maxJSONDepth); err != nil {
			return notJSON(err)
		}
		return malformed("The request body must be a JSON object.")
	}
	var bad *badRequest
	var documentID string
	haveQuery := false
	err := s.members(func(key string) error {
		v, err := s.value(maxJSONDepth)
		if err != nil {
			return err
		}
		if b := assign(p, key, v, &documentID); b != nil && bad == nil {
			bad = b
		}
		haveQuery = haveQuery || key == "query" && v != nil
		return nil
	})
	switch {
	case err != nil:
		return notJSON(err)
	case bad != nil:
		return bad
	}
	return complete(p, documentID, haveQuery)
}

// notJSON converts an error of the scanner.
func notJSON(err error) *badRequest {
	if errors.Is(err, errJSONValues) {
		return malformed("The request body has too many values.")
	}
	return malformed("The request body is not JSON.")
}

// assign stores one member of the request in p.
func assign(p *graphql.RawParams, key string, v any, documentID *string) *badRequest {
	var ok bool
	switch key {
	case "query":
		p.Query, ok = v.(string)
	case "operationName":
		p.OperationName, ok = v.(string)
	case "documentId":
		*documentID, ok = v.(string)
	case "variables":
		p.Variables, ok = v.(map[string]any)
	case "extensions":
		p.Extensions, ok = v.(map[string]any)
	default:
		return nil
	}
	switch {
	case ok || v == nil:
		return nil
	case key == "variables" || key == "extensions":
		return malformed("The member " + key + " must be an object.")
	default:
		return malformed("The member " + key + " must be a string.")
	}
}

// complete checks that the request has a document or a document id.
func complete(p *graphql.RawParams, documentID string, haveQuery bool) error {
	if documentID != "" {
		if p.Extensions == nil {
			p.Extensions = make(map[string]any, 1)
		}
		p.Extensions["documentId"] = documentID
		return nil
	}
	if !haveQuery && p.Extensions["persistedQuery"] == nil {
		return malformed("The member query is missing.")
	}
	return nil
}

// decodeQueryString reads a request from a URL query string.
func decodeQueryString(raw string) (*graphql.RawParams, error) {
	values, err := url.ParseQuery(raw)
	if err != nil {
		return nil, malformed("The query string is malformed.")
	}
	p := &graphql.RawParams{Query: values.Get("query"), OperationName: values.Get("operationName")}
	for key, into := range map[string]*map[string]any{"variables": &p.Variables, "extensions": &p.Extensions} {
		text := values.Get(key)
		if text == "" {
			continue
		}
		s := &scanner{text: text}
		v, err := s.value(maxJSONDepth)
		if err != nil || s.end() != nil || !utf8.ValidString(text) {
			return nil, malformed("The parameter " + key + " is not JSON.")
		}
		m, ok := v.(map[string]any)
		if !ok && v != nil {
			return nil, malformed("The parameter " + key + " must be an object.")
		}
		*into = m
	}
	return p, complete(p, values.Get("documentId"), p.Query != "")
}

// bodies reads request bodies through pooled buffers, up to a limit.
type bodies struct {
	max  int64 // bytes
	pool sync.Pool
}

func newBodies(limit int64) *bodies {
	b := &bodies{max: limit}
	b.pool.New = func() any {
		buf := make([]byte, limit+1)
		return &buf
	}
	return b
}

// read returns the whole body as a string.
func (b *bodies) read(r *http.Request) (string, error) {
	if r.ContentLength > b.max {
		return "", b.tooLarge()
	}
	buf := b.pool.Get().(*[]byte)
	defer b.pool.Put(buf)
	n, err := io.ReadFull(r.Body, *buf)
	switch {
	case err == nil || int64(n) > b.max:
		return "", b.tooLarge()
	case err == io.EOF || err == io.ErrUnexpectedEOF:
		return string((*buf)[:n]), nil
	}
	if _, ok := errors.AsType[*http.MaxBytesError](err); ok {
		return "", b.tooLarge()
	}
	return "", malformed("The request body could not be read.")
}
func (b *bodies) tooLarge() error {
	return &badRequest{status: http.StatusRequestEntityTooLarge, reason: "The request body is too large."}
}
