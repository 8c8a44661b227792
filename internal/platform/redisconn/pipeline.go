package redisconn

import (
	"context"

	"github.com/redis/go-redis/v9"
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
