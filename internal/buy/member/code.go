package member

import (
	"context"
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"entgo.io/ent/dialect/sql"
	"github.com/google/uuid"

	"seckill/ent"
	"seckill/ent/accessmember"
	"seckill/internal/buy/access"
	"seckill/internal/platform/id"
	"seckill/internal/platform/postgres"
)

// codeLists begin the names of the lists of codes, as no other list.
const codeLists = "!"

// codeList returns the beginning of the names of the lists of a sale's codes. The index of the code
// follows.
func codeList(sale id.Sale) string {
	return codeLists + base64.RawURLEncoding.EncodeToString(sale[:]) + "."
}

// codeOf returns the code of a sale among the lists of an account; zero = none.
func codeOf(lists []string, sale id.Sale) access.Code {
	for _, list := range lists {
		if index, ok := strings.CutPrefix(list, codeList(sale)); ok {
			n, err := strconv.ParseUint(index, 10, 32)
			if err == nil {
				return access.CodeAt(uint32(n))
			}
		}
	}
	return access.Code{}
}

// Redeem gives an account the access of a code of a sale, in place of a former one. This process knows
// it at once, the others within a second. Repeating it changes nothing.
func (s *Service) Redeem(ctx context.Context, sale id.Sale, user id.User, code access.Code) error {
	list := codeList(sale) + strconv.FormatUint(uint64(code.Index()), 10)
	err := s.cfg.DB.WithTx(ctx, func(ctx context.Context, tx *ent.Tx) error {
		own := accessmember.Member(byAccount(user))
		lists, err := tx.AccessMember.Query().Where(own, accessmember.ListHasPrefix(codeList(sale))).
			Select(accessmember.FieldList).Strings(ctx)
		if err != nil || slices.Equal(lists, []string{list}) {
			return err
		}
		if _, err := tx.AccessMember.Delete().Where(own, accessmember.ListIn(lists...)).Exec(ctx); err != nil {
			return err
		}
		return postgres.Insert(ctx, tx, sql.Insert(accessmember.Table).Columns(accessmember.Columns...).
			Values(id.New[uuid.UUID](), list, byAccount(user), s.cfg.Clock.Now()).
			OnConflict(sql.ConflictColumns(accessmember.FieldMember, accessmember.FieldList), sql.DoNothing()))
	})
	if err != nil {
		return fmt.Errorf("redeem a code of sale %s: %w", sale, err)
	}
	s.forget(user)
	if s.cfg.Revocations == nil {
		return nil
	}
	if err := s.cfg.Revocations.UserChanged(ctx, user); err != nil {
		return fmt.Errorf("tell of a redeemed code: %w", err)
	}
	return nil
}

// forget drops the lists of an account from memory, and a read of them under way.
func (s *Service) forget(user id.User) {
	s.forgets.Add(1)
	s.flight.Forget(user.String())
	s.local.Remove(user)
}
