package redisconn

import (
	"context"

	"github.com/redis/go-redis/v9"

	"seckill/internal/platform/collect"
)

// ExecEach executes a pipeline whose commands are checked one by one, because in a Cluster
// some servers may be down: afterwards a command has its own reply or an error. go-redis
// leaves the commands without either when a server refuses the connection itself, as
// after a change of the password or while a script blocks it: zero values would pass for
// replies.
func ExecEach(ctx context.Context, pipe redis.Pipeliner) {
	cmds, err := pipe.Exec(ctx)
	if err == nil {
		return
	}
	for _, cmd := range cmds {
		if cmd.Err() != nil {
			return // err is of this command, and the others have their replies
		}
	}
	for _, cmd := range cmds {
		cmd.SetErr(err)
	}
}

// Run is one run of a script.
type Run struct {
	Keys []string
	Args []any
}

// RunEach runs a script several times in one round trip, and once more each if the server does
// not have it. As after ExecEach, each command has its own reply or an error.
func RunEach(ctx context.Context, client redis.UniversalClient, script *redis.Script, runs []Run) []*redis.Cmd {
	pipe := client.Pipeline()
	cmds := collect.Map(runs, func(r Run) *redis.Cmd { return script.EvalSha(ctx, pipe, r.Keys, r.Args...) })
	ExecEach(ctx, pipe)
	for i, r := range runs {
		if redis.HasErrorPrefix(cmds[i].Err(), "NOSCRIPT") {
			cmds[i] = script.Eval(ctx, client, r.Keys, r.Args...)
		}
	}
	return cmds
}
