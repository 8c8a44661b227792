package app

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// HoldRedis takes every connection of the shared Redis pool and returns a function that
// gives them back.
func (a *App) HoldRedis(ctx context.Context) (release func() error, err error) {
	var held []*redis.Conn
	for _, shared := range []redis.UniversalClient{a.svc.redis.Cmd, a.svc.redis.Script} {
		client, ok := shared.(*redis.Client)
		if !ok {
			return nil, errors.New("not one server")
		}
		for range client.Options().PoolSize {
			conn := client.Conn()
			held = append(held, conn)
			if err := conn.Ping(ctx).Err(); err != nil {
				return nil, err
			}
		}
	}
	return func() (err error) {
		for _, conn := range held {
			err = errors.Join(err, conn.Close())
		}
		return err
	}, nil
}
