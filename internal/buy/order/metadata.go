package order

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"strings"
	"unicode/utf8"

	"seckill/ent"
	entorder "seckill/ent/order"
	"seckill/ent/ordermetadata"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// Bounds of the metadata of an order, which other systems use for ids and small texts.
const (
	maxMetadata      = 20  // entries
	maxMetadataValue = 500 // characters
	// maxMetadataTries bounds the attempts of one call while other calls change the same order.
	maxMetadataTries = 10
)

var metadataKey = regexp.MustCompile(`^[A-Za-z0-9.:_-]{1,40}$`)

// Metadata are texts that other systems stored with an order, by key.
type Metadata map[string]string

// with returns the metadata after a change; an empty text removes its key.
func (m Metadata) with(change Metadata) (Metadata, error) {
	out := Metadata{}
	maps.Copy(out, m)
	var badKey, badValue error
	for key, value := range change {
		if !metadataKey.MatchString(key) {
			badKey = fault.BadField{At: []string{"entries", "key"},
				Rule: fault.Rule{Code: "1 to 40 characters of a-z, A-Z, 0-9, ., :, _ and -"}}
		}
		if utf8.RuneCountInString(value) > maxMetadataValue || !utf8.ValidString(value) || strings.IndexByte(value, 0) >= 0 {
			badValue = fault.BadField{At: []string{"entries", "value"}, Rule: fault.MaxLength(maxMetadataValue)}
		}
		if out[key] = value; value == "" {
			delete(out, key)
		}
	}
	if err := fault.All(badKey, badValue); err != nil {
		return nil, err
	}
	if len(out) > maxMetadata {
		return nil, fault.BadField{At: []string{"entries"},
			Rule: fault.Rule{Code: fmt.Sprintf("at most %d entries", maxMetadata)}}
	}
	return out, nil
}

// MetadataStore changes the metadata of orders. It does not change the order itself: its
// revision stays, and no status update is pushed.
type MetadataStore struct {
	DB    *postgres.DB
	Clock clock.Clock
}

// Set stores texts with an order, or removes those that are empty; other entries stay. Setting
// the stored values again changes nothing. Concurrent calls do not lose each other's entries.
// Refusals: INVALID_INPUT; NOT_FOUND.
func (s MetadataStore) Set(ctx context.Context, orderID id.Order, change Metadata) (o *Order, err error) {
	if len(change) == 0 {
		return nil, fault.BadField{At: []string{"entries"}, Rule: fault.Rule{Code: "1 to 20 entries, each key once"}}
	}
	for range maxMetadataTries {
		err = s.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) (err error) {
			o, err = s.set(ctx, tx, orderID, change)
			return err
		})
		if !errors.Is(err, ErrMoved) && !postgres.IsUnique(err) {
			return o, err
		}
	}
	return nil, fault.Wrap(fault.Unavailable, "The order is being changed. Please try again shortly.", err)
}

func (s MetadataStore) set(ctx context.Context, tx *ent.Tx, orderID id.Order, change Metadata) (*Order, error) {
	row, err := tx.Order.Query().Where(entorder.ID(orderID)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, fault.Refused{Why: fault.Unknown, At: []string{"orderId"}}
	}
	if err != nil {
		return nil, fmt.Errorf("read order %s: %w", orderID, err)
	}
	before, version, err := metadataOf(ctx, tx.OrderMetadata, orderID)
	if err != nil {
		return nil, err
	}
	after, err := before.with(change)
	if err != nil || maps.Equal(before, after) {
		return FromRow(row), err
	}
	text, err := json.Marshal(after)
	if err != nil {
		return nil, fmt.Errorf("metadata of order %s: %w", orderID, err)
	}
	now := instant(s.Clock.Now())
	if version == 0 {
		return FromRow(row), tx.OrderMetadata.Create().SetID(orderID).SetEntries(text).SetUpdatedAt(now).Exec(ctx)
	}
	n, err := tx.OrderMetadata.Update().Where(ordermetadata.ID(orderID), ordermetadata.Version(version)).
		SetEntries(text).SetVersion(version + 1).SetUpdatedAt(now).Save(ctx)
	if err == nil && n == 0 {
		err = ErrMoved
	}
	return FromRow(row), err
}

// metadataOf returns the metadata of an order and its version; 0 = it has no row.
func metadataOf(ctx context.Context, client *ent.OrderMetadataClient, orderID id.Order) (m Metadata, version int64,
	err error) {
	row, err := client.Get(ctx, orderID)
	if ent.IsNotFound(err) {
		return Metadata{}, 0, nil
	}
	if err != nil {
		return nil, 0, fmt.Errorf("read metadata of order %s: %w", orderID, err)
	}
	if err := json.Unmarshal(row.Entries, &m); err != nil {
		return nil, 0, fmt.Errorf("metadata of order %s: %w", orderID, err)
	}
	return m, row.Version, nil
}

// MetadataOf returns the metadata of orders that have any.
func MetadataOf(ctx context.Context, client *ent.OrderMetadataClient, orders ...id.Order) (map[id.Order]Metadata,
	error) {
	rows, err := client.Query().Where(ordermetadata.IDIn(orders...)).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read metadata of %d orders: %w", len(orders), err)
	}
	all := make(map[id.Order]Metadata, len(rows))
	for _, row := range rows {
		var m Metadata
		if err := json.Unmarshal(row.Entries, &m); err != nil {
			return nil, fmt.Errorf("metadata of order %s: %w", row.ID, err)
		}
		all[row.ID] = m
	}
	return all, nil
}

// Metadata returns the metadata of an order.
func (s *Store) Metadata(ctx context.Context, o *Order) (Metadata, error) {
	m, _, err := metadataOf(ctx, s.db.Ent.OrderMetadata, o.ID)
	return m, err
}
