package stream

import (
	"testing"
	"time"
)

func TestStoppingARouterFinishesWhatIsInFlight(t *testing.T) {
	t.Parallel()
	onBoth(t, func(t *testing.T, r *rig) {
		r.publish(0, 50)
		entered, release := make(chan struct{}, 50), make(chan struct{})
		_, stop := r.route(func(msg *Message) error {
			entered <- struct{}{}
			<-release
			return r.effect(msg)
		}, func(c *RouterConfig) { c.HandlerTimeout = time.Minute })
		for range 50 {
			<-entered
		}
		stopped := make(chan struct{})
		go func() { stop(); close(stopped) }()
		select {
		case <-stopped:
			t.Fatal("stopped with messages in flight")
		case <-time.After(200 * time.Millisecond):
		}
		close(release)
		<-stopped
		if distinct, _, repeats := r.effects(); distinct != 50 || repeats != 0 {
			t.Errorf("%d messages, %d repeats", distinct, repeats)
		}
		if s := r.stats(); s.Pending != 0 || s.Unread != 0 {
			t.Errorf("left: %+v", s)
		}
	})
}
