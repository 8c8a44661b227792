// Command go buys one unit of the first live sale over the public API, and follows the
// order task over a WebSocket (graphql-transport-ws). It shows what a service or a load
// test needs: no GraphQL library, only the standard library and a WebSocket package.
//
//	go run ./examples/go -url http://localhost:8080
package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"strings"
	"time"

	"github.com/coder/websocket"
	"github.com/coder/websocket/wsjson"
)

func main() {
	url := flag.String("url", "http://localhost:8080", "address of the shop")
	account := flag.String("account", "alice@demo.example", "account of the buyer")
	password := flag.String("password", "flash-sale-demo", "password of the buyer")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	c := &client{url: *url, http: &http.Client{Timeout: 10 * time.Second}, out: os.Stdout}
	if err := c.buy(ctx, *account, *password); err != nil {
		fmt.Fprintln(os.Stderr, "buy:", err)
		os.Exit(1)
	}
}

// client executes operations of one user.
type client struct {
	url   string
	http  *http.Client
	token string // access token, once signed in
	out   io.Writer
}

type object = map[string]any

// buy signs in, buys one unit of the first live sale, and prints the states of the task.
func (c *client) buy(ctx context.Context, account, password string) error {
	var signedIn struct{ Tokens struct{ AccessToken string } }
	err := c.mutate(ctx, &signedIn, "login", "tokens { accessToken }", object{"account": account, "password": password})
	if err != nil {
		return err
	}
	c.token = signedIn.Tokens.AccessToken
	saleID, itemID, err := c.liveItem(ctx)
	if err != nil {
		return err
	}
	var asked struct {
		Challenge struct{ ID, Parameters string }
	}
	err = c.mutate(ctx, &asked, "createCaptcha", "challenge { id parameters }",
		object{"purpose": "SECKILL", "saleId": saleID, "kind": "PROOF_OF_WORK"})
	if err != nil {
		return err
	}
	answer, err := solve(asked.Challenge.Parameters)
	if err != nil {
		return err
	}
	var issued struct{ Path *struct{ Token string } }
	err = c.mutate(ctx, &issued, "issueSeckillPath", "path { token }",
		object{"itemId": itemID, "captcha": object{"challengeId": asked.Challenge.ID, "answer": answer}})
	if err != nil {
		return err
	}
	if issued.Path == nil {
		return errors.New("the buyer is in the waiting room: follow queuePosition until it has the path token")
	}
	var placed struct{ OrderTask struct{ ID string } }
	err = c.mutate(ctx, &placed, "placeOrder", "orderTask { id }",
		object{"itemId": itemID, "pathToken": issued.Path.Token, "idempotencyKey": rand.Text()})
	if err != nil {
		return err
	}
	return c.follow(ctx, placed.OrderTask.ID)
}

// liveItem returns the first item of the first live sale.
func (c *client) liveItem(ctx context.Context) (saleID, itemID string, err error) {
	var list struct {
		Sales struct {
			Edges []struct {
				Node struct {
					ID, Phase string
					Items     []struct{ ID string }
				}
			}
		}
	}
	if err := c.execute(ctx, &list, `{ sales(first: 20) { edges { node { id phase items { id } } } } }`, nil); err != nil {
		return "", "", err
	}
	for _, edge := range list.Sales.Edges {
		if edge.Node.Phase == "LIVE" && len(edge.Node.Items) > 0 {
			return edge.Node.ID, edge.Node.Items[0].ID, nil
		}
	}
	return "", "", errors.New("no sale is live")
}

// mutate executes a mutation with one input; a user error becomes an error.
func (c *client) mutate(ctx context.Context, payload any, name, selection string, input object) error {
	query := fmt.Sprintf("mutation($input: %s%sInput!) { payload: %s(input: $input) { %s userErrors { code message } } }",
		strings.ToUpper(name[:1]), name[1:], name, selection)
	var data struct{ Payload json.RawMessage }
	if err := c.execute(ctx, &data, query, object{"input": input}); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	var refused struct {
		UserErrors []struct{ Code, Message string }
	}
	if err := json.Unmarshal(data.Payload, &refused); err != nil {
		return err
	}
	if len(refused.UserErrors) > 0 {
		return fmt.Errorf("%s: %s: %s", name, refused.UserErrors[0].Code, refused.UserErrors[0].Message)
	}
	return json.Unmarshal(data.Payload, payload)
}

