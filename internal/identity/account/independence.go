package account

import (
	"context"
	"fmt"
	"time"

	"seckill/ent"
	"seckill/ent/securityevent"
	"seckill/internal/identity/person"
	"seckill/internal/platform/clock"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// Dependence is why two accounts do not count as two persons.
type Dependence string

// Reasons of a dependence.
const (
	Promoted       Dependence = "PROMOTED"         // one of them gave the other its role
	NewAccount     Dependence = "NEW_ACCOUNT"      // the second is younger than minStaffAge
	SameContact    Dependence = "SAME_CONTACT"     // both have one mailbox or phone number
	NoSecondFactor Dependence = "NO_SECOND_FACTOR" // the second signs in without one-time codes
)

// minStaffAge is the age from which an account that staff promoted counts as a person.
const minStaffAge = 24 * time.Hour

// Persons decides whether accounts of staff belong to different persons. Roles that the
// command line or a sign-in provider granted were checked outside of the shop: only roles
// that a user granted are in doubt.
type Persons struct {
	db    *postgres.DB
	clock clock.Clock
}

// NewPersons returns Persons.
func NewPersons(db *postgres.DB, c clock.Clock) *Persons { return &Persons{db: db, clock: c} }

// Dependence returns why a user cannot confirm what the others wrote or requested; "" if
// the user can. The granted roles are those of the security log, which is kept for 180 days.
func (p *Persons) Dependence(ctx context.Context, second id.User, first ...id.User) (Dependence, error) {
	granted, err := p.grantor(ctx, second)
	if err != nil {
		return "", err
	}
	contact, err := p.contact(ctx, second)
	if err != nil {
		return "", err
	}
	for _, other := range first {
		theirs, err := p.contact(ctx, other)
		if err != nil {
			return "", err
		}
		if contact != "" && theirs == contact {
			return SameContact, nil
		}
		by, err := p.grantor(ctx, other)
		if err != nil {
			return "", err
		}
		if granted == other || by == second {
			return Promoted, nil
		}
	}
	if granted.IsZero() {
		return "", nil
	}
	row, err := p.db.Ent.User.Get(ctx, second)
	switch {
	case err != nil:
		return "", fmt.Errorf("read user: %w", err)
	case p.clock.Now().Sub(row.CreatedAt) < minStaffAge:
		return NewAccount, nil
	case row.TotpSince == nil:
		return NoSecondFactor, nil
	}
	return "", nil
}

// contact returns the mailbox or phone number of a user; "" for service accounts and
// deleted users.
func (p *Persons) contact(ctx context.Context, user id.User) (string, error) {
	row, err := p.db.Ent.User.Get(ctx, user)
	switch {
	case ent.IsNotFound(err):
		return "", nil
	case err != nil:
		return "", fmt.Errorf("read user: %w", err)
	}
	return person.Mailbox(row.Account), nil
}

// grantor returns the user who granted the present role of a user; zero if no user did.
func (p *Persons) grantor(ctx context.Context, user id.User) (id.User, error) {
	row, err := p.db.Ent.SecurityEvent.Query().
		Where(securityevent.SubjectID(user), securityevent.Kind(string(EventRoleChanged))).
		Order(ent.Desc(securityevent.FieldCreatedAt, securityevent.FieldID)).First(ctx)
	switch {
	case ent.IsNotFound(err) || err == nil && row.ActorID == nil:
		return id.User{}, nil
	case err != nil:
		return id.User{}, fmt.Errorf("read who granted a role: %w", err)
	}
	return *row.ActorID, nil
}
