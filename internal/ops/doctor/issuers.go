package doctor

import (
	"context"
	"fmt"

	"seckill/internal/identity/oidc/issuer"
)

const areaIssuers = "issuers"

// issuers reads the file of the systems whose access tokens are accepted, and their keys.
func (r *report) issuers(ctx context.Context, d Deps) {
	if d.Config.TokenIssuers == "" {
		return
	}
	list, err := issuer.Read(d.Config.TokenIssuers, !d.Config.Production())
	if err != nil {
		if d.Fit == nil { // which reports it
			r.add(areaIssuers, Error, fmt.Sprintf("SECKILL_TOKEN_ISSUERS: %v", err))
		}
		return
	}
	for _, i := range list {
		keys, err := issuer.Keys(ctx, i)
		switch {
		case err != nil:
			r.add(areaIssuers, Error, fmt.Sprintf("the keys of %s cannot be read at %s: %v", i.Issuer, i.JWKS, err))
		case keys == 0:
			r.add(areaIssuers, Error, fmt.Sprintf("%s publishes no key at %s that can verify tokens", i.Issuer, i.JWKS))
		default:
			r.add(areaIssuers, OK, fmt.Sprintf("%d keys of %s can verify tokens", keys, i.Issuer))
		}
	}
}
