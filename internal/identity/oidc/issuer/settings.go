package issuer

import (
	"errors"
	"fmt"

	"seckill/internal/identity/oidc"
	"seckill/internal/platform/auth"
)

// maxIssuers bounds the issuers: the keys of each are read again and again.
const maxIssuers = 10

// Issuer describes another system whose access tokens are accepted, as the file of
// settings has it.
type Issuer struct {
	Issuer string `json:"issuer"` // the claim iss of its tokens
	// where it publishes its keys: https://shop.example.com/.well-known/jwks.json
	JWKS            string `json:"jwks"`
	Audience        string `json:"audience"`        // that the claim aud must have
	ExternalIDClaim string `json:"externalIdClaim"` // with the id of the customer; default sub
	EmailClaim      string `json:"emailClaim"`      // default email
	// whether the contact is verified; default email_verified
	VerifiedClaim string               `json:"verifiedClaim"`
	NameClaim     string               `json:"nameClaim"` // default name
	RoleClaim     string               `json:"roleClaim"` // claim with a text or a list of texts; "" = all are customers
	Roles         map[string]auth.Role `json:"roles"`     // value of RoleClaim → highest role that the token grants
}

// Read reads the file of settings: a JSON array. Addresses need https, unless insecure.
func Read(file string, insecure bool) ([]Issuer, error) {
	return oidc.ReadList(file, maxIssuers, func(i *Issuer) (string, error) { return i.Issuer, i.complete(insecure) })
}

func (i *Issuer) complete(insecure bool) error {
	if i.Issuer == "" || len(i.Issuer) > 255 {
		return errors.New("issuer: needs 1 to 255 bytes")
	}
	if i.Audience == "" {
		return errors.New("audience: is missing; without it, tokens for other systems would be accepted")
	}
	if err := errors.Join(oidc.CheckAddress("jwks", i.JWKS, insecure), oidc.CheckRoles(i.Roles)); err != nil {
		return err
	}
	if (i.RoleClaim == "") != (len(i.Roles) == 0) {
		return fmt.Errorf("roleClaim and roles: both or none")
	}
	for claim, standard := range map[*string]string{
		&i.ExternalIDClaim: "sub", &i.EmailClaim: "email", &i.VerifiedClaim: "email_verified", &i.NameClaim: "name",
	} {
		if *claim == "" {
			*claim = standard
		}
	}
	return nil
}
