package apiclient

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
)

// Frame is a message of graphql-transport-ws.
type Frame struct {
	ID      string          `json:"id,omitempty"`
	Type    string          `json:"type"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// Socket is a graphql-transport-ws connection.
type Socket struct{ *websocket.Conn }

// Dial opens a socket and signs in with a frame, as browsers do, which set no headers. The error of a
// refused token has a websocket.CloseStatus.
func (c *Client) Dial(ctx context.Context) (*Socket, error) {
	with := c.Sockets
	if with == nil {
		with = c.HTTP
	}
	options := &websocket.DialOptions{HTTPClient: with, HTTPHeader: c.header(),
		Subprotocols: []string{"graphql-transport-ws"}}
	conn, _, err := websocket.Dial(ctx, strings.Replace(c.URL, "http", "ws", 1)+"/graphql", options) //nolint:bodyclose // the socket owns the connection
	if err != nil {
		return nil, err
	}
	conn.SetReadLimit(maxBody)
	s := &Socket{conn}
	login := Object{}
	if c.Token != "" {
		login["authorization"] = "Bearer " + c.Token
	}
	err = s.Send(ctx, "", "connection_init", login)
	var ack Frame
	if err == nil {
		ack, err = s.Next(ctx)
	}
	if err == nil && ack.Type != "connection_ack" {
		err = fmt.Errorf("the server answers connection_init with %s %s", ack.Type, ack.Payload)
	}
	if err != nil {
		_ = s.CloseNow() // the first error is returned
		return nil, err
	}
	return s, nil
}

// Send writes a frame; id is that of its operation, "" = none.
func (s *Socket) Send(ctx context.Context, id, kind string, payload Object) error {
	text, err := json.Marshal(payload)
	if err != nil {
		return err
	}
	return wsjson.Write(ctx, s.Conn, Frame{ID: id, Type: kind, Payload: text})
}

// Next returns the next frame that is no ping or pong. It answers pings: the server closes a
// socket that does not.
func (s *Socket) Next(ctx context.Context) (Frame, error) {
	for {
		var f Frame
		err := wsjson.Read(ctx, s.Conn, &f)
		if err == nil && f.Type == "ping" {
			err = wsjson.Write(ctx, s.Conn, Frame{Type: "pong"})
		}
		if err != nil || f.Type != "ping" && f.Type != "pong" {
			return f, err
		}
	}
}

// Subscribe passes the data of each event of a subscription to a function until that
// returns true. It returns an error when the connection or the stream ends before.
func (c *Client) Subscribe(ctx context.Context, document string, variables Object,
	each func(json.RawMessage) (done bool, err error)) error {
	s, err := c.Dial(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = s.CloseNow() }() // the outcome is known
	if err := s.Send(ctx, "1", "subscribe", Object{"query": document, "variables": variables}); err != nil {
		return err
	}
	for {
		f, err := s.Next(ctx)
		if err != nil {
			return err
		}
		done := false
		switch f.Type {
		case "next":
			var event Answer
			if err = json.Unmarshal(f.Payload, &event); err == nil {
				done, err = each(event.Data)
			}
		case "error":
			err = fmt.Errorf("subscription: %s", f.Payload)
		case "complete":
			err = errors.New("subscription: it ended without a result")
		}
		if err != nil || done {
			return err
		}
	}
}
