package webhook

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"slices"
	"strings"
	"time"

	"seckill/ent"
	"seckill/ent/webhookendpoint"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/collect"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/typed"
)

const (
	// maxEndpoints bounds the endpoints of an installation: each event is sent to all that
	// receive its kind.
	maxEndpoints = 20
	// secretBytes is the length of a secret; Standard Webhooks asks for 24 to 64.
	secretBytes = 32
	// secretPrefix starts a secret, so that scanners recognise it.
	secretPrefix = "whsec_"
	// secretOverlap is how long the former secret signs too after a rotation.
	secretOverlap = 24 * time.Hour
)

// State is the state of an endpoint.
type State string

// States of an endpoint. A disabled endpoint receives nothing, and no deliveries are
// added for it; those that wait go on when it is enabled again.
const (
	Enabled  State = "ENABLED"
	Disabled State = "DISABLED"
)

// Endpoint is an address that receives events.
type Endpoint struct {
	ID           id.Endpoint
	URL          string
	Description  string
	Kinds        []Kind // empty = all
	State        State
	Reason       string     // why it was disabled; "" = an administrator did it
	FailingSince *time.Time // first failure after the last success; nil = the last attempt succeeded
	RotatedUntil *time.Time // until when the former secret signs too; nil = there is none
	CreatedAt    time.Time
	UpdatedAt    time.Time
}

// Create adds an endpoint on behalf of by (Nil = the command line) and returns it with its
// secret, which is shown only here.
// Refusals: INVALID_INPUT, and CONFLICT when there are 20 already.
func (s *Service) Create(ctx context.Context, by id.User, in EndpointInput) (*Endpoint, string, error) {
	in.clean()
	if err := s.CheckInput(in); err != nil {
		return nil, "", err
	}
	endpoint, now := id.New[id.Endpoint](), s.now()
	secret, sealed, err := s.newSecret(endpoint)
	if err != nil {
		return nil, "", err
	}
	var row *ent.WebhookEndpoint
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		n, err := tx.WebhookEndpoint.Query().Where(webhookendpoint.StateNEQ(webhookendpoint.StateDELETED)).Count(ctx)
		if err != nil {
			return err
		}
		if n >= maxEndpoints {
			return fault.Refused{Why: fault.Conflict}
		}
		row, err = tx.WebhookEndpoint.Create().SetID(endpoint).SetURL(*in.URL).SetDescription(deref(in.Description)).
			SetKinds(joinKinds(deref(in.Kinds))).SetSecret(sealed).SetCreatedAt(now).SetUpdatedAt(now).Save(ctx)
		return err
	})
	if err != nil {
		return nil, "", fmt.Errorf("create webhook endpoint: %w", err)
	}
	s.cfg.Outbox.Added(ctx)
	s.changed(ctx, by, "created "+endpoint.Public()+" for "+*in.URL)
	return endpointFromRow(row), secret, nil
}

// EndpointInput is what an administrator says about an endpoint. A nil field is not
// changed; a new endpoint needs a URL.
type EndpointInput struct {
	URL         *string
	Description *string
	Kinds       *[]Kind // empty = all
	Enabled     *bool
}

// maxDescription bounds a description, in characters.
const maxDescription = 200

// clean puts the texts of an input into the form in which they are stored.
func (in *EndpointInput) clean() {
	for _, text := range []**string{&in.URL, &in.Description} {
		if *text != nil {
			form := typed.Line(**text)
			*text = &form
		}
	}
}

// CheckInput returns all faults of an input.
func (s *Service) CheckInput(in EndpointInput) error {
	in.clean()
	var address, description, kinds error
	if rule := fault.Line(deref(in.Description), 0, maxDescription); rule != (fault.Rule{}) {
		description = fault.BadField{At: []string{"description"}, Rule: rule}
	}
	if in.URL != nil {
		address = s.target.check(*in.URL)
	}
	if slices.ContainsFunc(deref(in.Kinds), func(k Kind) bool { return !k.Valid() }) {
		kinds = fault.BadField{At: []string{"events"}, Rule: fault.Rule{Code: "known kinds of events"}}
	}
	return fault.All(address, description, kinds)
}

// Update changes an endpoint. Enabling one that was disabled forgets its failures.
// Refusals: INVALID_INPUT, NOT_FOUND.
func (s *Service) Update(ctx context.Context, by id.User, endpoint id.Endpoint, in EndpointInput) (*Endpoint, error) {
	in.clean()
	if err := s.CheckInput(in); err != nil {
		return nil, err
	}
	return s.change(ctx, change{by, endpoint, "changed", in.Kinds != nil || in.Enabled != nil},
		func(_ *ent.WebhookEndpoint, update *ent.WebhookEndpointUpdate) {
			update.SetNillableURL(in.URL).SetNillableDescription(in.Description)
			if in.Kinds != nil {
				update.SetKinds(joinKinds(*in.Kinds))
			}
			switch {
			case in.Enabled == nil:
			case *in.Enabled:
				update.SetState(webhookendpoint.StateENABLED).SetReason("").ClearFailingSince()
			default:
				update.SetState(webhookendpoint.StateDISABLED).SetReason("")
			}
		})
}

