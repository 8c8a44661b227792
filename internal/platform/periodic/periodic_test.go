package periodic_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"seckill/internal/platform/periodic"
)

func TestALoopRunsAtOnceThenInItsRhythmWhateverAStepDoes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		var at []time.Duration
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
		defer cancel()
		err := periodic.Loop{
			Name: "test", Every: time.Second, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Step: func(context.Context) (map[string]int, error) {
				at = append(at, time.Since(began))
				switch len(at) {
				case 1:
					panic("first")
				case 2:
					return nil, errors.New("second")
				case 3:
					return map[string]int{"done": 3, "nothing": 0}, nil
				}
				return nil, nil
			},
		}.Run(ctx)
		if err != nil {
			t.Errorf("the end of ctx is no failure: %v", err)
		}
		if len(at) < 4 || at[0] != 0 || at[1] < time.Second || at[1] > 1100*time.Millisecond {
			t.Errorf("steps at %v", at)
		}
		text := log.String()
		for _, want := range []string{"panic: first", "second", "done=3"} {
			if !strings.Contains(text, want) {
				t.Errorf("the log does not say %q", want)
			}
		}
		if strings.Contains(text, "nothing=") || strings.Count(text, "msg=") != 3 {
			t.Errorf("the log is not quiet when nothing happened:\n%s", text)
		}
	})
}

// In an outage the loops of all processes fail several times a second; the rest of the
// log must stay readable.
func TestAStepThatFailsAgainAndAgainIsLoggedNowAndThen(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		began, steps := time.Now(), 0
		ctx, cancel := context.WithTimeout(t.Context(), 61*time.Second)
		defer cancel()
		err := periodic.Loop{
			Name: "test", Every: 250 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&log, nil)),
			Step: func(context.Context) (map[string]int, error) {
				steps++
				if time.Since(began) < 45*time.Second {
					return nil, errors.New("away")
				}
				return nil, nil
			},
		}.Run(ctx)
		if err != nil {
			t.Error(err)
		}
		text := log.String()
		if logged := strings.Count(text, "error=away"); steps < 200 || logged < 4 || logged > 6 {
			t.Errorf("%d steps, logged %d times:\n%s", steps, logged, text)
		}
		if strings.Count(text, "works again") != 1 || !strings.Contains(text, "failed_meanwhile=") {
			t.Errorf("the log does not say how it went on:\n%s", text)
		}
	})
}

func TestALoopWithNothingToDoRestsAndIsInItsRhythmWhenThereIs(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		began, busy := time.Now(), false
		var at []time.Duration
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		err := periodic.Loop{
			Name: "test", Every: 100 * time.Millisecond, Idle: time.Second, Log: slog.New(slog.DiscardHandler),
			Busy: func() bool { return busy },
			Step: func(context.Context) (map[string]int, error) {
				now := time.Since(began)
				at = append(at, now)
				busy = now > 20*time.Second
				switch {
				case now > 10*time.Second && now < 12*time.Second:
					return map[string]int{"done": 1}, nil
				case now > 14*time.Second && now < 16*time.Second:
					return nil, errors.New("away")
				default:
					return map[string]int{"nothing": 0}, nil
				}
			},
		}.Run(ctx)
		if err != nil {
			t.Error(err)
		}
		count := func(from, to time.Duration) (n int) {
			for _, when := range at {
				if when >= from && when < to {
					n++
				}
			}
			return n
		}
		if n := count(0, time.Second); n < 3 || n > 5 {
			t.Errorf("%d steps in the first second, want 4: the pause doubles", n)
		}
		for _, rest := range [][2]time.Duration{{2 * time.Second, 10 * time.Second}, {17 * time.Second, 20 * time.Second}} {
			if n, seconds := count(rest[0], rest[1]), int((rest[1]-rest[0])/time.Second); n < seconds-2 || n > seconds+1 {
				t.Errorf("%d steps in %d s with nothing to do, want one a second", n, seconds)
			}
		}
		for name, rush := range map[string]time.Duration{"work": 11200 * time.Millisecond, "failures": 15200 * time.Millisecond, "waiting work": 22 * time.Second} {
			if n := count(rush, rush+300*time.Millisecond); n < 2 || n > 3 {
				t.Errorf("%d steps in 300 ms with %s, want 3", n, name)
			}
		}
	})
}

func TestAFailedStepIsRepeatedSooner(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		err := periodic.Loop{
			Name: "test", Every: 10 * time.Second, Retry: time.Second, Log: slog.New(slog.DiscardHandler),
			Step: func(context.Context) (map[string]int, error) {
				if at = append(at, time.Since(began)); len(at) < 3 {
					return nil, errors.New("away")
				}
				return nil, nil
			},
		}.Run(ctx)
		if err != nil || len(at) != 4 || at[2] > 2*1100*time.Millisecond || at[3] < 12*time.Second {
			t.Errorf("%v, steps at %v", err, at)
		}
	})
}

