package drill

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
)

// maxBody bounds the response to one operation, in bytes.
const maxBody = 1 << 20

// client executes operations of one buyer over HTTP and WebSocket.
type client struct {
	url     string       // of the server, without a trailing slash
	http    *http.Client // of queries and mutations
	sockets *http.Client // of WebSockets
	from    string       // client address that is sent as X-Forwarded-For
	token   string       // access token; "" before the sign-in
}

type object = map[string]any

// refused is a response with an error code.
type refused struct {
	code, message string
	retryAfter    time.Duration
}

func (r *refused) Error() string { return r.code + ": " + r.message }

// codeOf returns the code of a refusal, "" for other errors and nil.
func codeOf(err error) string {
	if r, ok := errors.AsType[*refused](err); ok {
		return r.code
	}
	return ""
}

// mutate executes a mutation with one input and decodes its payload. The first user error
// is returned as *refused.
func (c *client) mutate(ctx context.Context, payload any, name, selection string, input object) error {
	document := fmt.Sprintf("mutation($input: %s%sInput!) { payload: %s(input: $input) { %s userErrors { code message ... on RateLimitedError { retryAfterMs } } } }",
		strings.ToUpper(name[:1]), name[1:], name, selection)
	var data struct{ Payload json.RawMessage }
	if err := c.execute(ctx, &data, document, object{"input": input}); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var outcome struct {
		UserErrors []struct {
			Code, Message string
			RetryAfterMs  int
		}
	}
	if err := json.Unmarshal(data.Payload, &outcome); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	if len(outcome.UserErrors) > 0 {
		e := outcome.UserErrors[0]
		return fmt.Errorf("%s: %w", name, &refused{e.Code, e.Message, time.Duration(e.RetryAfterMs) * time.Millisecond})
	}
	return json.Unmarshal(data.Payload, payload)
}

// execute posts an operation and decodes its data. The first error of the response is
// returned as *refused.
func (c *client) execute(ctx context.Context, data any, document string, variables object) error {
	body, err := json.Marshal(object{"query": document, "variables": variables})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/graphql", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header = c.header()
	request.Header.Set("Content-Type", "application/json")
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // read whole
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return err
	}
	var answer struct {
		Data   json.RawMessage
		Errors []struct {
			Message    string
			Extensions struct {
				Code         string
				RetryAfterMs int
			}
		}
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return fmt.Errorf("status %s: %w", response.Status, err)
	}
	if len(answer.Errors) > 0 {
		e := answer.Errors[0]
		return &refused{e.Extensions.Code, e.Message, time.Duration(e.Extensions.RetryAfterMs) * time.Millisecond}
	}
	return json.Unmarshal(answer.Data, data)
}

func (c *client) header() http.Header {
	h := http.Header{}
	if c.token != "" {
		h.Set("Authorization", "Bearer "+c.token)
	}
	if c.from != "" {
		h.Set("X-Forwarded-For", c.from)
	}
	return h
}

// subscribe passes the data of each event of a subscription to a function until that
// returns true. It returns an error when the connection or the stream ends before.
func (c *client) subscribe(ctx context.Context, document string, variables object, each func(json.RawMessage) (done bool, err error)) error {
	options := &websocket.DialOptions{HTTPClient: c.sockets, HTTPHeader: c.header(), Subprotocols: []string{"graphql-transport-ws"}}
	socket, _, err := websocket.Dial(ctx, strings.Replace(c.url, "http", "ws", 1)+"/graphql", options) //nolint:bodyclose // the socket owns the connection
	if err != nil {
		return err
	}
	defer func() { _ = socket.CloseNow() }() // the outcome is known
	socket.SetReadLimit(maxBody)
	if err := wsjson.Write(ctx, socket, object{"type": "connection_init", "payload": object{"authorization": "Bearer " + c.token}}); err != nil {
		return err
	}
	for {
		var message struct {
			Type    string
			Payload json.RawMessage
		}
		if err := wsjson.Read(ctx, socket, &message); err != nil {
			return err
		}
		done := false
		switch message.Type {
		case "connection_ack":
			err = wsjson.Write(ctx, socket, object{"id": "1", "type": "subscribe", "payload": object{"query": document, "variables": variables}})
		case "ping":
			err = wsjson.Write(ctx, socket, object{"type": "pong"})
		case "next":
			var event struct{ Data json.RawMessage }
			if err = json.Unmarshal(message.Payload, &event); err == nil {
				done, err = each(event.Data)
			}
		case "error":
			err = fmt.Errorf("subscription: %s", message.Payload)
		case "complete":
			err = errors.New("subscription: it ended without a result")
		}
		if err != nil || done {
			return err
		}
	}
}
