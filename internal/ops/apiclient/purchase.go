package apiclient

import (
	"context"

	"seckill/internal/platform/captcha"
)

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