// Rotate gives an endpoint another secret, which is shown only here. The former one signs
// too for a day. Refusal: NOT_FOUND.
func (s *Service) Rotate(ctx context.Context, by id.User, endpoint id.Endpoint) (*Endpoint, string, error) {
	secret, sealed, err := s.newSecret(endpoint)
	if err != nil {
		return nil, "", err
	}
	rotated, err := s.change(ctx, change{by, endpoint, "gave a new secret to", false},
		func(row *ent.WebhookEndpoint, update *ent.WebhookEndpointUpdate) {
			update.SetPreviousSecret(row.Secret).SetSecret(sealed).SetPreviousUntil(s.now().Add(secretOverlap))
		})
	if err != nil {
		return nil, "", err
	}
	return rotated, secret, nil
}

// Delete removes an endpoint. Its deliveries are no longer sent, and purged later.
// Refusal: NOT_FOUND.
func (s *Service) Delete(ctx context.Context, by id.User, endpoint id.Endpoint) (*Endpoint, error) {
	return s.change(ctx, change{by, endpoint, "deleted", false},
		func(_ *ent.WebhookEndpoint, update *ent.WebhookEndpointUpdate) {
			update.SetState(webhookendpoint.StateDELETED)
		})
}

// change is a change of an endpoint, for the security log.
type change struct {
	by       id.User
	endpoint id.Endpoint
	what     string
	more     bool // whether it may receive events that it did not before
}

// change updates an endpoint that is not deleted, and returns it.
func (s *Service) change(ctx context.Context, c change,
	set func(*ent.WebhookEndpoint, *ent.WebhookEndpointUpdate)) (changed *Endpoint, err error) {
	endpoint := c.endpoint
	err = s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		// The update locks the row before it is read, on every database.
		live := tx.WebhookEndpoint.Update().Where(webhookendpoint.ID(endpoint),
			webhookendpoint.StateNEQ(webhookendpoint.StateDELETED))
		n, err := live.SetUpdatedAt(s.now()).Save(ctx)
		if err != nil {
			return err
		}
		if n == 0 {
			return fault.Refused{Why: fault.Unknown, At: []string{"endpointId"}}
		}
		row, err := tx.WebhookEndpoint.Get(ctx, endpoint)
		if err != nil {
			return err
		}
		update := tx.WebhookEndpoint.Update().Where(webhookendpoint.ID(endpoint)).SetUpdatedAt(s.now())
		set(row, update)
		if err := update.Exec(ctx); err != nil {
			return err
		}
		row, err = tx.WebhookEndpoint.Get(ctx, endpoint)
		if err == nil {
			changed = endpointFromRow(row)
		}
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("change webhook endpoint %s: %w", endpoint, err)
	}
	if c.more && changed.State == Enabled {
		s.cfg.Outbox.Added(ctx)
	} else {
		s.cfg.Outbox.Forget()
	}
	s.changed(ctx, c.by, c.what+" "+endpoint.Public()+" for "+changed.URL)
	return changed, nil
}

// Endpoints returns all endpoints, oldest first; there are at most 20.
func (s *Service) Endpoints(ctx context.Context) ([]*Endpoint, error) {
	rows, err := s.cfg.DB.Ent.WebhookEndpoint.Query().Where(webhookendpoint.StateNEQ(webhookendpoint.StateDELETED)).
		Order(ent.Asc(webhookendpoint.FieldID)).Limit(maxEndpoints).All(ctx)
	if err != nil {
		return nil, fmt.Errorf("read webhook endpoints: %w", err)
	}
	return collect.Map(rows, endpointFromRow), nil
}

// newSecret returns a secret to show, and its form to store.
func (s *Service) newSecret(endpoint id.Endpoint) (shown string, sealed []byte, err error) {
	secret := make([]byte, secretBytes)
	if _, err := rand.Read(secret); err != nil {
		return "", nil, fmt.Errorf("webhook secret: %w", err)
	}
	sealed, err = s.sealer.Seal(endpoint.UUID(), secret)
	return secretPrefix + base64.StdEncoding.EncodeToString(secret), sealed, err
}

func endpointFromRow(row *ent.WebhookEndpoint) *Endpoint {
	e := &Endpoint{
		ID: row.ID, URL: row.URL, Description: row.Description, State: State(row.State), Reason: row.Reason,
		FailingSince: clock.UTC(row.FailingSince), RotatedUntil: clock.UTC(row.PreviousUntil), CreatedAt: row.CreatedAt.UTC(),
		UpdatedAt: row.UpdatedAt.UTC(),
	}
	if row.Kinds != "" {
		e.Kinds = kindsOf(row.Kinds)
	}
	return e
}

// kindsOf returns the kinds of events that an endpoint receives.
func kindsOf(column string) []Kind {
	if column == "" {
		return Kinds()
	}
	var kinds []Kind
	for word := range strings.SplitSeq(column, ",") {
		kinds = append(kinds, Kind(word))
	}
	return kinds
}

func joinKinds(kinds []Kind) string {
	words := make([]string, 0, len(kinds))
	for _, kind := range kinds {
		if word := string(kind); !slices.Contains(words, word) {
			words = append(words, word)
		}
	}
	return strings.Join(words, ",")
}

func deref[T any](p *T) (v T) {
	if p != nil {
		v = *p
	}
	return v
}
