package graph

import (
	"context"

	"seckill/graph/model"
	"seckill/internal/account"
	"seckill/internal/id"
)

// inputFaults returns all faults of the input of a mutation, as its domain sees them; nil
// where the domain has no rules beside the schema's, and for a Resolver without domains.
func (r *Resolver) inputFaults(ctx context.Context, input any) error {
	if r.Operator == nil {
		return nil
	}
	switch in := input.(type) {
	case model.RegisterInput:
		return r.Accounts.CheckNew(newUser(in))
	case model.CreateGoodsInput:
		return r.Operator.CheckGoods(ctx, goodsDraft(in))
	case model.UpdateGoodsInput:
		goodsID, err := id.Parse(id.Goods, in.GoodsID)
		if err != nil {
			return unknown("goodsId")
		}
		return r.Operator.CheckGoodsUpdate(ctx, goodsID, goodsPatch(in))
	case model.CreateSaleInput:
		return r.Operator.CheckSale(ctx, saleDraft(in))
	case model.UpdateSaleInput:
		saleID, err := id.Parse(id.Sale, in.SaleID)
		if err != nil {
			return unknown("saleId")
		}
		return r.Operator.CheckSaleUpdate(ctx, saleID, salePatch(in))
	}
	return nil
}

// newUser parses the input of register.
func newUser(in model.RegisterInput) account.NewUser {
	return account.NewUser{Account: in.Account, Password: in.Password, DisplayName: in.DisplayName}
}
