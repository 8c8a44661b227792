package path

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"seckill/internal/buy/reservation"
	"seckill/internal/platform/batch"
	"seckill/internal/platform/captcha"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/id"
)

// request is a call of Issue, in a batch.
type request struct {
	IssueInput
	name  string // random
	claim captcha.Claim
}

// issueAll issues path tokens for the requests of one shard.
func (s *Service) issueAll(ctx context.Context, requests []*request) []batch.Result[reply] {
	results := make([]batch.Result[reply], len(requests))
	for _, call := range OnePerUser(requests, func(r *request) (id.Sale, id.User) { return r.Sale, r.User }) {
		now := collect.Map(call, func(at int) *request { return requests[at] })
		replies, err := s.send(ctx, now)
		if Ambiguous(ctx, err) {
			replies, err = s.send(ctx, now) // the same requests: each takes effect in one of the two runs at most
		}
		for i, at := range call {
			if results[at].Err = err; err == nil {
				results[at].Value = replies[i]
			}
		}
	}
	return results
}

// OnePerUser divides the requests of a batch into calls of a script, in which a user has one
// request in a sale: nearly always it is one call. It returns the indexes of the requests.
func OnePerUser[T any](requests []T, of func(T) (id.Sale, id.User)) (calls [][]int) {
	type buyer struct {
		sale id.Sale
		user id.User
	}
	times := make(map[buyer]int, len(requests))
	for i, r := range requests {
		sale, user := of(r)
		n := times[buyer{sale, user}]
		times[buyer{sale, user}]++
		if n == len(calls) {
			calls = append(calls, make([]int, 0, len(requests)-i))
		}
		calls[n] = append(calls[n], i)
	}
	return calls
}

// Ambiguous reports whether a script may have run although no reply arrived.
func Ambiguous(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil {
		return false
	}
	_, answered := errors.AsType[redis.Error](err)
	return !answered
}

// send runs lua/issue.lua for requests on one shard, of different users.
func (s *Service) send(ctx context.Context, requests []*request) ([]reply, error) {
	shard, k := id.ShardOf(requests[0].Sale), s.cfg.Keys
	items := map[id.Item]int{} // from 1
	keys, args := make([]string, 0, 8), make([]any, 0, 9+6*len(requests))
	args = append(args, len(requests), 0, s.cfg.Life.Milliseconds(), s.cfg.Captchas.RecordLife().Milliseconds(),
		reservation.ExpiredWait.Milliseconds(),
		s.cfg.Captchas.Life().Milliseconds())
	for _, r := range requests {
		if items[r.Item] > 0 {
			continue
		}
		items[r.Item] = len(items) + 1
		perMille := s.perMille
		if r.PerMille != nil {
			perMille = int64(*r.PerMille)
		}
		keys = append(keys, k.Item(shard, r.Item), k.Reservations(shard, r.Item), k.Permits(shard, r.Item),
			k.WaitingRoom(shard, r.Item), k.Admissions(shard, r.Item), k.Units(shard, r.Sale), k.Answers(shard, r.Sale),
			k.ExpiriesPrefix(shard, r.Sale))
		args = append(args, perMille, r.Queued, r.Item.String())
	}
	args[1] = len(items)
	for _, r := range requests {
		verdict := r.claim.Verdict
		if r.Waived {
			verdict = ""
		}
		args = append(args, items[r.Item], r.User.String(), r.name, string(verdict), r.claim.Created, r.Persons.String())
	}
	asked := time.Now()
	values, err := issueScript.Run(ctx, s.cfg.Client, keys, args...).Slice()
	if err != nil {
		return nil, err
	}
	replies, states, err := parseReplies(values, requests, items)
	if err == nil {
		s.keep(states, asked)
	}
	return replies, err
}

// parseReplies parses the reply of lua/issue.lua: to the requests, and what the next new user
// of each item gets.
func parseReplies(values []any, requests []*request, items map[id.Item]int) (replies []reply, states map[id.Item]reply,
	err error) {
	first := 1 + 2*len(requests) // of the items
	malformed := fmt.Errorf("path script replied %d values for %d requests on %d items", len(values), len(requests),
		len(items))
	if len(values) != first+2*len(items) {
		return nil, nil, malformed
	}
	now, ok := values[0].(int64)
	states = make(map[id.Item]reply, len(items))
	for item, n := range items {
		opens, ok1 := values[first+2*(n-1)].(int64)
		state, ok2 := values[first+2*(n-1)+1].(string)
		if !ok || !ok1 || !ok2 {
			return nil, nil, malformed
		}
		r := reply{outcome: outcome(state), now: time.UnixMilli(now).UTC()}
		if opens > 0 {
			r.opens = time.UnixMilli(opens).UTC()
		}
		states[item] = r
	}
	replies = make([]reply, len(requests))
	for i, r := range requests {
		text, ok1 := values[1+2*i].(string)
		detail, ok2 := values[2+2*i].(string)
		if !ok1 || !ok2 {
			return nil, nil, malformed
		}
		replies[i] = states[r.Item]
		replies[i].outcome, replies[i].detail = outcome(text), detail
	}
	return replies, states, nil
}
