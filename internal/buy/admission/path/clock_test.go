package path_test

import (
	"testing"
	"time"

	"seckill/internal/buy/admission/path"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/id"
)

// Unused path tokens keep a unit from others for the lifetime of a token at most, also when
// the clock of Redis is set back, and stay valid for their buyers.
func TestUnusedPathsOfAClockSetBackBlockNoUnit(t *testing.T) {
	t.Parallel()
	f, mini := embedded(t, 1)
	now := time.Now().Truncate(time.Millisecond)
	mini.SetTime(now)
	f.gate("stock", 1, "opens", now.Add(-time.Hour).UnixMilli(), "closes", now.Add(time.Hour).UnixMilli())
	waived := func() path.IssueInput {
		in := f.input(id.New[id.User](), captcha.Answer{})
		in.Waived = true
		return in
	}
	first, err := f.paths.Issue(t.Context(), waived())
	if err != nil {
		t.Fatal(err)
	}
	refused[path.NoPermit](f, waived())
	mini.SetTime(now.Add(-2 * time.Minute))
	second, err := f.paths.Issue(t.Context(), waived())
	if err != nil {
		t.Fatalf("after the clock was set back: %v", err)
	}
	if f.permits() != 2 || second.ExpiresAt.After(first.ExpiresAt) {
		t.Errorf("%d permits, %v and %v", f.permits(), first, second)
	}
	refused[path.NoPermit](f, waived())
}
