package periodic_test

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"seckill/internal/periodic"
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
