package testenv

import (
	"context"
	"net/url"
	"testing"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/fault"
)

// LockableURL returns the URL of a user of a server with a password, which a Lockout turns
// away.
func LockableURL(t testing.TB, s *RedisProcess) string {
	t.Helper()
	command(t, s, "ACL", "SETUSER", "shop", "on", ">old", "~*", "&*", "+@all")
	u, err := url.Parse(s.URL())
	if err != nil {
		t.Fatal(err)
	}
	u.User = url.UserPassword("shop", "old")
	return u.String()
}

// RotatePassword gives the user of LockableURL another password, ends its connections, and
// returns its URL.
func RotatePassword(t testing.TB, s *RedisProcess) string {
	t.Helper()
	u, err := url.Parse(LockableURL(t, s))
	if err != nil {
		t.Fatal(err)
	}
	command(t, s, "ACL", "SETUSER", "shop", "resetpass", ">new")
	command(t, s, "CLIENT", "KILL", "USER", "shop")
	u.User = url.UserPassword("shop", "new")
	return u.String()
}

// Lockout makes a server close the connections of the user of LockableURL and refuse new
// ones, with an error of Redis and not of the network, until restore is called.
type Lockout struct {
	Name string
	Do   func(t testing.TB, s *RedisProcess) (restore func())
}

// Lockouts are the ways in which a Redis that runs refuses connections.
func Lockouts() []Lockout {
	acl := func(name string, rules ...any) Lockout {
		return Lockout{name, func(t testing.TB, s *RedisProcess) func() {
			command(t, s, append([]any{"ACL", "SETUSER", "shop"}, rules...)...)
			command(t, s, "CLIENT", "KILL", "USER", "shop")
			return func() { command(t, s, "ACL", "SETUSER", "shop", "reset", "on", ">old", "~*", "&*", "+@all") }
		}}
	}
	return []Lockout{
		acl("password rotated", "resetpass", ">new"),
		acl("user switched off", "off"),
		acl("rights taken", "-@all"),
		{"user deleted", func(t testing.TB, s *RedisProcess) func() {
			command(t, s, "ACL", "DELUSER", "shop")
			return func() { LockableURL(t, s) }
		}},
		{"busy with a script", busy},
	}
}

// busy makes a script run until it is killed, during which the server answers BUSY.
func busy(t testing.TB, s *RedisProcess) func() {
	t.Helper()
	command(t, s, "CONFIG", "SET", "busy-reply-threshold", "1")
	command(t, s, "CLIENT", "KILL", "USER", "shop")
	killer, conn := s.Conn(), s.Conn().NewBlocking()
	t.Cleanup(func() { _ = conn.Close() })
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_ = conn.Eval(context.WithoutCancel(t.Context()), "while true do end", nil).Err() // it is killed
	}()
	Eventually(t, Wait, func() bool {
		return redis.HasErrorPrefix(killer.Cmd.Ping(t.Context()).Err(), "BUSY")
	}, "the script runs")
	return func() {
		if err := killer.Cmd.ScriptKill(context.WithoutCancel(t.Context())).Err(); err != nil {
			t.Errorf("end the script: %v", err)
		}
		<-ended
	}
}

func command(t testing.TB, s *RedisProcess, args ...any) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), Wait)
	defer cancel()
	if err := s.Conn().Cmd.Do(ctx, args...).Err(); err != nil {
		t.Fatalf("%v: %v", args, err)
	}
}

// Refusal returns the refusal in an error, nil for no error. Any other error fails the
// test.
func Refusal(t testing.TB, err error) fault.Refusal {
	t.Helper()
	refusal, ok := fault.AsRefusal(err)
	if err != nil && !ok {
		t.Error(err)
	}
	return refusal
}
