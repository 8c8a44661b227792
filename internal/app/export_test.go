package app

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// HoldScripts takes every connection that captchas, paths and limits share and
// returns how to give them back.
func (a *App) HoldScripts(ctx context.Context) (release func() error, err error) {
	client, ok := a.svc.redis.Script.(*redis.Client)
	if !ok {
		return nil, errors.New("not one server")
	}
	held := make([]*redis.Conn, client.Options().PoolSize)
	for i := range held {
		held[i] = client.Conn()
		if err := held[i].Ping(ctx).Err(); err != nil {
			return nil, err
		}
	}
	return func() (err error) {
		for _, conn := range held {
			err = errors.Join(err, conn.Close())
		}
		return err
	}, nil
}
