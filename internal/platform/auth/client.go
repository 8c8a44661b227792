package auth

import (
	"context"
	"net/netip"
)

type clientKey struct{}

// Client is the sender of a request.
type Client struct {
	Addr   netip.Addr
	Secure bool // its connection is encrypted
}

// withClient is a request's context with its client. It costs one allocation,
// context.WithValue two.
type withClient struct {
	context.Context
	client Client
}

// Value returns the client, or the parent's value.
func (c *withClient) Value(key any) any {
	if _, ok := key.(clientKey); ok {
		return &c.client
	}
	return c.Context.Value(key)
}

// WithClient returns a context that carries the client of a request.
func WithClient(ctx context.Context, c Client) context.Context { return &withClient{ctx, c} }

// ClientFrom returns the client of a request, the zero value outside of a request.
func ClientFrom(ctx context.Context) Client {
	c, _ := ctx.Value(clientKey{}).(*Client)
	if c == nil {
		return Client{}
	}
	return *c
}

// ClientAddr returns the client address of a request, invalid outside of a request.
func ClientAddr(ctx context.Context) netip.Addr { return ClientFrom(ctx).Addr }