// A process that wakes for each of its loops needs several times the processor time of
// one that wakes once for all of them.
func TestIdleLoopsOfAProcessWakeTogether(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var mu sync.Mutex
		var loops sync.WaitGroup
		rested := time.Now().Add(20 * time.Second)
		wakes := map[time.Time]bool{} // guarded by mu
		steps := 0                    // guarded by mu
		for i, every := range []time.Duration{100 * time.Millisecond, 250 * time.Millisecond, time.Second, 2 * time.Second} {
			l := periodic.Loop{
				Name: "test", Every: every, Idle: time.Second, Log: slog.New(slog.DiscardHandler),
				Step: func(context.Context) (map[string]int, error) {
					mu.Lock()
					defer mu.Unlock()
					if now := time.Now(); now.After(rested) {
						wakes[now] = true
						steps++
					}
					return nil, nil
				},
			}
			loops.Go(func() {
				<-time.After(time.Duration(i) * 70 * time.Millisecond) // loops begin at different times
				_ = l.Run(ctx)
			})
		}
		loops.Wait()
		if len(wakes) > 41 {
			t.Errorf("the process woke %d times in 40 s", len(wakes))
		}
		if steps < 130 {
			t.Errorf("%d steps in 40 s, want 3.5 a second", steps)
		}
	})
}

func TestAStepThatIsDueDoesNotWaitForThePause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var at []time.Duration
		began := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Second)
		defer cancel()
		err := periodic.Loop{
			Name: "test", Every: 10 * time.Second, Log: slog.New(slog.DiscardHandler),
			Step: func(context.Context) (map[string]int, error) {
				at = append(at, time.Since(began))
				return nil, nil
			},
			Due: func() (time.Duration, bool) { return 1500*time.Millisecond - time.Since(began), len(at) == 1 },
		}.Run(ctx)
		if err != nil || len(at) != 3 || at[1] != 1500*time.Millisecond || at[2] < 11*time.Second {
			t.Errorf("%v, steps at %v", err, at)
		}
	})
}

func TestALoopThatRestsAsksWhetherThereIsWork(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 65*time.Second)
		defer cancel()
		began := time.Now()
		var steps []time.Duration
		asked, from := 0, 50*time.Second
		err := periodic.Loop{
			Name: "test", Every: 250 * time.Millisecond, Idle: time.Second, Log: slog.New(slog.DiscardHandler),
			HasWork: func(context.Context) bool {
				if asked++; asked == 3 {
					panic("a question")
				}
				return time.Since(began) > from
			},
			Step: func(context.Context) (map[string]int, error) {
				steps = append(steps, time.Since(began))
				if time.Since(began) > from && time.Since(began) < from+2*time.Second {
					return map[string]int{"done": 1}, nil
				}
				return nil, nil
			},
		}.Run(ctx)
		if err != nil {
			t.Error(err)
		}
		rested, first := 0, time.Duration(0)
		for _, at := range steps {
			switch {
			case at > 10*time.Second && at < from:
				rested++
			case at > from && first == 0:
				first = at
			}
		}
		if rested < 2 || rested > 3 {
			t.Errorf("%d steps in 40 s without work, want one every 15 s", rested)
		}
		if asked < 45 || first > from+1100*time.Millisecond {
			t.Errorf("asked %d times, the first work is done at %s", asked, first)
		}
		if n := len(steps) - rested; n < 20 {
			t.Errorf("%d steps with work, want its rhythm", n)
		}
	})
}

func TestWorkThatBeginsHereEndsALongPause(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		defer cancel()
		wake, stepped := make(chan struct{}, 1), make(chan time.Time)
		go func() {
			_ = periodic.Loop{
				Name: "test", Every: 100 * time.Millisecond, Idle: 10 * time.Second, Wake: wake,
				Log: slog.New(slog.DiscardHandler),
				Step: func(ctx context.Context) (map[string]int, error) {
					select {
					case stepped <- time.Now():
					case <-ctx.Done():
					}
					return nil, nil
				},
			}.Run(ctx)
		}()
		last := <-stepped
		for pause := time.Duration(0); pause < 5*time.Second; {
			at := <-stepped
			pause, last = at.Sub(last), at
		}
		woken := time.Now()
		wake <- struct{}{}
		if after := (<-stepped).Sub(woken); after > 110*time.Millisecond {
			t.Errorf("the step runs %s after its work began", after)
		}
		cancel()
		synctest.Wait()
	})
}
