package graph_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/99designs/gqlgen/graphql"
	"github.com/vektah/gqlparser/v2/gqlerror"

	"seckill/graph"
	"seckill/internal/platform/fault"
)

// An unexpected error gets an id that is logged with the whole chain. The response
// contains only the id.
func TestUnforeseenErrorsHaveAnIDAndShowNothing(t *testing.T) {
	t.Parallel()
	const inside, sent = "dial tcp 10.0.0.7:5432: refused", "s3cr3t"
	for name, c := range map[string]struct {
		fail   func(graph.Errors) *gqlerror.Error
		logged string
	}{
		"error": {func(e graph.Errors) *gqlerror.Error {
			return e.Present(t.Context(), fmt.Errorf("read order: %w", errors.New(inside)))
		}, "read order: " + inside},
		"fault": {func(e graph.Errors) *gqlerror.Error {
			return e.Present(t.Context(), &fault.Error{Code: fault.Internal, Message: inside, Err: errors.New(inside)})
		}, inside},
		"wrapped by the executor": {func(e graph.Errors) *gqlerror.Error {
			return e.Present(t.Context(), gqlerror.Wrap(errors.New(inside)))
		}, inside},
		"panic": {func(e graph.Errors) *gqlerror.Error {
			return e.Present(t.Context(), e.Recover(t.Context(), errors.New(sent)))
		}, "*errors.errorString"},
		"panic of the runtime": {func(e graph.Errors) *gqlerror.Error {
			var got *gqlerror.Error
			func() {
				defer func() { got = e.Present(t.Context(), e.Recover(t.Context(), recover())) }()
				_ = []int{}[len(inside)]
			}()
			return got
		}, "index out of range"},
	} {
		var log bytes.Buffer
		got := c.fail(graph.Errors{Log: slog.New(slog.NewJSONHandler(&log, nil))})
		id, _ := got.Extensions["errorId"].(string)
		text, err := json.Marshal(got)
		if err != nil {
			t.Fatal(err)
		}
		if got.Extensions["code"] != "INTERNAL" || len(id) != 36 || len(got.Extensions) != 2 || strings.Contains(string(text), inside) || strings.Contains(string(text), sent) {
			t.Errorf("%s: %s", name, text)
		}
		if lines := strings.Count(log.String(), "\n"); lines != 1 || !strings.Contains(log.String(), id) || !strings.Contains(log.String(), c.logged) || strings.Contains(log.String(), sent) {
			t.Errorf("%s: %d lines: %s", name, lines, log.String())
		}
	}
}

func TestForeseenFaultsKeepTheirCode(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err        error
		code, more string
	}{
		{fault.New(fault.Forbidden, "no"), "FORBIDDEN", ""},
		{fmt.Errorf("place: %w", fault.New(fault.BadInput, "no")), "BAD_USER_INPUT", ""},
		{&fault.Error{Code: fault.Overloaded, Message: "later", RetryAfter: 2 * time.Second}, "OVERLOADED", `"retryAfterMs":2000`},
		{fmt.Errorf("ask: %w", context.DeadlineExceeded), "TIMEOUT", ""},
		{gqlerror.Wrap(fault.New(fault.Unauthenticated, "who")), "UNAUTHENTICATED", ""},
		{gqlerror.Wrap(fmt.Errorf("read session: %w", &net.OpError{Op: "dial", Err: syscall.ECONNREFUSED})), "UNAVAILABLE", ""},
		{fmt.Errorf("read session: %w", errors.New("no such column")), "INTERNAL", "errorId"},
		{gqlerror.Wrap(fault.BadField{Rule: fault.Min(1)}), "BAD_USER_INPUT", ""}, // refusals of a query
		{fmt.Errorf("search: %w", fault.Throttled{RetryAfter: 2 * time.Second}), "RATE_LIMITED", `"retryAfterMs":2000`},
		{fault.Refused{Why: fault.Unknown}, "NOT_FOUND", ""},
	} {
		got := graph.Errors{Log: slog.New(slog.DiscardHandler)}.Present(t.Context(), c.err)
		text, err := json.Marshal(got)
		if err != nil || got.Extensions["code"] != c.code || !strings.Contains(string(text), c.more) {
			t.Errorf("%v: %s", c.err, text)
		}
	}
}

func TestFaultsAreInTheLanguageOfTheReader(t *testing.T) {
	t.Parallel()
	e := graph.Errors{Log: slog.New(slog.DiscardHandler)}
	chinese := graphql.WithOperationContext(t.Context(), &graphql.OperationContext{Headers: http.Header{"Accept-Language": {"zh-CN,zh;q=0.9,en;q=0.5"}}})
	han := regexp.MustCompile(`\p{Han}`)
	for _, err := range []error{
		fault.New(fault.Unauthenticated, "Sign in first."), fault.New(fault.Forbidden, "Not you."), fault.New(fault.BadInput, "Invalid cursor."),
		fault.New(fault.NotFound, "There is no such sale."), fault.New(fault.RateLimited, "Too many."), fault.New(fault.Overloaded, "Too busy."),
		fault.New(fault.Unavailable, "Away."), fault.New(fault.Timeout, "Slow."), errors.New("a bug"), context.DeadlineExceeded, syscall.ECONNREFUSED,
		fault.Refused{Why: fault.Unknown}, e.Recover(chinese, "a panic"),
	} {
		if got := e.Present(chinese, err); !han.MatchString(got.Message) {
			t.Errorf("%v: %q", err, got.Message)
		}
	}
	if got := e.Present(t.Context(), fault.New(fault.BadInput, "Invalid cursor.")); got.Message != "Invalid cursor." {
		t.Errorf("in English: %q", got.Message)
	}
}
