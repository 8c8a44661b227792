package transport

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

func TestDeadlineBehavesLikeWithTimeout(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		type key struct{}
		parent, cancelParent := context.WithCancel(context.WithValue(t.Context(), key{}, "v"))
		defer cancelParent()
		for _, waited := range []bool{false, true} {
			ctx, cancel := limit(parent, time.Second)
			if waited {
				_ = ctx.Done()
			}
			if at, ok := ctx.Deadline(); !ok || time.Until(at) != time.Second || ctx.Err() != nil || ctx.Value(key{}) != "v" {
				t.Errorf("fresh: %v %v", at, ctx.Err())
			}
			child, cancelChild := context.WithCancel(ctx)
			<-time.After(2 * time.Second) // fake clock of synctest
			if !errors.Is(ctx.Err(), context.DeadlineExceeded) {
				t.Errorf("after the deadline: %v", ctx.Err())
			}
			<-child.Done()
			if !errors.Is(child.Err(), context.DeadlineExceeded) {
				t.Errorf("child: %v", child.Err())
			}
			cancelChild()
			cancel()

			ctx, cancel = limit(parent, time.Second)
			if waited {
				_ = ctx.Done()
			}
			cancel()
			<-ctx.Done()
			if !errors.Is(ctx.Err(), context.Canceled) {
				t.Errorf("cancelled: %v", ctx.Err())
			}
		}
		sooner, cancelSooner := context.WithTimeout(parent, time.Millisecond)
		defer cancelSooner()
		ctx, cancel := limit(sooner, time.Second)
		defer cancel()
		if at, _ := ctx.Deadline(); time.Until(at) != time.Millisecond {
			t.Error("a sooner deadline of the parent is lost")
		}
		ctx, cancel = limit(parent, time.Second)
		defer cancel()
		cancelParent()
		if !errors.Is(ctx.Err(), context.Canceled) {
			t.Errorf("parent cancelled: %v", ctx.Err())
		}
		<-ctx.Done()
	})
}

func limit(parent context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx := withDeadline(parent, d)
	return ctx, ctx.cancel
}
