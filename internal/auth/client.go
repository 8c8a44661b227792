package auth

import (
	"context"
	"net/netip"
)

type clientKey struct{}

// withClient is a request's context with the client address. It costs one allocation,
// context.WithValue two.
type withClient struct {
	context.Context
	addr netip.Addr
}

// Value returns the address, or the parent's value.
func (c *withClient) Value(key any) any {
	if _, ok := key.(clientKey); ok {
		return &c.addr
	}
	return c.Context.Value(key)
}

// WithClientAddr returns a context that carries the address of a request's client.
func WithClientAddr(ctx context.Context, addr netip.Addr) context.Context {
	return &withClient{ctx, addr}
}

// ClientAddr returns the client address of a request, invalid outside of a request.
func ClientAddr(ctx context.Context) netip.Addr {
	addr, _ := ctx.Value(clientKey{}).(*netip.Addr)
	if addr == nil {
		return netip.Addr{}
	}
	return *addr
}