// execute posts an operation and decodes its data.
func (c *client) execute(ctx context.Context, data any, query string, variables object) error {
	body, err := json.Marshal(object{"query": query, "variables": variables})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url+"/graphql", bytes.NewReader(body))
	if err != nil {
		return err
	}
	request.Header.Set("Content-Type", "application/json")
	if c.token != "" {
		request.Header.Set("Authorization", "Bearer "+c.token)
	}
	response, err := c.http.Do(request)
	if err != nil {
		return err
	}
	defer func() { _ = response.Body.Close() }() // only read from
	var answer struct {
		Data   json.RawMessage
		Errors []struct {
			Message    string
			Extensions struct{ Code string }
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&answer); err != nil {
		return fmt.Errorf("status %s: %w", response.Status, err)
	}
	if len(answer.Errors) > 0 {
		return fmt.Errorf("%s: %s", answer.Errors[0].Extensions.Code, answer.Errors[0].Message)
	}
	return json.Unmarshal(answer.Data, data)
}

// solve returns the number that solves a proof of work.
func solve(parameters string) (string, error) {
	var work struct {
		Salt, Challenge string
		MaxNumber       int
	}
	if err := json.Unmarshal([]byte(parameters), &work); err != nil {
		return "", err
	}
	for n := range work.MaxNumber + 1 {
		sum := sha256.Sum256([]byte(work.Salt + strconv.Itoa(n)))
		if hex.EncodeToString(sum[:]) == work.Challenge {
			return strconv.Itoa(n), nil
		}
	}
	return "", errors.New("the challenge has no solution")
}

// follow prints the states of an order task until the server completes the subscription.
func (c *client) follow(ctx context.Context, task string) error {
	socket, _, err := websocket.Dial(ctx, strings.Replace(c.url, "http", "ws", 1)+"/graphql", //nolint:bodyclose // the socket owns the connection
		&websocket.DialOptions{Subprotocols: []string{"graphql-transport-ws"}})
	if err != nil {
		return err
	}
	defer func() { _ = socket.CloseNow() }() // an earlier error is already returned
	send := func(message object) error { return wsjson.Write(ctx, socket, message) }
	if err := send(object{"type": "connection_init",
		"payload": object{"authorization": "Bearer " + c.token}}); err != nil {
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
		switch message.Type {
		case "connection_ack":
			query := `subscription($id: ID!) { orderTaskStatus(orderTaskId: $id) { kind orderTask { status order { number } failure { code } } } }`
			err = send(object{"id": "1", "type": "subscribe",
				"payload": object{"query": query, "variables": object{"id": task}}})
		case "ping":
			err = send(object{"type": "pong"})
		case "next":
			err = c.printState(message.Payload)
		case "error":
			err = fmt.Errorf("orderTaskStatus: %s", message.Payload)
		case "complete":
			return socket.Close(websocket.StatusNormalClosure, "")
		}
		if err != nil {
			return err
		}
	}
}

func (c *client) printState(payload []byte) error {
	var event struct {
		Data struct {
			OrderTaskStatus struct {
				Kind      string
				OrderTask struct {
					Status  string
					Order   *struct{ Number string }
					Failure *struct{ Code string }
				}
			}
		}
	}
	if err := json.Unmarshal(payload, &event); err != nil {
		return err
	}
	state := event.Data.OrderTaskStatus
	outcome := ""
	switch task := state.OrderTask; {
	case task.Order != nil:
		outcome = task.Order.Number
	case task.Failure != nil:
		outcome = task.Failure.Code
	}
	_, err := fmt.Fprintln(c.out, state.Kind, state.OrderTask.Status, outcome)
	return err
}
