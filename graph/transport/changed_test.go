package transport_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"seckill/graph/transport"
	"seckill/internal/platform/fault"
)

// fickle returns a server and a function after which Caller.Recheck fails for its callers.
func fickle(t *testing.T) (f *fixture, change func()) {
	t.Helper()
	var changed atomic.Bool
	f = setup(t, setupOptions{
		sockets: transport.SocketOptions{CheckEvery: 10 * time.Millisecond},
		transport: transport.Options{Authenticate: func(ctx context.Context, token string) (transport.Caller, error) {
			c, err := authenticate(ctx, token)
			if token == "user:boss" {
				c.Recheck = func(context.Context) error {
					if changed.Load() {
						return fault.New(fault.Forbidden, "Another role.")
					}
					return nil
				}
			}
			return c, err
		}},
	})
	return f, func() { changed.Store(true) }
}

func TestACallerWhoIsNoLongerWhoTheyWereLosesSocketsAndStreams(t *testing.T) {
	t.Parallel()
	f, change := fickle(t)
	mine, other := f.open("user:boss"), f.open("user:other")
	mine.subscribe("1", `subscription{idle}`)
	mine.expectPart(`{"idle":1}`)
	stream := f.events(`subscription{idle}`, header("Authorization", "Bearer user:boss"))
	stream.expect(`event: next|data: {"data":{"idle":1}}`)
	change()
	mine.expectClose(4403, "Forbidden")
	stream.expect("") // without "complete": the client reconnects and gets the error
	other.send(`{"type":"ping"}`)
	other.expect(`{"type":"pong"}`)
}

func TestStreamsStayOpenWhileTheirCallerCannotBeChecked(t *testing.T) {
	t.Parallel()
	asked := make(chan struct{}, 100)
	f := setup(t, setupOptions{
		sockets: transport.SocketOptions{CheckEvery: 10 * time.Millisecond},
		transport: transport.Options{Authenticate: func(ctx context.Context, token string) (transport.Caller, error) {
			c, err := authenticate(ctx, token)
			c.Recheck = func(context.Context) error {
				select {
				case asked <- struct{}{}:
				default:
				}
				return fault.New(fault.Unavailable, "Unknown.")
			}
			return c, err
		}},
	})
	mine := f.open("user:boss")
	for range 3 {
		<-asked
	}
	mine.send(`{"type":"ping"}`)
	mine.expect(`{"type":"pong"}`)
}
