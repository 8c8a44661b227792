// Package apiclient executes operations of one user over HTTP and WebSocket, as a program of a stranger
// does: it knows the public API only. Drills and tests of whole servers use it.
//
// It retries nothing and reads no sale: what to do about a refusal is the decision of the caller.
// test/bench sends prepared bytes instead, because there the client must cost next to nothing.
package apiclient

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

	"seckill/internal/platform/captcha"
)

// maxBody bounds the response to one operation, in bytes.
const maxBody = 1 << 20

// Client executes operations of one user.
type Client struct {
	URL     string       // of the server, without a trailing slash
	HTTP    *http.Client // of queries and mutations
	Sockets *http.Client // of WebSockets; nil = HTTP
	From    string       // client address that is sent as X-Forwarded-For; "" = none
	Token   string       // access token; "" before the sign-in
}

// Object is a JSON object.
type Object = map[string]any

// Answer is a response to an operation.
type Answer struct {
	Data   json.RawMessage
	Errors []struct {
		Message    string
		Path       []any
		Extensions struct {
			Code         string
			RetryAfterMs int
		}
	}
}

// Refused is an answer with an error code.
type Refused struct {
	Code, Message string
	RetryAfter    time.Duration // 0 = not stated
}

func (r *Refused) Error() string { return r.Code + ": " + r.Message }

// Code returns the code of a refusal, "" for other errors and nil.
func Code(err error) string {
	if r, ok := errors.AsType[*Refused](err); ok {
		return r.Code
	}
	return ""
}

// Mutate executes a mutation with one input and decodes its payload. The first user error
// is returned as *Refused.
func (c *Client) Mutate(ctx context.Context, payload any, name, selection string, input Object) error {
	document := fmt.Sprintf("mutation($input: %s%sInput!) { payload: %s(input: $input) { %s userErrors { code message ... on RateLimitedError { retryAfterMs } } } }",
		strings.ToUpper(name[:1]), name[1:], name, selection)
	var data struct{ Payload json.RawMessage }
	if err := c.Execute(ctx, &data, document, Object{"input": input}); err != nil {
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
		return fmt.Errorf("%s: %w", name, &Refused{e.Code, e.Message, time.Duration(e.RetryAfterMs) * time.Millisecond})
	}
	return json.Unmarshal(data.Payload, payload)
}

// Execute posts an operation and decodes its data. The first error of the answer is returned
// as *Refused.
func (c *Client) Execute(ctx context.Context, data any, document string, variables Object) error {
	answer, err := c.Post(ctx, document, variables)
	if err != nil {
		return err
	}
	if len(answer.Errors) > 0 {
		e := answer.Errors[0]
		return &Refused{e.Extensions.Code, e.Message, time.Duration(e.Extensions.RetryAfterMs) * time.Millisecond}
	}
	return json.Unmarshal(answer.Data, data)
}

// Post posts an operation and returns the answer.
func (c *Client) Post(ctx context.Context, document string, variables Object) (answer Answer, err error) {
	body, err := json.Marshal(Object{"query": document, "variables": variables})
	if err != nil {
		return answer, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.URL+"/graphql", bytes.NewReader(body))
	if err != nil {
		return answer, err
	}
	request.Header = c.header()
	request.Header.Set("Content-Type", "application/json")
	if c.Token != "" {
		request.Header.Set("Authorization", "Bearer "+c.Token)
	}
	response, err := c.HTTP.Do(request)
	if err != nil {
		return answer, err
	}
	defer func() { _ = response.Body.Close() }() // read whole
	text, err := io.ReadAll(io.LimitReader(response.Body, maxBody))
	if err != nil {
		return answer, err
	}
	if err := json.Unmarshal(text, &answer); err != nil {
		return answer, fmt.Errorf("status %s: %.200s: %w", response.Status, text, err)
	}
	return answer, nil
}

func (c *Client) header() http.Header {
	if c.From == "" {
		return http.Header{}
	}
	return http.Header{"X-Forwarded-For": {c.From}}
}

// Login returns the access token of an account.
func (c *Client) Login(ctx context.Context, account, password string) (token string, err error) {
	var payload struct{ Tokens struct{ AccessToken string } }
	err = c.Mutate(ctx, &payload, "login", "tokens { accessToken }", Object{"account": account, "password": password})
	return payload.Tokens.AccessToken, err
}

// Challenge is a proof of work.
type Challenge struct{ ID, Parameters string }

// Challenge asks for a proof of work for a purpose in a sale: SECKILL or WAITLIST.
func (c *Client) Challenge(ctx context.Context, purpose, sale string) (Challenge, error) {
	var payload struct{ Challenge Challenge }
	err := c.Mutate(ctx, &payload, "createCaptcha", "challenge { id parameters }",
		Object{"purpose": purpose, "saleId": sale, "kind": "PROOF_OF_WORK"})
	return payload.Challenge, err
}

// Solve returns the input that answers a challenge.
func (c Challenge) Solve() (Object, error) {
	answer, err := captcha.Solve(c.Parameters)
	return Object{"challengeId": c.ID, "answer": answer}, err
}

// Issued is the answer to a solved challenge: one of the two.
type Issued struct {
	Path   *struct{ Token string }
	Ticket *struct{ ID string } // of a place in the waiting room
}

// IssuePath exchanges a solved challenge for a path token of an item.
func (c *Client) IssuePath(ctx context.Context, item string, solved Object) (Issued, error) {
	var payload Issued
	err := c.Mutate(ctx, &payload, "issueSeckillPath", "path { token } ticket { id }",
		Object{"itemId": item, "captcha": solved})
	return payload, err
}

// PlaceOrder returns the order task of one unit. A repetition with the same key returns the
// same task.
func (c *Client) PlaceOrder(ctx context.Context, item, path, key string) (task string, err error) {
	var payload struct{ OrderTask struct{ ID string } }
	err = c.Mutate(ctx, &payload, "placeOrder", "orderTask { id }",
		Object{"itemId": item, "pathToken": path, "idempotencyKey": key})
	return payload.OrderTask.ID, err
}
