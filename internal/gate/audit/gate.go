package audit

import (
	"context"
	"fmt"
	"strconv"

	"seckill/internal/buy/reservation"
	"seckill/internal/platform/id"
)

// Limits of reading reservations.
const (
	atOnce    = 20_000 // read with their item in one step, about 10 ms of Redis
	scanCount = 1000   // fields per HSCAN when there are more
	scanTries = 5      // how often a scan restarts because the item changed meanwhile
)

// readGate reads an item's gate with its reservations, consistently unless it is torn.
func (a *Auditor) readGate(ctx context.Context, sale id.Sale, item id.Item) (gate, error) {
	now, err := a.gates().State(ctx, sale, item)
	if err != nil {
		return gate{}, err
	}
	shard := id.ShardOf(sale)
	itemKey, reservationsKey := a.Keys.Item(shard, item), a.Keys.Reservations(shard, item)
	count, err := a.Redis.Cmd.HLen(ctx, reservationsKey).Result()
	if err != nil {
		return gate{}, fmt.Errorf("count the reservations of item %s: %w", item, err)
	}
	var g gate
	if count <= atOnce {
		g, err = a.readAtOnce(ctx, itemKey, reservationsKey)
	} else {
		g, err = a.scan(ctx, itemKey, reservationsKey)
	}
	if err != nil {
		return g, fmt.Errorf("read the gate of item %s: %w", item, err)
	}
	g.stale, g.revision = now.Stale, now.Revision
	return g, nil
}

func (a *Auditor) gates() *reservation.Gate {
	return reservation.NewGate(reservation.GateConfig{Client: a.Redis.Script, Keys: a.Keys})
}

func (a *Auditor) readAtOnce(ctx context.Context, itemKey, reservationsKey string) (gate, error) {
	pipe := a.Redis.Cmd.TxPipeline()
	item, reservations := pipe.HGetAll(ctx, itemKey), pipe.HGetAll(ctx, reservationsKey)
	if _, err := pipe.Exec(ctx); err != nil {
		return gate{}, err
	}
	g, _, err := parseItem(item.Val())
	if err != nil || !g.there {
		return g, err
	}
	for user, record := range reservations.Val() {
		g.addReservation(user, record)
	}
	return g, nil
}

// scan reads many reservations incrementally, and restarts when the item changed
// meanwhile. In a continuous rush the scan gives up after scanTries and the reading is
// torn: each reservation in it existed at some time, and those that existed throughout
// are in it.
func (a *Auditor) scan(ctx context.Context, itemKey, reservationsKey string) (gate, error) {
	for try := 1; ; try++ {
		fields, err := a.Redis.Cmd.HGetAll(ctx, itemKey).Result()
		if err != nil {
			return gate{}, err
		}
		g, version, err := parseItem(fields)
		if err != nil || !g.there {
			return g, err
		}
		if err := a.scanReservations(ctx, reservationsKey, &g); err != nil {
			return g, err
		}
		if fields, err = a.Redis.Cmd.HGetAll(ctx, itemKey).Result(); err != nil {
			return g, err
		}
		_, after, err := parseItem(fields)
		g.torn = after != version
		if err != nil || !g.torn || try == scanTries {
			return g, err
		}
	}
}

func (a *Auditor) scanReservations(ctx context.Context, key string, g *gate) error {
	for cursor := uint64(0); ; {
		pairs, next, err := a.Redis.Cmd.HScan(ctx, key, cursor, "", scanCount).Result()
		if err != nil {
			return err
		}
		for i := 0; i+1 < len(pairs); i += 2 {
			g.addReservation(pairs[i], pairs[i+1])
		}
		if next == 0 {
			return nil
		}
		cursor = next
	}
}

// parseItem parses an item's hash; version changes with each change of the item.
func parseItem(fields map[string]string) (g gate, version string, err error) {
	if len(fields) == 0 {
		return g, "", nil
	}
	g = gate{there: true, state: fields["gate"], reservations: map[id.User]reservedUnits{}}
	for name, into := range map[string]*int{"total": &g.total, "stock": &g.stock, "reserved": &g.reserved} {
		if fields[name] == "" {
			continue // a gate that is being built has none yet
		}
		if *into, err = strconv.Atoi(fields[name]); err != nil {
			return g, "", fmt.Errorf("%s: %w", name, err)
		}
	}
	if g.shares, err = reservation.ParseShares(fields["kept"]); err != nil {
		return g, "", err
	}
	if g.epoch, err = strconv.ParseInt(fields["epoch"], 10, 64); err != nil {
		return g, "", fmt.Errorf("epoch: %w", err)
	}
	return g, fields["epoch"] + "/" + fields["rev"], nil
}

func (g *gate) addReservation(user, record string) {
	userID, err := id.ParseUUID[id.User](user)
	if err != nil {
		g.malformed++
		return
	}
	h, err := reservation.ParseReservation(userID, record)
	if err != nil {
		g.malformed++
		return
	}
	g.reservations[userID] = reservedUnits{task: h.Task, persons: h.Persons, quantity: h.Quantity}
}
