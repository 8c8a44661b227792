package drill

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"
)

// dialer keeps the connections of the buyers, so that a fault can close them.
type dialer struct {
	mu         sync.Mutex
	open       map[*trackedConn]struct{} // guarded by mu
	transports []*http.Transport
}

type trackedConn struct {
	net.Conn
	dialer *dialer
}

// Close closes the connection.
func (c *trackedConn) Close() error {
	c.dialer.mu.Lock()
	delete(c.dialer.open, c)
	c.dialer.mu.Unlock()
	return c.Conn.Close()
}

// transport returns a transport with at most limit connections; 0 = any number.
func (d *dialer) transport(limit int) *http.Transport {
	t := &http.Transport{DialContext: d.dial, MaxConnsPerHost: limit, MaxIdleConnsPerHost: connections}
	d.transports = append(d.transports, t)
	return t
}

func (d *dialer) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: callTimeout}).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	tracked := &trackedConn{conn, d}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.open == nil {
		d.open = map[*trackedConn]struct{}{}
	}
	d.open[tracked] = struct{}{}
	return tracked, nil
}

// cut closes half of the connections.
func (d *dialer) cut(context.Context) error {
	d.mu.Lock()
	var chosen []*trackedConn
	for conn := range d.open { // in random order
		if len(chosen) >= (len(d.open)+1)/2 {
			break
		}
		chosen = append(chosen, conn)
	}
	d.mu.Unlock()
	for _, conn := range chosen {
		_ = conn.Close() // the buyer may have closed it
	}
	return nil
}

func (d *dialer) close() {
	for _, t := range d.transports {
		t.CloseIdleConnections()
	}
}

// injected says what injectAll did.
type injected struct {
	counts map[string]int // by kind
	last   time.Time      // when the last fault was over
	err    error
}

// injectAll injects the faults in turn for FaultFor, or until stop is called.
func injectAll(ctx context.Context, c Config, show *display) (stop func() injected) {
	ctx, cancel := context.WithTimeout(ctx, c.FaultFor)
	done := injected{counts: map[string]int{}}
	var wg sync.WaitGroup
	if len(c.Faults) > 0 {
		wg.Go(func() {
			tick := time.NewTicker(c.FaultEvery)
			defer tick.Stop()
			for i := 0; ; i++ {
				f := c.Faults[i%len(c.Faults)]
				// A fault that has begun is completed: a killed worker is started again.
				if err := f.Inject(context.WithoutCancel(ctx)); err != nil {
					done.err = fmt.Errorf("fault %s: %w", f.Name, err)
					return
				}
				done.counts[f.Name]++
				done.last = time.Now()
				show.fault(f.Name)
				select {
				case <-ctx.Done():
					return
				case <-tick.C:
				}
			}
		})
	}
	return func() injected {
		cancel()
		wg.Wait()
		return done
	}
}
