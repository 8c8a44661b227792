package account

import (
	"context"
	"fmt"
	"regexp"

	"seckill/ent"
	"seckill/ent/user"
	"seckill/internal/platform/auth"
	"seckill/internal/platform/fault"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
	"seckill/internal/platform/typed"
)

// externalIDFormat are the characters of ids of other systems: printable ASCII without
// spaces, so that no two look alike. The length is that of a subject in OpenID Connect.
var externalIDFormat = regexp.MustCompile(`^[!-~]{1,255}$`)

// ValidExternalID reports whether a text may be the id of a user in another system.
func ValidExternalID(text string) bool { return externalIDFormat.MatchString(text) }

// SetExternalID gives a user the id that the person has in another system; "" removes it.
// Setting what is set already changes nothing. Another id has to be removed first, so that
// a system does not take a user from another one by accident. Staff get none: a system
// that writes the ids of customers could otherwise sign its own user in as staff, because
// tokens of other systems name users by these ids.
// FORBIDDEN for staff. Refusals: INVALID_INPUT; NOT_FOUND; CONFLICT when another user has the id, or this one
// has another id.
func (a *Admin) SetExternalID(ctx context.Context, by, userID id.User, externalID string) (*User, error) {
	externalID = typed.Identifier(externalID)
	if externalID != "" && !ValidExternalID(externalID) {
		return nil, badField("externalId", fault.Rule{Code: "1 to 255 printable ASCII characters"})
	}
	known, err := a.cfg.Store.User(ctx, userID)
	switch {
	case err != nil:
		return nil, err
	case known == nil:
		return nil, refused(fault.Unknown, "userId")
	case known.ExternalID == externalID:
		return known, nil
	case externalID != "" && known.Role != auth.Customer:
		return nil, fault.New(fault.Forbidden, "Operators and administrators get no id of another system.")
	case known.ExternalID != "" && externalID != "":
		return nil, refused(fault.Conflict, "externalId")
	}
	changed, err := a.changeWith(ctx, func(ctx context.Context, tx *ent.Tx) (*ent.User, error) {
		if externalID == "" {
			return tx.User.UpdateOneID(userID).AddVersion(1).ClearExternalID().Save(ctx)
		}
		return tx.User.UpdateOneID(userID).Where(user.ExternalIDIsNil()).AddVersion(1).SetExternalID(externalID).Save(ctx)
	})
	if postgres.IsUnique(err) || (err == nil && changed == nil) {
		return nil, refused(fault.Conflict, "externalId")
	}
	if err != nil {
		return nil, err
	}
	a.cfg.Security.Write(ctx, Event{Kind: EventExternalID, Actor: by, Subject: userID, Detail: externalID})
	return changed, nil
}

// ByExternalID returns the user with an id of another system; nil if there is none.
func (a *Admin) ByExternalID(ctx context.Context, externalID string) (*User, error) {
	return a.cfg.Store.byExternalID(ctx, typed.Identifier(externalID))
}

func (s *Store) byExternalID(ctx context.Context, externalID string) (*User, error) {
	row, err := s.db.Ent.User.Query().Where(user.ExternalID(externalID)).Only(ctx)
	if ent.IsNotFound(err) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("read user by external id: %w", err)
	}
	return toUser(row), nil
}
