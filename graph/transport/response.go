package transport

import (
	"encoding/json"
	"mime"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"seckill/graph/guard"
	"seckill/internal/platform/fault"
)

// mediaType is the media type of a response, as defined in the GraphQL-over-HTTP draft.
// They differ in the status of a request that was refused before it ran: 200 with JSON,
// which old clients expect, 4xx and 5xx with GraphQLResponse.
type mediaType int

const (
	jsonType mediaType = iota
	graphqlResponse
	eventStreamType
)

// contentTypes are shared header values: net/http does not write to them.
var contentTypes = [...][]string{
	jsonType:        {"application/json; charset=utf-8"},
	graphqlResponse: {"application/graphql-response+json; charset=utf-8"},
	eventStreamType: {"text/event-stream; charset=utf-8"},
}

var noStore = []string{"no-store"}

// accepted returns the media type that the client prefers, the first of equal ones;
// application/json when the header is empty or names no known type.
func accepted(accept string) mediaType {
	switch accept {
	case "", "*/*", "application/json":
		return jsonType
	case "application/graphql-response+json":
		return graphqlResponse
	case "text/event-stream":
		return eventStreamType
	}
	best, bestQ := jsonType, 0.0
	for part := range strings.SplitSeq(accept, ",") {
		name, params, err := mime.ParseMediaType(part)
		if err != nil {
			continue
		}
		q := 1.0
		if text, ok := params["q"]; ok {
			if q, err = strconv.ParseFloat(text, 64); err != nil {
				continue
			}
		}
		kind := jsonType
		switch name {
		case "application/graphql-response+json":
			kind = graphqlResponse
		case "text/event-stream":
			kind = eventStreamType
		case "application/json", "application/*", "*/*":
		default:
			continue
		}
		if q > bestQ {
			best, bestQ = kind, q
		}
	}
	return best
}

var buffers = sync.Pool{New: func() any {
	b := make([]byte, 0, 2048)
	return &b
}}

const maxKeptBuffer = 64 << 10 // bytes; larger responses are rare and not pooled

func keepBuffer(b *[]byte) {
	if cap(*b) <= maxKeptBuffer {
		buffers.Put(b)
	}
}

// reply is a response and its cost; nil where the cost is not reported.
type reply struct {
	*graphql.Response
	cost *guard.Cost
}

// appendReply appends a response as JSON. Data is JSON already and copied unchanged. A
// response without data has no "data" member: the request was refused before it ran.
func appendReply(b []byte, r reply) []byte {
	b = append(b, '{')
	comma := false
	if len(r.Errors) > 0 {
		b = append(b, `"errors":`...)
		b = appendJSON(b, r.Errors)
		comma = true
	}
	if r.Data != nil {
		if comma {
			b = append(b, ',')
		}
		b = append(b, `"data":`...)
		b = append(b, r.Data...)
		comma = true
	}
	if len(r.Extensions) > 0 || r.cost != nil {
		if comma {
			b = append(b, ',')
		}
		b = append(b, `"extensions":`...)
		b = appendExtensions(b, r)
	}
	return append(b, '}')
}

func appendExtensions(b []byte, r reply) []byte {
	b = append(b, '{')
	if r.cost != nil {
		b = append(b, `"cost":`...)
		b = r.cost.AppendJSON(b)
	}
	for key, v := range r.Extensions {
		if b[len(b)-1] != '{' {
			b = append(b, ',')
		}
		b = appendJSON(b, key)
		b = append(b, ':')
		b = appendJSON(b, v)
	}
	return append(b, '}')
}

func appendJSON(b []byte, v any) []byte {
	text, err := json.Marshal(v)
	if err != nil {
		return append(b, "null"...)
	}
	return append(b, text...)
}

// lengths are header values of short responses, made at their first use and shared:
// net/http does not write to them.
var lengths [2048]atomic.Pointer[[]string]

// lengthHeader returns the value of a Content-Length header.
func lengthHeader(n int) []string {
	if n >= len(lengths) {
		return []string{strconv.Itoa(n)}
	}
	if known := lengths[n].Load(); known != nil {
		return *known
	}
	value := []string{strconv.Itoa(n)}
	lengths[n].Store(&value)
	return value
}

// writeResponse answers a request. A nil response means that the client disconnected.
func writeResponse(w http.ResponseWriter, kind mediaType, status int, resp *graphql.Response) {
	writeReply(w, kind, status, reply{Response: resp})
}

func writeReply(w http.ResponseWriter, kind mediaType, status int, r reply) {
	if r.Response == nil {
		return
	}
	buf := buffers.Get().(*[]byte)
	defer keepBuffer(buf)
	*buf = appendReply((*buf)[:0], r)
	if kind == eventStreamType {
		kind = graphqlResponse // refused before the stream began
	}
	h := w.Header()
	h["Content-Type"] = contentTypes[kind]
	h["Cache-Control"] = noStore
	h["Content-Length"] = lengthHeader(len(*buf))
	w.WriteHeader(status)
	_, _ = w.Write(*buf) // the client may have disconnected
}

// statusOf returns the status of a response: 200 once an operation ran.
func statusOf(kind mediaType, resp *graphql.Response) int {
	if resp == nil || resp.Data != nil || kind == jsonType || len(resp.Errors) == 0 {
		return http.StatusOK
	}
	return statusOfCode(codeOf(resp.Errors[0]))
}

func codeOf(err *gqlerror.Error) string {
	code, _ := err.Extensions["code"].(string)
	return code
}

func statusOfCode(code string) int {
	switch fault.Code(code) {
	case fault.Unauthenticated:
		return http.StatusUnauthorized
	case fault.Forbidden:
		return http.StatusForbidden
	case fault.RateLimited:
		return http.StatusTooManyRequests
	case fault.Overloaded, fault.Unavailable, fault.Timeout:
		return http.StatusServiceUnavailable
	case fault.Internal:
		return http.StatusInternalServerError
	default:
		return http.StatusBadRequest
	}
}
